/** What is counted, as series: complete, exact, bounded, and never less than before. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { figuresOf, listenerId } from '../../core/index.ts';
import { configs } from '../../test/config-arbitraries.ts';
import { ControlBench } from '../../test/control-bench.ts';
import { addressOf, backendsOf, clusterSettings, configOf } from '../../test/plane-bench.ts';
import { NO_TRAINS } from '../planes/host.ts';
import { FAMILIES } from './catalogue.ts';
import { BACKENDS_SHOWN_MAX, readPlanes, type Measured, type Readings } from './readings.ts';

const steps = fc.oneof(
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reload' as const), config: configs }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom('client' as const, 'reply' as const, 'time' as const),
      which: fc.nat(7),
    }),
  },
);

test('over any reloads under traffic no counter shrinks or is lost, and every datagram ends once', () => {
  let grown = 0;
  fc.assert(
    fc.property(configs, fc.array(steps, { maxLength: 40, size: 'max' }), (first, plan) => {
      const bench = new ControlBench();
      bench.configure(first);
      let before = countersOf(readPlanes(measured(bench)));
      for (const step of plan) {
        play(bench, step);
        const readings = readPlanes(measured(bench));
        const now = countersOf(readings);
        const shrunk = [...before].filter(([series, value]) => (now.get(series) ?? -1) < value);
        expect(shrunk).toEqual([]);
        expectConserved(readings);
        expect(sumOf(readings, 'sozu_udp_active_flows')).toBe(bench.plane.flowCount);
        before = now;
      }
      grown += sumOf(readPlanes(measured(bench)), 'sozu_udp_datagrams_forwarded_total');
    }),
    { numRuns: 100 },
  );
  expect(grown).toBeGreaterThan(20);
});

test('a listener that is gone and comes back, and a cluster, count on from where they were', () => {
  const bench = new ControlBench();
  const served = configOf([clusterSettings({ backends: backendsOf(1) })]);
  bench.configure(served);
  bench.ask('10.9.0.1:1');
  bench.configure({ ...served, listeners: [], clusters: [] });
  bench.configure(served);
  // It has another number by now.
  const id = bench.status().listeners[0]?.listener ?? listenerId(0);
  bench.pump.clientDatagram(id, addressOf('10.9.0.1:2'), undefined, Uint8Array.of(1));
  bench.pump.endTurn();
  const readings = readPlanes(measured(bench));
  expect(sumOf(readings, 'sozu_udp_datagrams_received_client_total')).toBe(2);
  expect(readings.get('sozu_udp_datagrams_received_client_total')).toHaveLength(
    served.listeners.length,
  );
  expect(sumOf(readings, 'sozu_udp_config_generation')).toBe(3);
});

test('only metrics of the catalogue are read, with the labels it says', () => {
  const bench = new ControlBench();
  bench.configure(configOf([clusterSettings({ backends: backendsOf(1, 2) })]));
  bench.ask('10.9.0.1:1');
  for (const [name, series] of readPlanes(measured(bench))) {
    const family = FAMILIES.find((one) => one.name === name);
    for (const { labels } of series) {
      expect(Object.keys(labels).sort(), name).toEqual([...(family?.labels ?? ['none'])].sort());
    }
  }
});

test('flows that have closed are in the histogram of how long they lasted', () => {
  const bench = new ControlBench();
  bench.configure(configOf([clusterSettings({ backends: backendsOf(1), responses: 1 })]));
  bench.ask('10.9.0.1:1');
  bench.ask('10.9.0.1:2');
  bench.runUntil(bench.ports.clock / 1_000_000 + 3);
  play(bench, { kind: 'reply', which: 0 });
  const [series] = readPlanes(measured(bench)).get('sozu_udp_flow_duration_seconds') ?? [];
  expect(series).toMatchObject({ value: 1, histogram: { sum: 3 } });
  const full = series?.histogram?.buckets.filter(({ count }) => count > 0).map(({ upTo }) => upTo);
  expect(full).toEqual([10, 30, 120, 600, 3_600, Infinity]);
});

test('more backends than have series of their own are one together', () => {
  const bench = new ControlBench();
  const many = Array.from({ length: BACKENDS_SHOWN_MAX + 20 }, (_, n) => ({
    id: `b${n}`,
    address: addressOf(`10.1.${n >> 8}.${n & 255}:53`),
    weight: 1,
    backup: false,
  }));
  bench.configure(configOf([clusterSettings({ backends: many })]));
  const readings = readPlanes(measured(bench));
  const shown = readings.get('sozu_udp_backend_available') ?? [];
  expect(shown).toHaveLength(BACKENDS_SHOWN_MAX + 1);
  expect(shown.at(-1)).toEqual({ labels: { cluster: 'c', backend: 'other' }, value: 20 });
  expect(sumOf(readings, 'sozu_udp_backends_folded')).toBe(20);
  expect(sumOf(readings, 'sozu_udp_backends')).toBe(many.length);
});

test('backends are told apart by what is known of them', () => {
  const bench = new ControlBench();
  bench.configure(configOf([clusterSettings({ backends: backendsOf(1, 2, 3) })]));
  const address = backendsOf(2)[0]!.address;
  expect(bench.command({ kind: 'DisableBackend', cluster: 'c', address }).ok).toBe(true);
  const readings = readPlanes(measured(bench));
  const states = readings.get('sozu_udp_backends') ?? [];
  expect(states.map(({ labels, value }) => [labels.state, value])).toEqual([
    ['available', 2],
    ['down', 0],
    ['draining', 0],
    ['drained', 0],
    ['disabled', 1],
  ]);
});

function play(
  bench: ControlBench,
  step: typeof steps extends fc.Arbitrary<infer S> ? S : never,
): void {
  if (step.kind === 'reload') return bench.configure(step.config);
  const { which } = step;
  if (step.kind === 'time') {
    bench.runUntil(bench.ports.clock / 1_000_000 + which);
  } else if (step.kind === 'client') {
    const client = addressOf(`10.9.0.1:${1_000 + which}`);
    bench.pump.clientDatagram(listenerId(which % 4), client, undefined, Uint8Array.of(which));
    bench.pump.endTurn();
  } else {
    const socket = bench.ports.opened[which];
    if (socket === undefined) return;
    bench.pump.backendDatagram(socket, Uint8Array.of(which));
    bench.pump.endTurn();
  }
}

function measured({ plane, control }: ControlBench): Measured {
  const { clusterSums, condition } = control;
  return { figures: figuresOf(plane), trains: NO_TRAINS, clusterSums, condition };
}

/** Every counter by name and labels. */
function countersOf(readings: Readings): Map<string, number> {
  const counters = new Map<string, number>();
  for (const { name, kind } of FAMILIES) {
    if (kind !== 'counter') continue;
    for (const { labels, value } of readings.get(name) ?? []) {
      counters.set(`${name} ${JSON.stringify(labels)}`, value);
    }
  }
  return counters;
}

function expectConserved(readings: Readings): void {
  const received =
    sumOf(readings, 'sozu_udp_datagrams_received_client_total') +
    sumOf(readings, 'sozu_udp_datagrams_received_backend_total');
  const ended =
    sumOf(readings, 'sozu_udp_datagrams_forwarded_total') +
    sumOf(readings, 'sozu_udp_datagrams_returned_total') +
    sumOf(readings, 'sozu_udp_datagrams_dropped_total');
  expect(ended + sumOf(readings, 'sozu_udp_queued_datagrams')).toBe(received);
}

function sumOf(readings: Readings, name: string): number {
  return (readings.get(name) ?? []).reduce((sum, { value }) => sum + value, 0);
}
