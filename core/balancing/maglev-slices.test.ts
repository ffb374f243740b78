/** A Maglev table that is built in slices ends as the one built at once, and until then sends nobody to who is gone. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { untilOver } from '../../test/until-over.ts';
import type { Backend } from '../contract.ts';
import { PLACEMENT_SEED } from '../hash.ts';
import { FREE, MaglevTable } from './maglev-table.ts';
import { Maglev } from './maglev.ts';
import { backend, someKeys } from './policy.laws.ts';

const SIZE = 251;
const keys = someKeys(300);
const five = [1, 2, 3, 4, 5].map((n) => backend(n));

const lists = fc.uniqueArray(
  fc.record({ n: fc.integer({ min: 1, max: 30 }), weight: fc.integer({ min: 0, max: 255 }) }),
  { maxLength: 12, selector: ({ n }) => n },
);
const slices = fc.array(fc.integer({ min: 1, max: 2_000 }), { minLength: 1, maxLength: 8 });
/** Lists that follow each other, each after the slices that were done for the one before. */
const histories = fc.array(fc.record({ list: lists.map(toBackends), slices }), {
  minLength: 1,
  maxLength: 5,
});

describe('once nothing is left to build', () => {
  test('the table is the one built at once, however the work was cut and whatever lists came between', () => {
    fc.assert(
      fc.property(histories, (history) => {
        const policy = new Maglev(PLACEMENT_SEED, SIZE, true);
        let latest: readonly Backend[] = [];
        for (const step of history) {
          latest = step.list;
          policy.backendsChanged(latest);
          for (const steps of step.slices) policy.build(steps);
        }
        finish(policy, 700);
        const atOnce = new Maglev(PLACEMENT_SEED, SIZE);
        atOnce.backendsChanged(latest);
        expect(policy.table).toEqual(atOnce.table);
        for (const key of keys) expect(policy.select(latest, key)).toBe(atOnce.select(latest, key));
      }),
    );
  });

  test('building on changes nothing and uses no step', () => {
    const policy = built(five);
    const { table } = policy;
    expect(policy.build(1_000)).toBe(1_000);
    expect(policy.table).toBe(table);
  });
});

describe('while a table is built', () => {
  test('only candidates are chosen, so that nobody gone ever is', () => {
    fc.assert(
      fc.property(histories, (history) => {
        const policy = new Maglev(PLACEMENT_SEED, SIZE, true);
        for (const { list, slices: cuts } of history) {
          policy.backendsChanged(list);
          const wanted = list.length === 0 ? [undefined] : list;
          for (const steps of cuts) {
            policy.build(steps);
            for (const key of keys.slice(0, 20)) expect(wanted).toContain(policy.select(list, key));
          }
        }
      }),
    );
  });

  test('clients stay where they were, those of a lost backend go to others, and a new one waits', () => {
    const policy = built(five);
    const before = keys.map((key) => policy.select(five, key));
    const next = [...five.slice(1), backend(6)];
    policy.backendsChanged(next);
    policy.build(300);
    for (const [at, key] of keys.entries()) {
      const chosen = policy.select(next, key);
      if (before[at] === five[0]) expect(five.slice(1)).toContain(chosen);
      else expect(chosen).toBe(before[at]);
    }
    finish(policy, 300);
    expect(keys.map((key) => policy.select(next, key))).toContain(next.at(-1));
  });

  test('a table once begun comes to serve although the list never rests', () => {
    const policy = built(five);
    const old = policy.table;
    for (let round = 0; round < 40 && policy.table === old; round += 1) {
      policy.backendsChanged([...five, backend(6 + round)]);
      policy.build(200);
    }
    expect(policy.table).not.toBe(old);
  });
});

describe('a first table', () => {
  test('serves while it fills: who has a slot keeps it, and most clients are at once where they will stay', () => {
    const policy = new Maglev(PLACEMENT_SEED, SIZE, true);
    policy.backendsChanged(five);
    expect(policy.select(five, keys[0])).toBe(five[0]);
    policy.build(5 * 128 + 400);
    const early = policy.table.slice();
    const choices = keys.map((key) => policy.select(five, key));
    expect(early).toContain(FREE);
    finish(policy, 100);
    for (const [slot, place] of early.entries()) {
      if (place !== FREE) expect(policy.table[slot]).toBe(place);
    }
    const moved = keys.filter((key, at) => policy.select(five, key) !== choices[at]);
    expect(moved.length).toBeLessThan(keys.length / 5);
  });
});

test('a slice ends when its steps are used up', () => {
  fc.assert(
    fc.property(lists.map(toBackends), fc.integer({ min: 1, max: 3_000 }), (list, steps) => {
      const table = new MaglevTable(PLACEMENT_SEED, SIZE, list);
      let taken = 0;
      for (let before = 0; !table.complete; before = taken) {
        expect(table.fill(steps)).toBeLessThan(steps);
        taken = claimed(table);
        expect(taken - before).toBeLessThanOrEqual(steps);
      }
      expect(taken).toBe(list.length === 0 ? 0 : SIZE);
    }),
  );
});

test('hashing ten thousand backends is work of several slices', () => {
  const many = Array.from({ length: 10_000 }, (_, at) => backend(at + 1));
  const table = new MaglevTable(PLACEMENT_SEED, SIZE, many);
  for (let slice = 0; slice < 9; slice += 1) {
    expect(table.fill(128_000)).toBe(0);
    expect(table.slots).toHaveLength(0);
  }
  for (let slice = 0; slice < 2; slice += 1) table.fill(128_000);
  expect(table.complete).toBe(true);
});

function toBackends(list: readonly { n: number; weight: number }[]): Backend[] {
  return list.map(({ n, weight }) => backend(n, { weight }));
}

function claimed({ slots }: MaglevTable): number {
  return slots.filter((place) => place !== FREE).length;
}

function built(backends: readonly Backend[]): Maglev {
  const policy = new Maglev(PLACEMENT_SEED, SIZE, true);
  policy.backendsChanged(backends);
  policy.build(Infinity);
  return policy;
}

function finish(policy: Maglev, steps: number): void {
  untilOver(() => policy.build(steps) === 0);
}
