import { expect, test } from 'vitest';
import { BackOff } from './back-off.ts';
import { instant, milliseconds } from './time.ts';

const TIMES = { first: milliseconds(20), longest: milliseconds(70) };

test('rests after a failure, and no longer than its time', () => {
  const backOff = new BackOff(TIMES);
  expect(backOff.rests(instant(0))).toBe(false);
  backOff.attempt();
  backOff.failed(instant(1_000));
  expect(backOff.restsUntil).toBe(21_000);
  expect(backOff.rests(instant(20_999))).toBe(true);
  expect(backOff.rests(instant(21_000))).toBe(false);
});

test('rests twice as long after each failure in a row, up to its bound, and says which is the first', () => {
  const backOff = new BackOff(TIMES);
  const rests = [1, 2, 3, 4].map(() => {
    backOff.attempt();
    const isFirst = backOff.failed(instant(0));
    return [isFirst, backOff.restsUntil];
  });
  expect(rests).toEqual([
    [true, 20_000],
    [false, 40_000],
    [false, 70_000],
    [false, 70_000],
  ]);
});

test('begins anew once an attempt was followed by another without a failure between', () => {
  const backOff = new BackOff(TIMES);
  for (let times = 0; times < 3; times += 1) {
    backOff.attempt();
    backOff.failed(instant(0));
  }
  backOff.attempt();
  backOff.attempt();
  expect(backOff.failed(instant(0))).toBe(true);
  expect(backOff.restsUntil).toBe(20_000);
});
