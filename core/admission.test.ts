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

  test('a flow spends from a bucket of its own: what its address spent before is not its concern', () => {
    const bench = benchOf({ rates: ratesOf({ datagramsPerSecond: 1, datagramsBurst: 2 }) });
    bench.turn(() => {
      for (const port of [1, 2, 3]) bench.client('new', `10.1.0.1:${port}`);
      // The address has spent its two, and one of two of this flow is left.
      for (const payload of ['again', 'over']) bench.client(payload, '10.1.0.1:1');
    });
    expect(bench.counters()).toMatchObject({ flowsCreated: 2, droppedDatagramRate: 2 });
    expect(bench.ports.delivered).toContain('u1 again');
    expect(bench.ports.delivered).not.toContain('u1 over');
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

describe('lists of blocks in a data plane', () => {
  const denied = { ...NO_SOURCE_RATES, deny: [{ base: ipv4(0x0a010001, 0), bits: 32 }] };

  test('a client that is kept out opens no flow, and is counted as Denied before anything is spent on it', () => {
    const bench = benchOf({ rates: { ...denied, ...ONE_FLOW } });
    bench.turn(() => {
      bench.client('no', A);
      bench.client('yes', B);
    });
    expect(bench.plane.flowCount).toBe(1);
    expect(bench.counters()).toMatchObject({
      droppedDenied: 1,
      droppedNewFlowRate: 0,
      flowsCreated: 1,
    });
  });

  test('its live flow is cut at once: nothing more is forwarded, and it ends by its idle time', () => {
    const bench = benchOf({});
    bench.turn(() => {
      bench.client('first', A);
      bench.client('first', B);
    });
    bench.turn(() =>
      bench.direct({ kind: 'SetCluster', settings: clusterSettings({ rates: denied }) }),
    );
    bench.pass(29);
    const calls = bench.turn(() => {
      bench.client('no', A);
      bench.client('yes', B);
    });
    expect(calls.filter((call) => call.startsWith('send'))).toEqual(['send u2 yes']);
    expect(bench.counters().droppedDenied).toBe(1);
    bench.timer(1);
    expect(bench.plane.flowCount).toBe(1);
  });

  test('and goes on when the list no longer names it', () => {
    const bench = benchOf({ rates: denied });
    const settings = clusterSettings();
    bench.turn(() => bench.direct({ kind: 'SetCluster', settings }));
    bench.turn(() => bench.client('yes', A));
    expect(bench.counters()).toMatchObject({ droppedDenied: 0, flowsCreated: 1 });
  });

  test('what an operator denies is denied though its answer would circle: one reason, counted once', () => {
    const backend = { ...NO_SOURCE_RATES, deny: [{ base: ipv4(0x0a000001, 0), bits: 32 }] };
    const bench = benchOf({ rates: backend });
    bench.turn(() => bench.client('loop', '10.0.0.1:53'));
    expect(bench.counters()).toMatchObject({ droppedDenied: 1, droppedInvalid: 0 });
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
