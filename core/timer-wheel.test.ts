/** Timers that fire early, as real ones do: the machines behind the pump close no flow too soon and none too late. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { configOf, PlaneBench } from '../test/plane-bench.ts';
import { instant } from './time.ts';

test('an_early_wheel_fire_still_evicts_the_idle_flow: a wheel that rounds down asks again until it is time', () => {
  const bench = new PlaneBench(configOf());
  bench.ports.clock = instant(40_000);
  bench.turn(() => bench.client('a'));
  expect(bench.ports.wake).toBe(30_040_000);
  expect(turnWheel(bench, 100_000, 40_000_000)).toEqual([30_000_000, 30_100_000]);
  expect(bench.plane.flowCount).toBe(0);
  expect(bench.counters()).toMatchObject({ flowsCreated: 1, flowsEvicted: 1 });
  expect(bench.ports.wake).toBeUndefined();
});

test('on a wheel of any grain a flow ends within a grain of its deadline, in two firings at most', () => {
  const grains = fc.integer({ min: 1, max: 5_000_000 });
  fc.assert(
    fc.property(grains, fc.nat(10_000_000), (grain, start) => {
      const bench = new PlaneBench(configOf());
      bench.ports.clock = instant(start);
      bench.turn(() => bench.client('a'));
      const deadline = start + 30_000_000;
      const firings = turnWheel(bench, grain, deadline + grain);
      expect(bench.plane.flowCount).toBe(0);
      expect(firings.length).toBeLessThanOrEqual(2);
      expect(firings.at(-1)).toBeGreaterThanOrEqual(deadline);
      expect(firings.at(-1)).toBeLessThan(deadline + grain);
    }),
  );
});

test('however often the timer fires early, it is armed again, and the first firing after the deadline closes', () => {
  const early = fc.array(fc.nat(29_999_999), { maxLength: 20 });
  fc.assert(
    fc.property(early, fc.nat(1_000_000), (instants, late) => {
      const bench = new PlaneBench(configOf());
      bench.turn(() => bench.client('a'));
      for (const at of instants.sort((one, other) => one - other)) {
        fireAt(bench, at);
        expect(bench.ports.wake).toBe(30_000_000);
        expect(bench.plane.flowCount).toBe(1);
      }
      fireAt(bench, 30_000_000 + late);
      expect(bench.plane.flowCount).toBe(0);
    }),
  );
});

/**
 * A timer wheel of this grain: it knows only multiples of it, rounds a wake-up down to one, and never fires twice in the
 * same. Turns until `end`; the instants at which it fired.
 */
function turnWheel(bench: PlaneBench, grain: number, end: number): number[] {
  const firings: number[] = [];
  while (bench.ports.wake !== undefined) {
    const rounded = Math.floor(bench.ports.wake / grain) * grain;
    const soonest = (firings.at(-1) ?? Math.floor(bench.ports.clock / grain) * grain) + grain;
    const next = Math.max(rounded, soonest);
    if (next > end) break;
    firings.push(next);
    fireAt(bench, next);
  }
  return firings;
}

function fireAt(bench: PlaneBench, at: number): void {
  bench.ports.clock = instant(at);
  bench.turn(() => bench.fire());
}
