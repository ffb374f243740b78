import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { chunksOf, judgesMissed, legsOf, seedAt, seedsOf, type Plan, type Shard } from './plan.ts';

const PLAIN: Plan = {
  scenario: undefined,
  all: false,
  firstSeed: { high: 0, low: 0 },
  seeds: 256,
  steps: 3_000,
  shard: undefined,
};

function placesOf(plan: Plan): string[] {
  return [...chunksOf(plan)].flatMap(({ leg, offsets }) =>
    offsets.map((offset) => `${leg} ${offset}`),
  );
}

test('a plain sweep is default, then a quarter in swarm; a named one is that scenario alone', () => {
  const names = (plan: Plan): unknown =>
    legsOf(plan).map(({ scenario, seeds }) => [scenario.name, seeds]);
  expect(names(PLAIN)).toEqual([
    ['default', 256],
    ['swarm', 64],
  ]);
  expect(names({ ...PLAIN, seeds: 5 })).toEqual([
    ['default', 5],
    ['swarm', 2],
  ]);
  expect(names({ ...PLAIN, scenario: 'canary' })).toEqual([['canary', 256]]);
});

test('shards share out every seed exactly once, in chunks that are numbered without gaps', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 200 }),
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 1, max: 50_000 }),
      (seeds, count, steps) => {
        const plan = { ...PLAIN, seeds, steps };
        const shards = Array.from({ length: count }, (_, index): Shard => ({
          index: index + 1,
          count,
        }));
        const parts = shards.map((shard) => placesOf({ ...plan, shard }));
        expect(parts.flat().sort()).toEqual(placesOf(plan).sort());
        expect(parts.map(({ length }) => length)).toEqual(
          shards.map((shard) => seedsOf({ ...plan, shard })),
        );
        const orders = [...chunksOf(plan)].map(({ order }) => order);
        expect(orders).toEqual(orders.map((_, index) => index));
      },
    ),
  );
});

test('chunks come in the order of scenarios and seeds, and few steps make larger ones', () => {
  const places = placesOf({ ...PLAIN, seeds: 20, steps: 3_000 });
  expect(places.slice(0, 3)).toEqual(['0 0', '0 1', '0 2']);
  expect(places.at(-1)).toBe('1 4');
  const sizes = (steps: number): number[] =>
    [...chunksOf({ ...PLAIN, seeds: 32, steps })].map(({ offsets }) => offsets.length);
  expect(sizes(100)).toEqual([8, 8, 8, 8, 8]);
  expect(sizes(12_000)[0]).toBe(2);
  expect(sizes(1_000_000)[0]).toBe(1);
});

test('seeds are counted from the first one', () => {
  expect(seedAt({ ...PLAIN, firstSeed: { high: 0, low: 0xffffffff } }, 1)).toEqual({
    high: 1,
    low: 0,
  });
});

test('only a whole plain sweep of the default size or a larger one must see everything', () => {
  expect(judgesMissed(PLAIN)).toBe(true);
  expect(judgesMissed({ ...PLAIN, seeds: 1_024, steps: 5_000 })).toBe(true);
  expect(judgesMissed({ ...PLAIN, seeds: 255 })).toBe(false);
  expect(judgesMissed({ ...PLAIN, steps: 2_999 })).toBe(false);
  expect(judgesMissed({ ...PLAIN, scenario: 'default' })).toBe(false);
  expect(judgesMissed({ ...PLAIN, shard: { index: 1, count: 2 } })).toBe(false);
});
