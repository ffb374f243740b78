/** Any traffic, refusals, probes and configurations, in any order: what never happens, and what always does in the end. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatAddress } from '../address.ts';
import { backend, PassiveBench } from '../../test/passive-bench.ts';
import { microseconds, seconds } from '../time.ts';
import type { ProbeResult } from './hysteresis.ts';
import { passiveSettings, type PassiveSettings } from './passive-contract.ts';
import { EJECTED_SHARE_MAX, EJECTION_CAP } from './passive.ts';
import { healthSettings } from './settings.ts';

const ADDRESSES = [0, 1, 2, 3, 4].map(backend);
const UDP = healthSettings({ mode: 'UDP_PROBE', udpProbePayload: Uint8Array.of(1) });

const settings = fc
  .tuple(
    fc.constantFrom('request-response' as const, 'one-way' as const, undefined),
    fc.constantFrom(undefined, healthSettings({}), UDP),
  )
  .map(([exchange, health]) => passiveSettings(exchange, health));

const list = fc.subarray(ADDRESSES);
const which = fc.nat(4);

type Act = (bench: PassiveBench, audience: Audience) => void;

const refusal = (flow: fc.Arbitrary<number>): fc.Arbitrary<Act> =>
  fc
    .tuple(which, fc.array(flow, { minLength: 1, maxLength: 8 }))
    .map(([number, flows]) => (bench) => {
      for (const one of flows) if (bench.has(number)) bench.refuse(number, one);
    });

const traffic: fc.Arbitrary<Act> = fc
  .tuple(fc.nat(40), fc.array(which, { maxLength: 4 }), fc.nat(seconds(1)))
  .map(([count, silent, pause]) => (bench) => {
    for (let number = 0; number < 5; number += 1) {
      if (!bench.has(number)) continue;
      bench.forward(number, count);
      if (!silent.includes(number)) bench.answer(number, count);
    }
    bench.passes(microseconds(pause));
  });

const other: fc.Arbitrary<Act> = fc.oneof(
  fc
    .tuple(which, fc.constantFrom<ProbeResult>('up', 'down', 'unknown'))
    .map(([number, result]): Act => (bench) => {
      if (bench.has(number)) bench.probe(number, result);
    }),
  fc.tuple(which, fc.boolean()).map(([number, available]): Act => (bench, audience) => {
    if (!bench.has(number)) return;
    audience.available.set(number, available);
    bench.setAvailable(number, available);
  }),
  fc.nat(seconds(40)).map(
    (pause): Act =>
      (bench) =>
        bench.passes(microseconds(pause)),
  ),
);

const reconfiguration: fc.Arbitrary<Act> = fc
  .tuple(settings, list)
  .map(([given, backends]) => (bench, audience) => {
    bench.configure(given, backends);
    for (let number = 0; number < 5; number += 1) {
      if (!bench.has(number)) audience.available.delete(number);
    }
  });

/** Somebody who only listens. */
class Audience {
  readonly available = new Map<number, boolean>();
  readonly ejected = new Set<string>();
  private heard = 0;

  listen(bench: PassiveBench): void {
    for (const output of bench.log.slice(this.heard)) {
      const key = formatAddress(output.address);
      if (output.kind === 'Ejected') {
        expect(this.ejected.has(key), 'ejected once').toBe(false);
        this.ejected.add(key);
      }
      if (output.kind === 'Returned') expect(this.ejected.delete(key), 'was ejected').toBe(true);
    }
    this.heard = bench.log.length;
  }
}

test('laws: outputs tell the whole story, half of a cluster serves, and never nobody while somebody could', () => {
  const act = fc.oneof(
    { weight: 4, arbitrary: refusal(fc.nat(4)) },
    { weight: 4, arbitrary: traffic },
    { weight: 2, arbitrary: other },
  );
  fc.assert(
    fc.property(settings, fc.array(act, { maxLength: 80, size: 'max' }), (given, acts) => {
      const bench = new PassiveBench(given, 5);
      const audience = new Audience();
      for (const one of acts) {
        one(bench, audience);
        audience.listen(bench);
        expect(bench.passive.ejectedCount).toBe(audience.ejected.size);
        expect(audience.ejected.size).toBeLessThanOrEqual(5 * EJECTED_SHARE_MAX);
        checkSomebodyServes(bench, audience);
      }
    }),
  );
});

test('law: whatever happened and however the list changed, every ejection ends within the cap', () => {
  const act = fc.oneof(refusal(fc.nat(4)), traffic, other, reconfiguration);
  fc.assert(
    fc.property(settings, fc.array(act, { maxLength: 80, size: 'max' }), (given, acts) => {
      const bench = new PassiveBench(given, 5);
      const audience = new Audience();
      for (const one of acts) {
        one(bench, audience);
        checkSomebodyServes(bench, audience);
      }
      // What is suspected now may be ejected first, so once around.
      bench.passes(seconds(10));
      bench.passes(EJECTION_CAP);
      expect(bench.passive.ejectedCount).toBe(0);
      expect(bench.passive.nextWake()).toBeUndefined();
    }),
  );
});

test('law: who can forge refusals of two flows only achieves nothing, however many and whenever', () => {
  const act = fc.oneof(
    refusal(fc.constantFrom(1, 2)),
    fc.nat(seconds(4)).map(
      (pause): Act =>
        (bench) =>
          bench.passes(microseconds(pause)),
    ),
  );
  fc.assert(
    fc.property(settings, fc.array(act, { maxLength: 80, size: 'max' }), (given, acts) => {
      const bench = new PassiveBench(given, 5);
      for (const one of acts) one(bench, new Audience());
      expect(bench.log).toEqual([]);
    }),
  );
});

test('law: of a one-way cluster nobody is ejected for silence', () => {
  const act = fc.oneof(traffic, other);
  const oneWay: fc.Arbitrary<PassiveSettings> = settings.map((given) => ({
    ...given,
    exchange: 'one-way',
  }));
  fc.assert(
    fc.property(oneWay, fc.array(act, { maxLength: 80, size: 'max' }), (given, acts) => {
      const bench = new PassiveBench(given, 5);
      for (const one of acts) one(bench, new Audience());
      expect(bench.log).toEqual([]);
    }),
    { numRuns: 30 },
  );
});

function checkSomebodyServes(bench: PassiveBench, audience: Audience): void {
  const able = [0, 1, 2, 3, 4].filter(
    (number) => bench.has(number) && (audience.available.get(number) ?? true),
  );
  if (able.length === 0) return;
  const serving = able.filter((number) => !bench.passive.isEjected(backend(number)));
  expect(serving.length, 'somebody serves').toBeGreaterThan(0);
}
