import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { median, pairedRatios, quantile, quartiles } from './statistics.ts';

test('the median of an odd number of samples is the middle one, whatever their order', () => {
  expect(median([9, 1, 5])).toBe(5);
});

test('the median of an even number of samples lies halfway between the middle two', () => {
  expect(median([4, 1, 3, 2])).toBe(2.5);
});

test('quartiles interpolate between neighbours', () => {
  expect(quartiles([1, 2, 3, 4])).toEqual({ lower: 1.75, median: 2.5, upper: 3.25 });
  expect(quartiles([7])).toEqual({ lower: 7, median: 7, upper: 7 });
});

test('numbers are sorted as numbers', () => {
  expect(median([100, 9, 20])).toBe(20);
});

test('no samples have no quantile', () => {
  expect(() => quantile([], 0.5)).toThrow(RangeError);
});

test('paired ratios divide sample by sample and refuse lists of different length', () => {
  expect(pairedRatios([2, 9], [1, 3])).toEqual([2, 3]);
  expect(() => pairedRatios([1], [])).toThrow(RangeError);
});

test('quantiles stay within the samples and grow with the share', () => {
  const samples = fc.array(fc.integer(), { minLength: 1, maxLength: 50 });
  fc.assert(
    fc.property(samples, (list) => {
      const { lower, median: middle, upper } = quartiles(list);
      expect(lower).toBeGreaterThanOrEqual(Math.min(...list));
      expect(middle).toBeGreaterThanOrEqual(lower);
      expect(upper).toBeGreaterThanOrEqual(middle);
      expect(Math.max(...list)).toBeGreaterThanOrEqual(upper);
    }),
  );
});
