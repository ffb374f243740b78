/** Whatever happens, in whatever order: every datagram ends once, every socket has a flow, every gauge comes back to zero. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  addressOf,
  backendsOf,
  clusterSettings,
  configOf,
  listenerConfig,
  PlaneBench,
} from '../test/plane-bench.ts';
import { listenerId } from './brand.ts';
import type { LoadBalancing, LoadMetric } from './config.ts';
import type { SendFailed } from './ports.ts';
import { instant } from './time.ts';

test('conserves datagrams, sockets and timers through any mix of arrivals and failures', () => {
  fc.assert(
    fc.property(settings, fc.array(turns, { maxLength: 40 }), (first, plan) => {
      const bench = startBench(first);
      for (const turn of plan) play(bench, turn);
    }),
    { numRuns: 300 },
  );
});

test('comes to rest: when every flow has ended, nothing is open, armed or loaded', () => {
  fc.assert(
    fc.property(settings, fc.array(turns, { maxLength: 30 }), (first, plan) => {
      const bench = startBench(first);
      for (const turn of plan) play(bench, turn);
      bench.ports.openResults = [];
      bench.ports.fate = () => undefined;
      bench.timer(100);
      bench.turn(() => bench.allWritable());
      expect(bench.plane).toMatchObject({ flowCount: 0, waiting: 0 });
      expect(bench.ports.wake).toBeUndefined();
      expectIdleBackends(bench);
    }),
    { numRuns: 300 },
  );
});

test('stops with nothing open, whatever is going on, and admits nothing any more', () => {
  const stops = fc.constantFrom('Drain', 'Stop');
  fc.assert(
    fc.property(
      settings,
      fc.array(turns, { maxLength: 20 }),
      stops,
      fc.array(turns),
      (first, before, stop, afterwards) => {
        const bench = startBench(first);
        for (const turn of before) play(bench, turn);
        const deadline = instant(bench.ports.clock + 5_000_000);
        bench.turn(() =>
          bench.direct(stop === 'Stop' ? { kind: 'Stop' } : { kind: 'Drain', deadline }),
        );
        const admitted = admissions(bench);
        for (const turn of afterwards) play(bench, turn);
        bench.timer(5);
        expect(admissions(bench)).toBe(admitted);
        expect(bench.ports.open.size + bench.ports.listening.size).toBe(0);
        expect(bench.plane.waiting).toBe(0);
        expect(bench.reports.filter(({ kind }) => kind === 'Stopped')).toHaveLength(1);
      },
    ),
    { numRuns: 200 },
  );
});

const FRONTS = [0, 1];
const SOURCES = ['10.9.0.1:0', '10.9.0.2:0', '10.9.0.3:0'].map(addressOf);

type Event =
  | {
      readonly kind: 'client';
      readonly from: number;
      readonly front: number;
      readonly size: number;
    }
  | { readonly kind: 'backend'; readonly socket: number; readonly size: number }
  | { readonly kind: 'refused'; readonly socket: number }
  | { readonly kind: 'late'; readonly front: number }
  | { readonly kind: 'writable' }
  | { readonly kind: 'timer' }
  | { readonly kind: 'cluster'; readonly settings: Settings }
  | { readonly kind: 'no cluster' }
  | {
      readonly kind: 'listener';
      readonly front: number;
      readonly how: 'add' | 'update' | 'remove';
      readonly maxFlows: number;
    };

interface Settings {
  readonly loadBalancing: LoadBalancing;
  readonly loadMetric: LoadMetric;
  readonly requests: number;
  readonly responses: number;
  readonly sendProxyProtocol: boolean;
  readonly backends: readonly number[];
  readonly sources: number;
}

interface Turn {
  readonly passes: number;
  readonly events: readonly Event[];
  readonly opens: readonly (string | undefined)[];
  readonly fates: readonly (SendFailed['cause'] | undefined)[];
}

const settings: fc.Arbitrary<Settings> = fc.record({
  loadBalancing: fc.constantFrom<LoadBalancing[]>(
    'ROUND_ROBIN',
    'LEAST_LOADED',
    'POWER_OF_TWO',
    'HRW',
  ),
  loadMetric: fc.constantFrom<LoadMetric[]>('CONNECTIONS', 'REQUESTS'),
  requests: fc.nat({ max: 3 }),
  responses: fc.nat({ max: 3 }),
  sendProxyProtocol: fc.boolean(),
  backends: fc.uniqueArray(fc.integer({ min: 1, max: 5 }), { maxLength: 4 }),
  sources: fc.nat({ max: 3 }),
});

const front = fc.constantFrom(...FRONTS);
const size = fc.constantFrom(0, 1, 9, 10, 11);
const socket = fc.nat({ max: 30 });

const events: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('client'), from: fc.nat({ max: 5 }), front, size }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('backend'), socket, size }) },
  fc.record({ kind: fc.constant('refused'), socket }),
  fc.record({ kind: fc.constant('late'), front }),
  fc.record({ kind: fc.constant('timer') }),
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('writable') }) },
  fc.record({ kind: fc.constant('cluster'), settings }),
  fc.record({ kind: fc.constant('no cluster') }),
  fc.record({
    kind: fc.constant('listener'),
    front,
    how: fc.constantFrom('add', 'update', 'remove'),
    maxFlows: fc.constantFrom(0, 1, 3, 6),
  }),
);

const turns: fc.Arbitrary<Turn> = fc.record({
  passes: fc.constantFrom(0, 0, 1, 4, 5, 20),
  events: fc.array(events, { maxLength: 8 }),
  opens: fc.array(fc.constantFrom(undefined, undefined, 'EMFILE', 'EADDRNOTAVAIL', 'EADDRINUSE'), {
    maxLength: 4,
  }),
  fates: fc.array(fc.constantFrom(undefined, undefined, 'blocked', 'error', 'refused'), {
    maxLength: 6,
  }),
});

function startBench(first: Settings): PlaneBench {
  const listeners = FRONTS.map(() => listenerConfig({ maxFlows: 3, maxRxDatagramSize: 10 }));
  return new PlaneBench(configOf([clusterOf(first)], listeners));
}

function clusterOf({ backends, sources, ...rest }: Settings): ReturnType<typeof clusterSettings> {
  const upstreamSources = SOURCES.slice(0, sources);
  return clusterSettings({ ...rest, upstreamSources, backends: backendsOf(...backends) });
}

/** One turn; the bench checks its laws at the end of each. */
function play(bench: PlaneBench, turn: Turn): void {
  bench.pass(turn.passes);
  bench.ports.openResults = [...turn.opens];
  bench.ports.fate = (number) => turn.fates[number];
  bench.turn(() => turn.events.forEach((event) => happen(bench, event)));
}

function happen(bench: PlaneBench, event: Event): void {
  switch (event.kind) {
    case 'client':
      return bench.client('x'.repeat(event.size), `10.1.0.1:${1_000 + event.from}`, event.front);
    case 'backend':
      return someSocket(bench, event.socket, (nth) => bench.backend('y'.repeat(event.size), nth));
    case 'refused':
      return someSocket(bench, event.socket, (nth) => bench.pump.refused(bench.socket(nth)));
    case 'late':
      return bench.pump.lateSendFailure(listenerId(event.front));
    case 'writable':
      return bench.allWritable();
    case 'timer':
      return bench.fire();
    case 'cluster':
      return bench.direct({ kind: 'SetCluster', settings: clusterOf(event.settings) });
    case 'no cluster':
      return bench.direct({ kind: 'RemoveCluster', cluster: 'c' });
    case 'listener':
      return directListener(bench, event.front, event.how, event.maxFlows);
  }
}

/** As a control plane would: it knows who is there. */
function directListener(
  bench: PlaneBench,
  number: number,
  how: 'add' | 'update' | 'remove',
  maxFlows: number,
): void {
  const listener = listenerId(number);
  const config = listenerConfig({ maxFlows, maxRxDatagramSize: 10 });
  const isThere = bench.isListening(listener);
  if (how === 'remove') return bench.direct({ kind: 'RemoveListener', listener });
  if (how === 'update') return bench.direct({ kind: 'UpdateListener', listener, config });
  if (!isThere) bench.direct({ kind: 'AddListener', listener, config });
}

/** Open, long closed, or never open at all. */
function someSocket(bench: PlaneBench, pick: number, act: (nth: number) => void): void {
  const { opened } = bench.ports;
  if (opened.length > 0) act(1 + (pick % opened.length));
}

function admissions(bench: PlaneBench): number {
  return bench.total('flowsCreated');
}

/** New flows take idle backends in the order of the list: one that still counted a flow would be passed over. */
function expectIdleBackends(bench: PlaneBench): void {
  const calm: Settings = {
    loadBalancing: 'LEAST_LOADED',
    loadMetric: 'CONNECTIONS',
    requests: 0,
    responses: 0,
    sendProxyProtocol: false,
    backends: [1, 2, 3, 4, 5],
    sources: 0,
  };
  bench.turn(() => {
    bench.direct({ kind: 'SetCluster', settings: clusterOf(calm) });
    for (const at of FRONTS) directListener(bench, at, 'update', 3);
    for (const at of FRONTS) directListener(bench, at, 'add', 3);
  });
  const calls = bench.turn(() => {
    for (let from = 0; from < 5; from += 1) {
      bench.client('z', `10.2.0.${from + 1}:1`, from < 3 ? 0 : 1);
    }
  });
  const opens = calls.filter((call) => call.startsWith('open')).map((call) => call.split(' ')[2]);
  expect(opens).toEqual([1, 2, 3, 4, 5].map((n) => `10.0.0.${n}:53`));
}
