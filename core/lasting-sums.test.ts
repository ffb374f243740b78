/** Sums that outlive what was counted: they only grow, nothing is lost, and names are bounded. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { LastingSums, OTHER_NAMES } from './lasting-sums.ts';

interface Counts {
  n: number;
}

const NAMES = ['a', 'b', 'c', 'd', OTHER_NAMES] as const;

const steps = fc.array(
  fc.record({
    name: fc.constantFrom(...NAMES),
    what: fc.constantFrom('come', 'count', 'count', 'go'),
  }),
  { maxLength: 60, size: 'max' },
);

test('every sum only grows and together they are all that was counted, whoever comes and goes', () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 0, max: 5 }), (plan, max) => {
      const sums = newSums(max);
      const live = new Map<string, Counts>();
      let before: ReadonlyMap<string, Readonly<Counts>> = new Map();
      let counted = 0;
      for (const { name, what } of plan) {
        const counts = live.get(name);
        if (what === 'come' && counts === undefined) {
          sums.begin(name);
          live.set(name, { n: 0 });
        } else if (what === 'go' && counts !== undefined) {
          live.delete(name);
          sums.keep(name, counts);
        } else if (what === 'count' && counts !== undefined) {
          counts.n += 1;
          counted += 1;
        }
        const now = sums.including(live);
        for (const [known, { n }] of before) {
          expect(now.get(known)?.n ?? -1).toBeGreaterThanOrEqual(n);
        }
        expect([...now.values()].reduce((sum, { n }) => sum + n, 0)).toBe(counted);
        expect(now.size).toBeLessThanOrEqual(max + 1);
        before = now;
      }
    }),
  );
});

test('who found no place at first stays with the others, and each time is counted', () => {
  const sums = newSums(1);
  sums.begin('first');
  sums.begin('second');
  expect(sums.beyondBound).toBe(1);
  sums.keep('second', { n: 3 });
  sums.begin('second');
  expect(sums.beyondBound).toBe(2);
  expect([...sums.including([['second', { n: 4 }]])]).toEqual([
    ['first', { n: 0 }],
    [OTHER_NAMES, { n: 7 }],
  ]);
  sums.begin('first');
  expect(sums.beyondBound).toBe(2);
});

function newSums(max: number): LastingSums<Counts> {
  return new LastingSums<Counts>(
    () => ({ n: 0 }),
    (sum, { n }) => {
      sum.n += n;
    },
    max,
  );
}
