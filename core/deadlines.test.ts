/** The deadline index against a naive one: a Map of slots and a scan. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Deadlines } from './deadlines.ts';
import { instant, microseconds } from './time.ts';

describe('deadlines', () => {
  test('nothing is due where nothing was added', () => {
    const deadlines = new Deadlines(4);
    expect(deadlines.earliest()).toBeUndefined();
    expect(dueBy(deadlines, 1_000_000)).toEqual([]);
    expect(deadlines.classCount).toBe(0);
  });

  test('a slot is due at its instant, not a microsecond before', () => {
    const deadlines = new Deadlines(4);
    deadlines.add(2, instant(10), microseconds(5));
    expect(deadlines.earliest()).toBe(15);
    expect(dueBy(deadlines, 14)).toEqual([]);
    expect(dueBy(deadlines, 15)).toEqual([2]);
  });

  test('a touch moves a deadline later, or earlier when the timeout is shorter', () => {
    const deadlines = new Deadlines(4);
    deadlines.add(0, instant(0), microseconds(60));
    deadlines.touch(0, instant(1), microseconds(60));
    expect(deadlines.earliest()).toBe(61);
    deadlines.touch(0, instant(2), microseconds(5));
    expect(deadlines.earliest()).toBe(7);
    expect(deadlines.classCount).toBe(1);
  });

  test('a slot knows since when it has a deadline, whatever touches it and however large the table grows', () => {
    const deadlines = new Deadlines(2);
    deadlines.add(0, instant(3), microseconds(5));
    deadlines.add(1, instant(4), microseconds(5));
    deadlines.touch(0, instant(2 ** 52), microseconds(9));
    deadlines.grow(5);
    expect([deadlines.since(0), deadlines.since(1)]).toEqual([3, 4]);
    deadlines.remove(0);
    deadlines.add(0, instant(2 ** 52 + 1), microseconds(5));
    expect(deadlines.since(0)).toBe(2 ** 52 + 1);
  });

  test('a timeout that nobody has any more leaves no class behind', () => {
    const deadlines = new Deadlines(3);
    for (let timeout = 0; timeout < 100; timeout += 1) {
      deadlines.add(timeout % 3, instant(timeout), microseconds(timeout));
      deadlines.remove(timeout % 3);
      expect(deadlines.classCount).toBe(0);
    }
  });

  test('time that goes back is a bug of the caller', () => {
    const deadlines = new Deadlines(2);
    deadlines.add(0, instant(5), microseconds(1));
    expect(() => deadlines.touch(0, instant(4), microseconds(1))).toThrow('time');
    expect(() => deadlines.add(1, instant(4), microseconds(1))).toThrow('time');
  });

  test('deadlines of a far future are exact', () => {
    const deadlines = new Deadlines(1);
    deadlines.add(0, instant(2 ** 52), microseconds(3));
    expect(deadlines.earliest()).toBe(2 ** 52 + 3);
  });
});

test('under touches, removals and growth in any order, earliest and due slots are those of a scan', () => {
  const act = fc.record({
    slot: fc.nat(15),
    wait: fc.nat(3),
    timeout: fc.nat(9),
    what: fc.nat(9),
  });
  fc.assert(
    fc.property(fc.array(act, { maxLength: 250, size: 'max' }), (acts) => {
      const deadlines = new Deadlines(16);
      const model = new Map<number, { at: number; timeout: number }>();
      let capacity = 16;
      let now = 0;
      for (const { slot, wait, timeout, what } of acts) {
        now += wait;
        if (what === 0) deadlines.grow((capacity += 5));
        if (!model.has(slot)) {
          deadlines.add(slot, instant(now), microseconds(timeout));
          model.set(slot, { at: now + timeout, timeout });
        } else if (what < 4) {
          deadlines.remove(slot);
          model.delete(slot);
        } else {
          deadlines.touch(slot, instant(now), microseconds(timeout));
          model.set(slot, { at: now + timeout, timeout });
        }
        agree(deadlines, model, now);
      }
    }),
    { numRuns: 80 },
  );
});

function agree(
  deadlines: Deadlines,
  model: Map<number, { at: number; timeout: number }>,
  now: number,
): void {
  const instants = [...model.values()].map(({ at }) => at);
  expect(deadlines.earliest() ?? Infinity).toBe(Math.min(...instants));
  expect(deadlines.classCount).toBe(new Set([...model.values()].map((one) => one.timeout)).size);
  for (const [slot, { at }] of model) expect(deadlines.of(slot)).toBe(at);
  for (const until of [now, now + 4]) {
    const due = [...model].filter(([, { at }]) => at <= until).map(([slot]) => slot);
    expect(dueBy(deadlines, until)).toEqual(due.sort((one, other) => one - other));
  }
}

function dueBy(deadlines: Deadlines, now: number): number[] {
  const due: number[] = [];
  deadlines.dueBy(instant(now), due);
  return due.sort((one, other) => one - other);
}
