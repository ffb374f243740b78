import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { after, instant, milliseconds, type Instant } from '../../core/index.ts';
import { OneTimer } from './timer.ts';

let fired: Instant[];
let timer: OneTimer;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'], now: 1_000 });
  fired = [];
  timer = new OneTimer(now, () => fired.push(now()));
});

afterEach(() => {
  vi.useRealTimers();
});

test('fires once, at the time it was asked for', () => {
  timer.wakeAt(later(30));
  vi.advanceTimersByTime(29);
  expect(fired).toEqual([]);
  vi.advanceTimersByTime(1_000);
  expect(fired).toEqual([instant(1_030_000)]);
});

test('never fires after a fraction of a millisecond was cut off: it rounds up', () => {
  timer.wakeAt(instant(now() + 1_001));
  vi.advanceTimersByTime(1);
  expect(fired).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(fired).toHaveLength(1);
});

test('moves to an earlier time', () => {
  timer.wakeAt(later(1_000));
  timer.wakeAt(later(10));
  vi.advanceTimersByTime(10_000);
  expect(fired).toEqual([instant(1_010_000)]);
});

test('keeps an earlier time when asked for a later one, and is set anew from there', () => {
  timer.wakeAt(later(10));
  timer.wakeAt(later(1_000));
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(10);
  expect(fired).toEqual([instant(1_010_000)]);
  timer.wakeAt(later(990));
  vi.advanceTimersByTime(10_000);
  expect(fired).toEqual([instant(1_010_000), instant(2_000_000)]);
});

test('is silent once disarmed, and leaves nothing behind', () => {
  timer.wakeAt(later(10));
  timer.wakeAt(undefined);
  expect(vi.getTimerCount()).toBe(0);
  vi.advanceTimersByTime(10_000);
  expect(fired).toEqual([]);
});

test('fires as soon as it can for a time that has passed', () => {
  timer.wakeAt(instant(0));
  vi.advanceTimersByTime(1);
  expect(fired).toHaveLength(1);
});

test('fires early, not at once, for a time beyond what the runtime can wait', () => {
  const days = 100 * 24 * 60 * 60 * 1_000;
  timer.wakeAt(later(days));
  vi.advanceTimersByTime(1_000);
  expect(fired).toEqual([]);
  vi.advanceTimersByTime(2 ** 31);
  expect(fired).toHaveLength(1);
});

function now(): Instant {
  return instant(Date.now() * 1_000);
}

function later(count: number): Instant {
  return after(now(), milliseconds(count));
}
