/** Time is whole microseconds; anything else is refused where it enters. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { after, instant, microseconds, milliseconds, seconds, until } from './time.ts';

const moments = fc.integer({ min: 0, max: 2 ** 52 - 1 });

test('a fraction, a negative number, an unsafe one and no number are no time', () => {
  for (const count of [0.5, -1, Number.NaN, Infinity, 2 ** 53]) {
    expect(() => instant(count)).toThrow('natural');
    expect(() => microseconds(count)).toThrow('natural');
  }
  expect(() => milliseconds(0.0001)).toThrow('natural');
  expect(() => seconds(2 ** 40)).toThrow('natural');
});

test('units are what they say', () => {
  expect([microseconds(7), milliseconds(7), seconds(7)]).toEqual([7, 7_000, 7_000_000]);
  expect(seconds(0xffffffff)).toBe(4_294_967_295_000_000);
});

test('after and until undo each other, and what has passed is no time away', () => {
  fc.assert(
    fc.property(moments, moments, (from, wait) => {
      const later = after(instant(from), microseconds(wait));
      expect(until(instant(from), later)).toBe(wait);
      expect(until(later, instant(from))).toBe(0);
    }),
  );
});
