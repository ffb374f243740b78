/** A train is its datagrams: whatever the configuration, and whatever fails, nothing else happens than one by one. */
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
import { listenerId } from './brand.ts';
import { CLUSTER_DEFAULTS, type ClusterSettings } from './config.ts';
import type { Report } from './directives.ts';
import type { ListenerCounters } from './metrics.ts';
import type { SendFailed } from './ports.ts';
import { milliseconds, seconds } from './time.ts';
import { datagramsIn, eachDatagram } from './train.ts';

const { rates: NO_RATES } = CLUSTER_DEFAULTS;

describe('a train', () => {
  test('does what its datagrams do one by one, to the last port call, counter and report', () => {
    let taken = 0;
    let refused = 0;
    fc.assert(
      fc.property(clusters, fc.array(turns, { maxLength: 30 }), (cluster, plan) => {
        const [whole, single] = [benchOf(cluster), benchOf(cluster)];
        for (const turn of plan) {
          for (const bench of [whole, single]) {
            bench.pass(turn.passes);
            bench.ports.openResults = [...turn.opens];
            bench.ports.fate = (number) => turn.fates[number];
          }
          const push = (event: Event): void => {
            const isTaken = pushTrain(whole, event);
            if (isTaken === true) taken += 1;
            if (isTaken === false) refused += 1;
          };
          const calls = whole.turn(() => turn.events.forEach((one) => happen(whole, one, push)));
          const one = (event: Event): void => pushOneByOne(single, event);
          const expected = single.turn(() => turn.events.forEach((e) => happen(single, e, one)));
          expect(calls).toEqual(expected);
          expect(seenOf(whole)).toEqual(seenOf(single));
        }
      }),
      { numRuns: 400 },
    );
    expect(Math.min(taken, refused)).toBeGreaterThan(100);
  });

  test.each([
    ['of nobody that has a flow', {}, '10.1.0.2:1000', 2],
    ['for a cluster that counts answers', { responses: 9 }, '10.1.0.1:1000', 2],
    ['for a cluster that counts questions', { requests: 9 }, '10.1.0.1:1000', 2],
    ['that wants headers', { sendProxyProtocol: true }, '10.1.0.1:1000', 2],
    [
      'that is slowed down',
      { rates: { ...NO_RATES, datagramsPerSecond: 99, datagramsBurst: 9 } },
      '10.1.0.1:1000',
      2,
    ],
    ['of datagrams that are too large', {}, '10.1.0.1:1000', 2_000],
  ] as const)('%s is not taken, and changes nothing', (_, settings, from, unit) => {
    const bench = new PlaneBench(configOf([clusterSettings(settings)]));
    bench.turn(() => bench.client('first'));
    const before = { ...bench.counters() };
    const payload = new Uint8Array(2 * unit);
    const calls = bench.turn(() => {
      const src = addressOf(from);
      expect(bench.pump.clientTrain(listenerId(0), src, undefined, payload, unit)).toBe(false);
    });
    expect(calls.filter((call) => !call.startsWith('wake'))).toEqual(['flush']);
    expect(bench.counters()).toEqual(before);
  });

  test('of a backend is not taken where its answers are held against a credit', () => {
    const amplification = { factor: 3, floor: 0 };
    const bench = new PlaneBench(configOf([clusterSettings({ amplification })]));
    bench.turn(() => bench.client('12'));
    const push = (): boolean => bench.pump.backendTrain(bench.socket(1), new Uint8Array(4), 2);
    bench.turn(() => expect(push()).toBe(false));
    bench.turn(() => bench.client('12'));
    bench.turn(() => expect(push()).toBe(true));
    expect(bench.counters()).toMatchObject({ returned: 2, backendReceived: 2, bytesOut: 4 });
  });
});

test('datagrams of a train are counted by bytes, the shorter last one too', () => {
  const train = Uint8Array.from({ length: 7 }, (_, at) => at);
  const seen: number[][] = [];
  eachDatagram(train, 3, (one) => seen.push([...one]));
  expect(seen).toEqual([[0, 1, 2], [3, 4, 5], [6]]);
  expect([datagramsIn(train, 3), datagramsIn(train, 7), datagramsIn(train, 8)]).toEqual([3, 1, 1]);
});

type Event =
  | { readonly kind: 'client'; readonly from: number; readonly size: number; readonly unit: number }
  | {
      readonly kind: 'backend';
      readonly socket: number;
      readonly size: number;
      readonly unit: number;
    }
  | { readonly kind: 'down'; readonly backend: number; readonly isDown: boolean }
  | { readonly kind: 'refused'; readonly socket: number }
  | { readonly kind: 'writable' }
  | { readonly kind: 'timer' }
  | { readonly kind: 'cluster'; readonly settings: Partial<ClusterSettings> };

interface Turn {
  readonly passes: number;
  readonly events: readonly Event[];
  readonly opens: readonly (string | undefined)[];
  readonly fates: readonly (SendFailed['cause'] | undefined)[];
}

/** Most of them count nothing, so that most trains go as one. */
const clusters: fc.Arbitrary<Partial<ClusterSettings>> = fc.record({
  loadBalancing: fc.constantFrom('ROUND_ROBIN', 'LEAST_LOADED'),
  loadMetric: fc.constantFrom('CONNECTIONS', 'REQUESTS'),
  requests: fc.constantFrom(0, 0, 0, 3),
  responses: fc.constantFrom(0, 0, 0, 3),
  sendProxyProtocol: fc.constantFrom(false, false, false, true),
  rates: fc.constantFrom(NO_RATES, NO_RATES, {
    ...NO_RATES,
    datagramsPerSecond: 2,
    datagramsBurst: 2,
  }),
  exchange: fc.constantFrom('request-response', 'one-way'),
  onBackendDown: fc.constantFrom('pin', 'rebind', 'close'),
  amplification: fc.constantFrom({ factor: 0, floor: 0 }, { factor: 2, floor: 3 }),
  // They are told with every datagram.
  requestsLinger: fc.boolean(),
  lateReplyGrace: fc.constantFrom(milliseconds(0), milliseconds(500)),
});

const unit = fc.constantFrom(1, 4, 9, 11);
const size = fc.integer({ min: 1, max: 30 });
const socket = fc.nat({ max: 9 });

const events: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('client'), from: fc.nat({ max: 3 }), size, unit }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('backend'), socket, size, unit }) },
  fc.record({ kind: fc.constant('down'), backend: fc.constantFrom(1, 2), isDown: fc.boolean() }),
  fc.record({ kind: fc.constant('refused'), socket }),
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('writable') }) },
  fc.record({ kind: fc.constant('timer') }),
  fc.record({ kind: fc.constant('cluster'), settings: clusters }),
);

const turns: fc.Arbitrary<Turn> = fc.record({
  passes: fc.constantFrom(0, 0, 1, 20),
  events: fc.array(events, { maxLength: 6 }),
  opens: fc.array(fc.constantFrom(undefined, undefined, undefined, 'EMFILE'), { maxLength: 2 }),
  fates: fc.array(fc.constantFrom(undefined, undefined, undefined, 'blocked', 'error', 'refused'), {
    maxLength: 8,
  }),
});

function benchOf(settings: Partial<ClusterSettings>): PlaneBench {
  const times = { frontTimeout: seconds(30), backTimeout: seconds(7) };
  const listeners = [listenerConfig({ maxFlows: 3, maxRxDatagramSize: 10, ...times })];
  return new PlaneBench(configOf([clusterOf(settings)], listeners));
}

function clusterOf(settings: Partial<ClusterSettings>): ClusterSettings {
  return clusterSettings({ ...settings, backends: backendsOf(1, 2) });
}

function happen(bench: PlaneBench, event: Event, push: (event: Event) => void): void {
  switch (event.kind) {
    case 'client':
    case 'backend':
      return push(event);
    case 'down': {
      const address = addressOf(`10.0.0.${event.backend}:53`);
      const healthy = !event.isDown;
      return bench.direct({ kind: 'SetHealth', cluster: 'c', address, healthy });
    }
    case 'refused':
      return someSocket(bench, event.socket, (nth) => bench.pump.refused(bench.socket(nth)));
    case 'writable':
      return bench.allWritable();
    case 'timer':
      return bench.fire();
    case 'cluster':
      return bench.direct({ kind: 'SetCluster', settings: clusterOf(event.settings) });
  }
}

/** As a driver does: as one, or else one by one. Undefined: nothing was pushed. */
function pushTrain(bench: PlaneBench, event: Event): boolean | undefined {
  let isTaken: boolean | undefined;
  if (event.kind === 'client') {
    const [src, payload] = [sourceOf(event.from), lettersOf(event.size)];
    isTaken = bench.pump.clientTrain(listenerId(0), src, undefined, payload, event.unit);
  } else if (event.kind === 'backend') {
    someSocket(bench, event.socket, (nth) => {
      const payload = lettersOf(event.size);
      isTaken = bench.pump.backendTrain(bench.socket(nth), payload, event.unit);
    });
  }
  if (isTaken === false) pushOneByOne(bench, event);
  return isTaken;
}

function pushOneByOne(bench: PlaneBench, event: Event): void {
  if (event.kind === 'client') {
    eachDatagram(lettersOf(event.size), event.unit, (one) => {
      bench.pump.clientDatagram(listenerId(0), sourceOf(event.from), undefined, one);
    });
  } else if (event.kind === 'backend') {
    someSocket(bench, event.socket, (nth) => {
      eachDatagram(lettersOf(event.size), event.unit, (one) => {
        bench.pump.backendDatagram(bench.socket(nth), one);
      });
    });
  }
}

function someSocket(bench: PlaneBench, pick: number, act: (nth: number) => void): void {
  const { opened } = bench.ports;
  if (opened.length > 0) act(1 + (pick % opened.length));
}

function sourceOf(from: number): ReturnType<typeof addressOf> {
  return addressOf(`10.1.0.1:${1_000 + from}`);
}

/** No two neighbours alike. */
function lettersOf(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, at) => 97 + (at % 26));
}

function seenOf(bench: PlaneBench): {
  readonly counters: Readonly<ListenerCounters>;
  readonly reports: readonly Report[];
  readonly flows: unknown;
} {
  const manager = bench.plane.managerOf(listenerId(0));
  const flows = [0, 1, 2]
    .map((slot) => manager?.slotOfSerial(slot + 1))
    .map((slot) => (slot === undefined ? undefined : manager?.flow(slot)));
  return { counters: bench.counters(), reports: bench.reports, flows };
}
