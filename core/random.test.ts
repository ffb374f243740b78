import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRandom, Random } from './random.ts';

const words = fc.integer({ min: 0, max: 0xffffffff });
const seeds = fc.record({ high: words, low: words });

test('the generator is xoshiro128**: the published draws of state 1, 2, 3, 4', () => {
  const random = new Random([1, 2, 3, 4]);
  expect(Array.from({ length: 10 }, () => random.next())).toEqual([
    11520, 0, 5927040, 70819200, 2031721883, 1637235492, 1287239034, 3734860849, 3729100597,
    4258142804,
  ]);
});

test('a bounded draw stays below its bound and uses exactly one draw', () => {
  fc.assert(
    fc.property(seeds, fc.integer({ min: 1, max: 2 ** 32 }), (seed, bound) => {
      const [bounded, plain] = [createRandom(seed), createRandom(seed)];
      const drawn = bounded.below(bound);
      plain.next();
      expect(Number.isInteger(drawn) && drawn >= 0 && drawn < bound).toBe(true);
      expect(bounded.state()).toEqual(plain.state());
    }),
  );
});

test('a bound outside 1 to 2^32, or a fraction, is a bug of the caller', () => {
  const random = createRandom({ high: 0, low: 0 });
  for (const bound of [0, -1, 1.5, 2 ** 32 + 1]) {
    expect(() => random.below(bound)).toThrow('a bound');
  }
});

test('a generator continues from its exported state', () => {
  fc.assert(
    fc.property(seeds, fc.nat({ max: 50 }), (seed, steps) => {
      const random = createRandom(seed);
      for (let step = 0; step < steps; step += 1) random.next();
      const restored = new Random(random.state());
      const draws = Array.from({ length: 8 }, () => random.next());
      expect(Array.from({ length: 8 }, () => restored.next())).toEqual(draws);
    }),
  );
});

test('a state of zeros, which would draw only zeros, is refused', () => {
  expect(() => new Random([0, 0, 0, 0])).toThrow('zeros');
});

test('seeds that differ in one bit share no early draw', () => {
  fc.assert(
    fc.property(seeds, fc.nat({ max: 63 }), (seed, bit) => {
      const other =
        bit < 32
          ? { high: seed.high, low: (seed.low ^ (1 << bit)) >>> 0 }
          : { high: (seed.high ^ (1 << (bit - 32))) >>> 0, low: seed.low };
      const draws = (from: typeof seed): number[] => {
        const random = createRandom(from);
        return Array.from({ length: 8 }, () => random.next());
      };
      expect(draws(seed).some((draw, at) => draws(other)[at] !== draw)).toBe(true);
    }),
  );
});

test('draws below ten of many seeds are even: chi-square at 0.1 %', () => {
  const counts = Array.from({ length: 10 }, () => 0);
  for (let low = 0; low < 20_000; low += 1) {
    const drawn = createRandom({ high: 0, low }).below(10);
    counts[drawn] = (counts[drawn] ?? 0) + 1;
  }
  const statistic = counts.reduce((sum, count) => sum + (count - 2_000) ** 2 / 2_000, 0);
  expect(statistic).toBeLessThan(27.88);
});
