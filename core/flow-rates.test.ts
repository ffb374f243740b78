/** The bucket of a flow against one that counts exactly, in microseconds times the rate. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { cluster } from '../test/flow-rig.ts';
import { FlowRates } from './flow-rates.ts';
import { instant } from './time.ts';

test('whatever the rate, a flow gets what a bucket of exact tokens grants, to the microsecond', () => {
  const rate = fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 500_000 }));
  const waits = fc.array(fc.oneof(fc.nat(3), fc.nat(400_000)), { maxLength: 200, size: 'max' });
  fc.assert(
    fc.property(rate, fc.integer({ min: 1, max: 40 }), waits, (perSecond, burst, pauses) => {
      const config = cluster({ datagramsPerSecond: perSecond, datagramsBurst: burst });
      const rates = new FlowRates(1);
      rates.expect(config);
      rates.begin(0, config, instant(0));
      const full = burst * 1_000_000;
      let level = full - 1_000_000;
      let now = 0;
      for (const pause of pauses) {
        now += pause;
        level = Math.min(full, level + pause * perSecond);
        const passed = rates.take(0, config, instant(now));
        // A microsecond early is on time.
        if (passed) expect(level).toBeGreaterThanOrEqual(1_000_000 - perSecond);
        else expect(level).toBeLessThan(1_000_000);
        if (passed) level -= 1_000_000;
      }
    }),
    { numRuns: 200 },
  );
});

test('a constant sender gets its rate and no more, though the rate does not divide a second', () => {
  const config = cluster({ datagramsPerSecond: 7, datagramsBurst: 1 });
  const rates = new FlowRates(1);
  rates.expect(config);
  rates.begin(0, config, instant(0));
  let passed = 1;
  for (let now = 0; now < 100_000_000; now += 1_000) {
    if (rates.take(0, config, instant(now))) passed += 1;
  }
  expect(passed).toBe(700);
});

test('a burst of 0 is one of 1', () => {
  const config = cluster({ datagramsPerSecond: 1, datagramsBurst: 0 });
  const rates = new FlowRates(1);
  rates.expect(config);
  rates.begin(0, config, instant(0));
  expect(rates.take(0, config, instant(999_998))).toBe(false);
  expect(rates.take(0, config, instant(1_000_000))).toBe(true);
});

test('slots keep apart, and what they spent, when there is room for more', () => {
  const config = cluster({ datagramsPerSecond: 1, datagramsBurst: 1 });
  const rates = new FlowRates(1);
  rates.grow(2);
  rates.expect(config);
  rates.begin(1, config, instant(0));
  rates.grow(9);
  expect(rates.take(0, config, instant(0))).toBe(true);
  expect(rates.take(1, config, instant(0))).toBe(false);
  rates.begin(8, config, instant(0));
  expect(rates.take(8, config, instant(0))).toBe(false);
});

test('a flow with a rate before anybody asked for one is a bug of the caller', () => {
  const config = cluster({ datagramsPerSecond: 1 });
  expect(() => new FlowRates(1).begin(0, config, instant(0))).toThrow('room for rates');
});
