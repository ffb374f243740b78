import { expect, test } from 'vitest';
import { instant, milliseconds } from '../core/time.ts';
import { VirtualClock } from './clock.ts';

test('time stands still until it is moved, and then is where it was moved to', () => {
  const clock = new VirtualClock();
  expect(clock.now()).toBe(0);
  expect(clock.advance(milliseconds(3))).toBe(3_000);
  expect(clock.advanceTo(instant(3_000))).toBe(3_000);
  expect(clock.advanceTo(instant(5_000))).toBe(5_000);
  expect(clock.now()).toBe(5_000);
  expect(new VirtualClock(instant(9)).now()).toBe(9);
});

test('time refuses to go back, and stays', () => {
  const clock = new VirtualClock(instant(10));
  expect(() => clock.advanceTo(instant(9))).toThrow('never goes back');
  expect(clock.now()).toBe(10);
});
