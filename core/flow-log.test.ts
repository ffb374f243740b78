/** What is told of flows that end: everything of the right ones, no more lines than asked for, and how many were left out. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BusyProxy } from '../test/busy-proxy.ts';
import { ControlBench } from '../test/control-bench.ts';
import {
  addressOf,
  backendsOf,
  clusterSettings,
  configOf,
  listenerConfig,
} from '../test/plane-bench.ts';
import type { AccessLogSettings, ClusterSettings, Config } from './config.ts';
import type { Report } from './directives.ts';
import { isSampled, type EndedFlow } from './flow-log.ts';
import { closesByReason } from './metrics.ts';
import { instant, microseconds } from './time.ts';

const EVERY: AccessLogSettings = { oneIn: 1, linesPerSecond: 1_000_000 };

type Told = Extract<Report, { kind: 'FlowEnded' | 'FlowEndsSuppressed' }>;

describe('the end of a flow', () => {
  test('is told with all there was to it', () => {
    const bench = started(EVERY, { responses: 2 });
    exchange(bench, '10.1.0.1:7', 'question');
    bench.ports.clock = instant(1_500_000);
    reply(bench, 1, 'an answer');
    reply(bench, 1, 'and more');
    const told: EndedFlow = {
      flow: '0.1',
      listener: listenerConfig().address,
      cluster: 'c',
      client: addressOf('10.1.0.1:7'),
      local: undefined,
      backend: backendsOf(1)[0]!,
      reason: 'ResponsesReached',
      requests: 1,
      responses: 2,
      requestBytes: 8,
      responseBytes: 17,
      duration: microseconds(1_500_000),
      generation: 1,
      suppressed: 0,
    };
    expect(endsOf(bench)).toEqual([{ kind: 'FlowEnded', ...told }]);
  });

  test('is told by nobody unless asked for', () => {
    const bench = started(undefined, { responses: 1 });
    exchange(bench, '10.1.0.1:7', 'question');
    reply(bench, 1, 'answer');
    expect(endsOf(bench)).toEqual([]);
    expect(bench.plane.listeners.all[0]!.ledger).toBeUndefined();
  });

  test('names the configuration that it was admitted under, and the backend that it ended on', () => {
    const bench = started(EVERY, { onBackendRemoved: 'rebind', requests: 2 });
    exchange(bench, '10.1.0.1:7', 'one');
    bench.configure(config(EVERY, { requests: 2, backends: backendsOf(2) }));
    exchange(bench, '10.1.0.1:7', 'two');
    expect(endsOf(bench)).toMatchObject([
      { backend: { id: 'b2' }, generation: 1, requests: 2, requestBytes: 6 },
    ]);
  });

  test('that made way for the next one of its client is told of the old flow', () => {
    const bench = started(EVERY, { onBackendRemoved: 'close', requests: 2 });
    exchange(bench, '10.1.0.1:7', 'one');
    const left = { onBackendRemoved: 'close', requests: 2, backends: backendsOf(2) } as const;
    bench.configure(config(EVERY, left));
    // Both have the same slot, within one call.
    exchange(bench, '10.1.0.1:7', 'four');
    exchange(bench, '10.1.0.1:7', 'eleven');
    expect(endsOf(bench)).toMatchObject([
      { flow: '0.1', reason: 'BackendLost', backend: { id: 'b1' }, requestBytes: 3, generation: 1 },
      { flow: '0.2', reason: 'RequestsReached', requests: 2, requestBytes: 10, generation: 2 },
    ]);
  });
});

describe('an access log that is switched on while flows live', () => {
  test('does not claim to know their bytes, and learns those of the next', () => {
    const bench = started(undefined, { requests: 2 });
    exchange(bench, '10.1.0.1:7', 'unseen');
    bench.configure(config(EVERY, { requests: 2 }));
    exchange(bench, '10.1.0.1:7', 'seen');
    exchange(bench, '10.1.0.2:7', 'a');
    exchange(bench, '10.1.0.2:7', 'b');
    expect(endsOf(bench)).toMatchObject([
      { requests: 2, requestBytes: undefined, responseBytes: undefined, generation: undefined },
      { requests: 2, requestBytes: 2, responseBytes: 0, generation: 2 },
    ]);
  });

  test('and off again tells nothing more, and keeps nothing', () => {
    const bench = started(EVERY, { requests: 1 });
    exchange(bench, '10.1.0.1:7', 'a');
    bench.configure(config(undefined, { requests: 1 }));
    exchange(bench, '10.1.0.1:7', 'b');
    expect(endsOf(bench)).toHaveLength(1);
    expect(bench.plane.listeners.all[0]!.ledger).toBeUndefined();
  });

  test('covers listeners that come later or grow', () => {
    const bench = started(EVERY, { requests: 1 }, 1);
    bench.configure(config(EVERY, { requests: 1 }, 4, ['10.0.0.53:53', '10.0.0.54:53']));
    for (const port of [1, 2, 3]) exchange(bench, `10.1.0.1:${port}`, 'x');
    exchange(bench, '10.1.0.1:4', 'x', 1);
    expect(endsOf(bench)).toMatchObject([
      { flow: '0.1', requestBytes: 1 },
      { flow: '0.2', requestBytes: 1 },
      { flow: '0.3', requestBytes: 1 },
      { flow: '1.1', requestBytes: 1 },
    ]);
  });
});

describe('lines', () => {
  test('are no more in a second than allowed, and the next one tells how many were left out', () => {
    const bench = started({ oneIn: 1, linesPerSecond: 2 }, { requests: 1 });
    for (let port = 1; port <= 5; port += 1) exchange(bench, `10.1.0.1:${port}`, 'x');
    bench.ports.clock = instant(1_000_000);
    exchange(bench, '10.1.0.1:6', 'x');
    expect(suppressedIn(bench)).toEqual([0, 0, 3]);
  });

  test('that no line will tell of any more are told at the end', () => {
    const bench = started({ oneIn: 1, linesPerSecond: 1 }, {});
    for (let port = 1; port <= 4; port += 1) exchange(bench, `10.1.0.1:${port}`, 'x');
    bench.command({ kind: 'HardStop' });
    expect(endsOf(bench)).toMatchObject([
      { kind: 'FlowEnded', suppressed: 0 },
      { kind: 'FlowEndsSuppressed', suppressed: 3 },
    ]);
    expect(bench.reports.at(-1)).toMatchObject({ kind: 'Stopped' });
  });

  test('that were left out when it is switched off are told then', () => {
    const bench = started({ oneIn: 1, linesPerSecond: 1 }, { requests: 1 });
    for (let port = 1; port <= 3; port += 1) exchange(bench, `10.1.0.1:${port}`, 'x');
    bench.configure(config(undefined, { requests: 1 }));
    expect(endsOf(bench).at(-1)).toEqual({ kind: 'FlowEndsSuppressed', suppressed: 2 });
  });

  test('of one second are counted from its first line, for any times and any bound', () => {
    const gaps = fc.array(fc.integer({ min: 0, max: 900_000 }), { maxLength: 40 });
    fc.assert(
      fc.property(gaps, fc.integer({ min: 1, max: 4 }), (times, linesPerSecond) => {
        const bench = started({ oneIn: 1, linesPerSecond }, { requests: 1 });
        let [now, second, lines, left] = [0, -Infinity, 0, 0];
        const expected: number[] = [];
        for (const gap of times) {
          now += gap;
          bench.ports.clock = instant(now);
          exchange(bench, '10.1.0.1:1', 'x');
          if (now >= second + 1_000_000) [second, lines] = [now, 0];
          lines += 1;
          if (lines > linesPerSecond) left += 1;
          else [left] = [0, expected.push(left)];
        }
        expect(suppressedIn(bench)).toEqual(expected);
      }),
      { numRuns: 200 },
    );
  });
});

describe('a sample', () => {
  test('of any run of flows has as many as it should, but for a few', () => {
    const runs = fc.tuple(fc.integer({ min: 1, max: 2 ** 40 }), fc.integer({ min: 1, max: 200 }));
    fc.assert(
      fc.property(runs, ([first, oneIn]) => {
        let sampled = 0;
        for (let serial = first; serial < first + 2_000; serial += 1) {
          if (isSampled(serial, oneIn)) sampled += 1;
        }
        expect(Math.abs(sampled - 2_000 / oneIn)).toBeLessThanOrEqual(5);
      }),
    );
  });

  test('of one in two is not every other flow', () => {
    const chosen = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((serial) => isSampled(serial, 2));
    const steps = chosen.map((one, at) => at > 0 && one === chosen[at - 1]);
    expect(steps).toContain(true);
  });

  test('is the same flows that a whole log has', () => {
    const names = (oneIn: number): string[] => {
      const bench = started({ oneIn, linesPerSecond: 1_000 }, { requests: 1 });
      for (let port = 1; port <= 60; port += 1) exchange(bench, `10.1.0.1:${port}`, 'x');
      return endsOf(bench).flatMap((end) => (end.kind === 'FlowEnded' ? [end.flow] : []));
    };
    const all = names(1);
    expect(all).toHaveLength(60);
    const some = names(3);
    expect(some).toEqual(all.filter((name) => isSampled(Number(name.slice(2)), 3)));
    expect(some.length).toBeGreaterThan(15);
  });
});

test('over any busy run every flow is told once, and the sums are those of the counters', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_000_000 }), (seed) => {
      const bench = new ControlBench();
      const proxy = new BusyProxy(bench, seed, EVERY);
      for (let step = 0; step < 150; step += 1) proxy.step();
      bench.command({ kind: 'HardStop' });
      const ends = endsOf(bench).flatMap((end) => (end.kind === 'FlowEnded' ? [end] : []));
      const { totals } = bench.plane.listeners;
      const sum = (value: (end: EndedFlow) => number | undefined): number =>
        ends.reduce((total, end) => total + (value(end) ?? Number.NaN), 0);
      expect(new Set(ends.map(({ flow, listener }) => [flow, listener])).size).toBe(ends.length);
      expect(ends.length).toBe(totals.flowsCreated);
      expect(sum(({ requests }) => requests)).toBe(totals.datagramsIn);
      expect(sum(({ responses }) => responses)).toBe(totals.datagramsOut);
      expect(sum(({ requestBytes }) => requestBytes)).toBe(totals.bytesIn);
      expect(sum(({ responseBytes }) => responseBytes)).toBe(totals.bytesOut);
      const idle = ends.filter(({ reason }) => reason === 'Idle').length;
      expect(idle).toBe(closesByReason(totals)['idle'] ?? 0);
    }),
    { numRuns: 30 },
  );
});

function config(
  accessLog: AccessLogSettings | undefined,
  more: Partial<ClusterSettings>,
  maxFlows = 16,
  addresses: readonly string[] = ['10.0.0.53:53'],
): Config {
  const listeners = addresses.map((one) => listenerConfig({ address: addressOf(one), maxFlows }));
  return { ...configOf([clusterSettings(more)], listeners), accessLog };
}

function started(
  accessLog: AccessLogSettings | undefined,
  more: Partial<ClusterSettings>,
  maxFlows = 16,
): ControlBench {
  const bench = new ControlBench();
  bench.configure(config(accessLog, more, maxFlows));
  return bench;
}

function exchange(bench: ControlBench, client: string, payload: string, listener = 0): void {
  const { pump, plane } = bench;
  const { id } = plane.listeners.all[listener]!;
  pump.clientDatagram(id, addressOf(client), undefined, new TextEncoder().encode(payload));
  pump.endTurn();
}

function reply(bench: ControlBench, nth: number, payload: string): void {
  bench.pump.backendDatagram(bench.ports.opened[nth - 1]!, new TextEncoder().encode(payload));
  bench.pump.endTurn();
}

function endsOf({ reports }: ControlBench): Told[] {
  return reports.filter((one): one is Told => {
    return one.kind === 'FlowEnded' || one.kind === 'FlowEndsSuppressed';
  });
}

function suppressedIn(bench: ControlBench): number[] {
  return endsOf(bench).map(({ suppressed }) => suppressed);
}
