import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Backend } from '../contract.ts';
import { PLACEMENT_SEED } from '../hash.ts';
import { Maglev, nextPrime } from './maglev.ts';
import { backend, countChoices, someKeys } from './policy.laws.ts';

const five = [1, 2, 3, 4, 5].map((n) => backend(n));

test('maglev_is_deterministic_for_a_fixed_key: two policies and two calls agree', () => {
  const [one, other] = [maglev(five), maglev(five)];
  for (const key of someKeys(200)) {
    const chosen = one.select(five, key);
    expect(one.select(five, key)).toBe(chosen);
    expect(other.select(five, key)).toBe(chosen);
  }
});

test('maglev_none_key_falls_back_to_round_robin: without a key the candidates take turns', () => {
  const policy = maglev(five);
  expect(five.map(() => policy.select(five, undefined))).toEqual(five);
});

test('maglev_distribution_is_roughly_even: 1009 slots give 50,000 keys within 15 %', () => {
  for (const count of countChoices(maglev(five, 1_009), five, 50_000)) {
    expect(Math.abs(count - 10_000)).toBeLessThan(10_000 * 0.15);
  }
});

test('maglev_table_rebuild_keeps_most_keys_stable: fewer than half move when five become six', () => {
  const six = [...five, backend(6)];
  const policy = maglev(five);
  const keys = someKeys(5_000);
  const before = keys.map((key) => policy.select(five, key));
  policy.backendsChanged(six);
  const moved = keys.filter((key, index) => policy.select(six, key) !== before[index]).length;
  expect(moved).toBeGreaterThan(0);
  expect(moved).toBeLessThan(keys.length / 2);
});

test('maglev_partial_outage_does_not_rebuild_and_stays_stable: only keys of the lost backend move, and they come back', () => {
  const policy = maglev(five);
  const { table } = policy;
  const keys = someKeys(2_000);
  const before = keys.map((key) => policy.select(five, key));
  const up = five.slice(1);
  for (const [index, key] of keys.entries()) {
    const during = policy.select(up, key);
    if (before[index] === five[0]) expect(up).toContain(during);
    else expect(during).toBe(before[index]);
  }
  expect(keys.map((key) => policy.select(five, key))).toEqual(before);
  expect(policy.table).toBe(table);
});

test('maglev_all_table_backends_unhealthy_falls_back_to_round_robin: candidates the table does not know take turns', () => {
  const policy = maglev(five);
  const strangers = [backend(21), backend(22), backend(23)];
  const chosen = someKeys(6).map((key) => policy.select(strangers, key));
  expect(chosen).toEqual([...strangers, ...strangers]);
});

test('maglev_cold_start_builds_table_once: selections never build one', () => {
  const policy = new Maglev(PLACEMENT_SEED);
  expect(policy.table).toHaveLength(0);
  policy.backendsChanged(five);
  const { table } = policy;
  expect(table).toHaveLength(65_537);
  for (const key of someKeys(100)) policy.select(five, key);
  expect(policy.table).toBe(table);
});

test.each([
  [0, 2],
  [1, 2],
  [2, 2],
  [1_000, 1_009],
])('maglev_table_size_one_is_clamped_to_a_prime: a size of %i becomes %i', (size, slots) => {
  expect(maglev(five, size).table).toHaveLength(slots);
});

test('next_prime_picks_the_smallest_prime_at_least_n', () => {
  const primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31];
  for (let count = 0; count <= 31; count += 1) {
    expect(nextPrime(count)).toBe(primes.find((prime) => prime >= count));
  }
  expect(nextPrime(65_536)).toBe(65_537);
});

test('maglev_honors_weight: 400 beside 100 gets more than 70 % of the keys', () => {
  const all = [backend(1, { weight: 100 }), backend(2, { weight: 400 })];
  const [, heavy] = countChoices(maglev(all), all, 10_000);
  expect(heavy).toBeGreaterThan(7_000);
  expect(heavy).toBeLessThan(9_000);
});

test('every slot is taken, and each backend holds its weight’s share to within one slot', () => {
  const weights = fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(weights, (list) => {
      const all = list.map((weight, index) => backend(index + 1, { weight }));
      const total = list.reduce((sum, weight) => sum + Math.max(1, weight), 0);
      const { table } = maglev(all, 1_009);
      for (const [index, weight] of list.entries()) {
        const held = table.filter((at) => at === index).length;
        expect(Math.abs(held - (1_009 * Math.max(1, weight)) / total)).toBeLessThanOrEqual(1);
      }
      expect(table.every((at) => at >= 0 && at < all.length)).toBe(true);
    }),
  );
});

test('backends that share an address are served by the first of them that is a candidate', () => {
  const [first, second] = [backend(1, { id: 'first' }), backend(1, { id: 'second' })];
  const policy = maglev([first, second]);
  const choices = [[first, second], [second]].map((candidates) =>
    someKeys(50).map((key) => policy.select(candidates, key)?.id),
  );
  expect(new Set(choices[0])).toEqual(new Set(['first']));
  expect(new Set(choices[1])).toEqual(new Set(['second']));
});

test('the search for a candidate starts at the key’s slot and goes round the table', () => {
  const policy = maglev(five, 31);
  for (const candidates of [five.slice(0, 1), five.slice(1, 3), five.slice(4)]) {
    for (let start = 0; start < 31; start += 1) {
      const walk = Array.from(
        { length: 31 },
        (_, step) => five[policy.table[(start + step) % 31]!]!,
      );
      const expected = walk.find((each) => candidates.includes(each));
      expect(policy.select(candidates, { high: 0, low: start })).toBe(expected);
    }
  }
});

test('a new table is used at once, even for a list of candidates that did not change', () => {
  const policy = maglev(five);
  const keys = someKeys(200);
  for (const key of keys) policy.select(five, key);
  const reversed = five.toReversed();
  policy.backendsChanged(reversed);
  const fresh = maglev(reversed);
  for (const key of keys) expect(policy.select(five, key)).toBe(fresh.select(five, key));
});

test('more backends than slots leave some without, and those are still served when alone', () => {
  const many = Array.from({ length: 12 }, (_, index) => backend(index + 1));
  const policy = maglev(many, 7);
  const last = many.slice(-1);
  expect(new Set(policy.table)).toEqual(new Set([0, 1, 2, 3, 4, 5, 6]));
  for (const key of someKeys(10)) expect(policy.select(last, key)).toBe(last[0]);
});

function maglev(backends: readonly Backend[], size?: number): Maglev {
  const policy = new Maglev(PLACEMENT_SEED, size);
  policy.backendsChanged(backends);
  return policy;
}
