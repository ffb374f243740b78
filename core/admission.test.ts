/** Who is let in, through a whole data plane: in which order it is decided, what each no is called, and whom it spares. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addressOf,
  backendsOf,
  clusterSettings,
  configOf,
  listenerConfig,
  PlaneBench,
} from '../test/plane-bench.ts';
import { ipv4, type Address } from './address.ts';
import { listenerId } from './brand.ts';
import { Clusters } from './clusters.ts';
import { NO_SOURCE_RATES, type ClusterSettings, type SourceRates } from './config.ts';
import type { Refusal } from './contract.ts';
import { Fates } from './fates.ts';
import { PLACEMENT_SEED } from './hash.ts';
import { GuardedBackends, LoopGuard } from './loop-guard.ts';
import { createRandom } from './random.ts';
import { instant } from './time.ts';

const A = '10.1.0.1:1000';
const B = '10.1.0.2:1000';
const seed = { first: 1, second: 2 };
const ONE_FLOW = { newFlowsPerSecond: 1, newFlowsBurst: 1 };
const ONE_DATAGRAM = { datagramsPerSecond: 1, datagramsBurst: 1 };

describe('the order in which a source without a flow is refused', () => {
  const now = instant(0);
  const client = addressOf(A);
  const backend = addressOf('10.0.0.1:53');
  const guarded = (): GuardedBackends => {
    const clusters = new Clusters(PLACEMENT_SEED, createRandom({ high: 3, low: 4 }), seed);
    clusters.set(clusterSettings({ backends: backendsOf(1), rates: ratesOf(ONE_FLOW) }));
    const guard = new LoopGuard([], seed);
    guard.learn([], clusters.all);
    const backends = new GuardedBackends(guard, new Fates());
    backends.cluster = clusters.at(0);
    return backends;
  };

  test('a loop, then the machine, then its rates; and no other reason spends of the rates', () => {
    const backends = guarded();
    const asked = (from: Address): Refusal | undefined => backends.refuses(from, undefined, now);
    backends.hold = 'NoDescriptor';
    expect([asked(backend), asked(client), asked(client)]).toEqual([
      'Loop',
      'NoDescriptor',
      'NoDescriptor',
    ]);
    backends.hold = undefined;
    expect([asked(backend), asked(client), asked(client)]).toEqual([
      'Loop',
      undefined,
      'NewFlowRate',
    ]);
    backends.hold = 'PortExhausted';
    expect(asked(client)).toBe('PortExhausted');
  });

  test('a listener that leads nowhere asks nobody', () => {
    const backends = guarded();
    backends.cluster = undefined;
    expect([backends.denies(client), backends.refuses(client, undefined, now)]).toEqual([
      false,
      undefined,
    ]);
  });
});

describe('rates in a data plane', () => {
  test('a source over its rate opens no flow, is counted by the reason, and costs others nothing', () => {
    const bench = benchOf({ rates: ratesOf(ONE_FLOW) });
    bench.turn(() => {
      for (const port of [1, 2, 3]) bench.client('a', `10.1.0.1:${port}`);
      bench.client('b', B);
    });
    expect(bench.plane.flowCount).toBe(2);
    expect(bench.counters()).toMatchObject({
      droppedNewFlowRate: 2,
      flowsCreated: 2,
      flowsShed: 0,
    });
  });

  test('the datagram rate has a name of its own', () => {
    const bench = benchOf({ rates: ratesOf(ONE_DATAGRAM) });
    bench.turn(() => {
      for (const port of [1, 2]) bench.client('a', `10.1.0.1:${port}`);
    });
    expect(bench.counters()).toMatchObject({ droppedDatagramRate: 1, flowsCreated: 1 });
  });

  test('caps on live flows hold beside the rates: the rate is asked first, and spends for a flow the cap refuses', () => {
    const rates = ratesOf({ newFlowsPerSecond: 1, newFlowsBurst: 3 });
    const bench = benchOf({ rates, maxFlowsPerIp: 2 });
    bench.turn(() => {
      for (const port of [1, 2, 3, 4]) bench.client('a', `10.1.0.1:${port}`);
    });
    expect(bench.counters()).toMatchObject({
      flowsCreated: 2,
      flowsShedSourceLimit: 1,
      droppedShed: 1,
      droppedNewFlowRate: 1,
    });
  });

  test('caps on the flows of a subnet hold beside the rates', () => {
    const bench = benchOf({ rates: ratesOf(ONE_FLOW), maxFlowsPerSubnet: 3 });
    bench.turn(() => {
      for (let host = 1; host <= 5; host += 1) bench.client('a', `10.1.0.${host}:1`);
      bench.client('a', '10.1.1.1:1');
      bench.client('a', '10.1.1.1:2');
    });
    expect(bench.counters()).toMatchObject({
      flowsCreated: 4,
      flowsShedSourceLimit: 2,
      droppedNewFlowRate: 1,
    });
  });

  test('a reload with the same rates gives nobody a second burst', () => {
    const rates = ratesOf(ONE_FLOW);
    const bench = benchOf({ rates });
    bench.turn(() => bench.client('a', '10.1.0.1:1'));
    const settings = clusterSettings({ rates: { ...rates }, backends: backendsOf(1, 2, 3) });
    bench.turn(() => bench.direct({ kind: 'SetCluster', settings }));
    bench.turn(() => bench.client('a', '10.1.0.1:2'));
    expect(bench.counters()).toMatchObject({ flowsCreated: 1, droppedNewFlowRate: 1 });
  });
});

test('an established flow loses nothing, whatever spoofed sources do to sketches of one column', () => {
  const spoofed = fc.array(fc.tuple(fc.integer(), fc.integer({ min: 1, max: 65_535 })), {
    maxLength: 40,
  });
  fc.assert(
    fc.property(spoofed, (sources) => {
      const rates = ratesOf({ ...ONE_FLOW, newFlowsBurst: 2, columns: 1 });
      const bench = benchOf({ rates });
      bench.turn(() => bench.client('good', A));
      bench.turn(() => {
        for (const [word, port] of sources) {
          bench.pump.clientDatagram(listenerId(0), ipv4(word, port), undefined, Uint8Array.of(1));
          bench.client('good', A);
        }
      });
      const arrived = bench.ports.delivered.filter((line) => line.endsWith(' good'));
      expect(arrived.length).toBe(1 + sources.length);
      // And the sketch was full: whoever has no flow is refused.
      if (bench.counters().flowsCreated === 2) {
        bench.turn(() => bench.client('late', B));
        expect(bench.counters().droppedNewFlowRate).toBeGreaterThan(0);
      }
    }),
  );
});

function benchOf(settings: Partial<ClusterSettings>): PlaneBench {
  return new PlaneBench(configOf([clusterSettings(settings)], [listenerConfig()]));
}

function ratesOf(rates: Partial<SourceRates>): SourceRates {
  return { ...NO_SOURCE_RATES, ...rates };
}
