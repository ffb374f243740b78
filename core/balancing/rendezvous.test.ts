import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { PLACEMENT_SEED } from '../hash.ts';
import { backend, countChoices, someKeys } from './policy.laws.ts';
import { Rendezvous, rendezvousScore } from './rendezvous.ts';

const five = [1, 2, 3, 4, 5].map((n) => backend(n));

test('hrw_is_deterministic_for_a_fixed_key: two policies and two calls agree', () => {
  const [one, other] = [new Rendezvous(PLACEMENT_SEED), new Rendezvous(PLACEMENT_SEED)];
  for (const key of someKeys(200)) {
    const chosen = one.select(five, key);
    expect(one.select(five, key)).toBe(chosen);
    expect(other.select(five, key)).toBe(chosen);
  }
});

test('hrw_none_key_falls_back_to_round_robin: without a key the candidates take turns', () => {
  const policy = new Rendezvous(PLACEMENT_SEED);
  expect(five.map(() => policy.select(five, undefined))).toEqual(five);
});

test('hrw_minimal_disruption_when_removing_a_non_winner: none of 2000 keys moves but those of the removed', () => {
  const policy = new Rendezvous(PLACEMENT_SEED);
  const removed = five[2];
  const left = five.filter((candidate) => candidate !== removed);
  for (const key of someKeys(2_000)) {
    const before = policy.select(five, key);
    const after = policy.select(left, key);
    if (before === removed) expect(left).toContain(after);
    else expect(after).toBe(before);
  }
});

test('an added backend takes keys and moves none between the others', () => {
  const policy = new Rendezvous(PLACEMENT_SEED);
  const newcomer = backend(6);
  const six = [...five, newcomer];
  const moved = someKeys(2_000).filter((key) => {
    const after = policy.select(six, key);
    if (after !== newcomer) expect(after).toBe(policy.select(five, key));
    return after === newcomer;
  });
  expect(moved.length).toBeGreaterThan(2_000 / 6 / 1.35);
  expect(moved.length).toBeLessThan((2_000 / 6) * 1.35);
});

test('hrw_distribution_is_roughly_even: five backends get 20,000 keys within 35 %', () => {
  for (const count of countChoices(new Rendezvous(PLACEMENT_SEED), five, 20_000)) {
    expect(Math.abs(count - 4_000)).toBeLessThan(4_000 * 0.35);
  }
});

test('of two backends at one address the earlier in the list takes every key', () => {
  const twins = [backend(1, { id: 'first' }), backend(1, { id: 'second' })];
  expect(countChoices(new Rendezvous(PLACEMENT_SEED), twins, 500)).toEqual([500, 0]);
});

test('weights below 1 count as 1', () => {
  const all = [backend(1, { weight: 0 }), backend(2, { weight: 1 }), backend(3, { weight: -5 })];
  for (const count of countChoices(new Rendezvous(PLACEMENT_SEED), all, 6_000)) {
    expect(Math.abs(count - 2_000)).toBeLessThan(300);
  }
});

test('a hash beside 2^64, whose fraction rounds to 1, scores finite and highest', () => {
  for (const low of [0xffffffff, 0xfffffe00, 0xfffffc00]) {
    const score = rendezvousScore({ high: 0xffffffff, low }, 100);
    expect(Number.isFinite(score)).toBe(true);
    expect(score).toBeGreaterThan(rendezvousScore({ high: 0xffffffff, low: 0xfffff000 }, 100));
  }
});

test('every hash and weight scores finite and above zero, and more for a higher hash', () => {
  const edges = fc.oneof(
    fc.integer({ min: 0, max: 0xffffffff }),
    fc.constantFrom(0, 1, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff),
  );
  fc.assert(
    fc.property(edges, edges, fc.integer({ min: 1, max: 255 }), (high, low, weight) => {
      const score = rendezvousScore({ high, low }, weight);
      expect(score).toBeGreaterThan(0);
      expect(Number.isFinite(score)).toBe(true);
      if (high > 0) {
        expect(score).toBeGreaterThan(rendezvousScore({ high: high - 1, low }, weight));
      }
    }),
  );
});
