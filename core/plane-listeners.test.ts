/** Listeners that come, change and go while datagrams flow. */
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
import type { Directive } from './directives.ts';

const REMOVE: Directive = { kind: 'RemoveListener', listener: listenerId(0) };

describe('a listener that is removed', () => {
  test('B3: closes its flows and its socket, after what was sent in this turn has left', () => {
    const bench = new PlaneBench(configOf());
    const calls = bench.turn(() => {
      bench.client('a');
      bench.direct(REMOVE);
    });
    expect(calls).toEqual(['open u1 10.0.0.1:53', 'send u1 a', 'flush', 'close u1', 'unlisten 0']);
    expect(bench.reports.at(-1)).toEqual({
      kind: 'ListenerClosed',
      generation: 1,
      listener: listenerId(0),
      address: addressOf('10.0.0.53:53'),
      flowsClosed: 1,
    });
    expect(bench.plane.flowCount).toBe(0);
    expect(bench.plane.countersOf(listenerId(0))).toBeUndefined();
  });

  test('admits nothing more in its last turn, and every datagram of it ends once', () => {
    const bench = new PlaneBench(configOf());
    bench.turn(() => bench.client('a'));
    bench.turn(() => {
      bench.direct(REMOVE);
      bench.client('b');
      bench.backend('c');
    });
    const { retired } = bench.plane.listeners;
    expect(retired).toMatchObject({ droppedShed: 1, droppedUnknownFlow: 1, forwarded: 1 });
  });

  test('leaves its counts to the totals, failures of its last flush included', () => {
    const bench = new PlaneBench(
      configOf([clusterSettings()], [listenerConfig(), listenerConfig()]),
    );
    bench.turn(() => [0, 1].forEach((front) => bench.client('a', '10.1.0.1:1', front)));
    const before = bench.total('forwarded');
    bench.ports.fate = (number) => (['error', 'blocked', undefined] as const)[number];
    bench.turn(() => {
      for (const payload of ['b', 'c']) bench.client(payload, `10.1.0.2:${payload.length}`);
      bench.backend('d', 1);
      bench.direct(REMOVE);
    });
    expect(bench.plane.listeners.retired).toMatchObject({ forwarded: 1, returned: 1 });
    expect(bench.plane.listeners.retired).toMatchObject({ droppedSendError: 1, droppedWqFull: 1 });
    expect(bench.total('forwarded')).toBe(before);
  });

  test('takes what waited for its socket with it', () => {
    const bench = new PlaneBench(configOf());
    bench.turn(() => bench.client('a'));
    bench.ports.fate = () => 'blocked';
    bench.turn(() => bench.backend('b'));
    expect(bench.plane.waiting).toBe(1);
    bench.turn(() => bench.direct(REMOVE));
    expect(bench.plane.waiting).toBe(0);
    expect(bench.plane.listeners.retired.droppedClosed).toBe(1);
  });

  test('is nobody afterwards, whatever is heard of its sockets; what it had sent is counted still', () => {
    const bench = new PlaneBench(configOf());
    bench.turn(() => bench.client('a'));
    bench.turn(() => bench.direct(REMOVE));
    const counted = { ...bench.plane.listeners.retired };
    const calls = bench.turn(() => {
      const socket = bench.socket(1);
      bench.client('b');
      bench.backend('c');
      bench.pump.refused(socket);
      bench.pump.upstreamWritable(socket);
      bench.pump.listenerWritable(listenerId(0));
      bench.pump.lateSendFailure(listenerId(0));
      bench.direct(REMOVE);
      bench.direct({
        kind: 'UpdateListener',
        listener: listenerId(0),
        config: listenerConfig(),
      });
    });
    expect(calls).toEqual(['flush']);
    expect(bench.plane.listeners.retired).toEqual({ ...counted, sendFailedLate: 1 });
  });

  test('B4: its address and its number can be another’s at once: the old socket is closed first', () => {
    const bench = new PlaneBench(configOf());
    bench.turn(() => bench.client('a'));
    const calls = bench.turn(() => {
      bench.direct(REMOVE);
      bench.direct({ kind: 'AddListener', listener: listenerId(0), config: listenerConfig() });
      bench.client('b');
      bench.backend('late', 1);
    });
    expect(calls).toEqual([
      'flush',
      'close u1',
      'unlisten 0',
      'wake never',
      'listen 0 10.0.0.53:53',
      'open u2 10.0.0.2:53',
      'send u2 b',
      'flush',
      'wake 30',
    ]);
    expect(bench.counters()).toMatchObject({ forwarded: 1, droppedUnknownFlow: 1 });
  });

  test('is no loop any more, and one that is added is', () => {
    const at = addressOf('10.9.9.9:53');
    const bench = new PlaneBench(
      configOf([clusterSettings()], [listenerConfig({ address: at }), listenerConfig()]),
    );
    bench.turn(() => bench.client('a', '10.9.9.9:53', 1));
    expect(bench.counters(1)).toMatchObject({ loopsRefused: 1, forwarded: 0 });
    bench.turn(() => bench.direct(REMOVE));
    bench.turn(() => bench.client('a', '10.9.9.9:53', 1));
    expect(bench.counters(1)).toMatchObject({ loopsRefused: 1, forwarded: 1 });
    const config = listenerConfig({ address: at });
    bench.turn(() => bench.direct({ kind: 'AddListener', listener: listenerId(5), config }));
    bench.turn(() => bench.client('a', '10.9.9.9:53', 1));
    bench.turn(() => bench.client('b', '10.9.9.9:53', 5));
    expect(bench.counters(5)).toMatchObject({ loopsRefused: 1 });
  });

  test('during a stop nothing is opened', () => {
    const bench = new PlaneBench(configOf());
    bench.turn(() => bench.direct({ kind: 'Stop' }));
    const added = { listener: listenerId(1), config: listenerConfig() };
    expect(bench.turn(() => bench.direct({ kind: 'AddListener', ...added }))).toEqual(['flush']);
    expect(bench.turn(() => bench.direct(REMOVE))).toEqual(['flush']);
  });
});

describe('a listener that is updated', () => {
  const update = (bench: PlaneBench, more: Parameters<typeof listenerConfig>[0]): string[] =>
    bench.turn(() => {
      const config = listenerConfig(more);
      bench.direct({ kind: 'UpdateListener', listener: listenerId(0), config });
    });

  test('keeps its socket and its flows, and has room for more', () => {
    const bench = new PlaneBench(configOf([clusterSettings()], [listenerConfig({ maxFlows: 1 })]));
    bench.turn(() => bench.client('a', '10.1.0.1:1'));
    bench.turn(() => bench.client('b', '10.1.0.2:1'));
    expect(bench.counters()).toMatchObject({ flowsShed: 1 });
    expect(update(bench, { maxFlows: 500 })).toEqual(['flush']);
    bench.turn(() => {
      for (let client = 1; client < 500; client += 1) bench.client('c', `10.1.1.1:${client}`);
    });
    expect(bench.turn(() => bench.client('d', '10.1.0.1:1'))).toContain('send u1 d');
    expect(bench.plane.flowCount).toBe(500);
  });

  test('is never emptied by a lower cap, and others have room beside what lives above it', () => {
    const bench = new PlaneBench(configOf([clusterSettings()], [listenerConfig({ maxFlows: 40 })]));
    const clients = Array.from({ length: 40 }, (_, n) => `10.1.0.1:${n + 1}`);
    bench.turn(() => clients.forEach((from) => bench.client('a', from)));
    update(bench, { maxFlows: 1 });
    expect(bench.plane.flowCount).toBe(40);
    const config = listenerConfig({ maxFlows: 40 });
    bench.turn(() => bench.direct({ kind: 'AddListener', listener: listenerId(1), config }));
    bench.turn(() => clients.forEach((from) => bench.client('b', from, 1)));
    expect(bench.plane.flowCount).toBe(80);
    bench.turn(() => bench.client('c', '10.1.0.2:1'));
    expect(bench.counters(0)).toMatchObject({ flowsShed: 1 });
  });

  test('obeys a new size at once, and leads where it is told', () => {
    const bench = new PlaneBench(
      configOf([
        clusterSettings(),
        clusterSettings({ cluster: 'd', backends: backendsOf(9), sendProxyProtocol: true }),
      ]),
    );
    bench.turn(() => bench.client('long', '10.1.0.1:1'));
    update(bench, { maxRxDatagramSize: 1, cluster: 'd' });
    bench.turn(() => bench.client('long', '10.1.0.1:1'));
    expect(bench.counters()).toMatchObject({ droppedTruncated: 1, forwarded: 1 });
    expect(bench.turn(() => bench.client('s', '10.1.0.2:1'))).toEqual([
      'open u2 10.0.0.9:53',
      'send u2 [28]s',
      'flush',
    ]);
    update(bench, { cluster: undefined });
    bench.turn(() => bench.client('s', '10.1.0.3:1'));
    expect(bench.counters()).toMatchObject({ droppedNoBackend: 1 });
  });
});

describe('a cluster that is removed', () => {
  const gone: Directive = { kind: 'RemoveCluster', cluster: 'c' };

  test('drops what clients send, still returns replies, and serves again when it comes back', () => {
    const bench = new PlaneBench(configOf());
    bench.turn(() => bench.client('a'));
    bench.turn(() => bench.direct(gone));
    bench.turn(() => bench.client('b'));
    bench.turn(() => bench.client('c', '10.1.0.2:1'));
    expect(bench.turn(() => bench.backend('d'))).toContain('reply 0 10.1.0.1:1000 d');
    expect(bench.counters()).toMatchObject({ droppedNoBackend: 2, returned: 1 });
    bench.turn(() => bench.direct({ kind: 'SetCluster', settings: clusterSettings() }));
    expect(bench.turn(() => bench.client('e'))).toContain('send u1 e');
    expect(bench.turn(() => bench.client('f', '10.1.0.2:1'))).toContain('send u2 f');
  });

  test('leaves its number to the next only when its last flow has ended', () => {
    const bench = new PlaneBench(configOf());
    bench.turn(() => bench.client('a'));
    bench.turn(() => bench.direct(gone));
    bench.turn(() => bench.direct({ kind: 'SetCluster', settings: clusterSettings() }));
    const { clusters } = bench.plane;
    expect(clusters.all.map(({ number }) => number)).toEqual([1]);
    bench.timer(30);
    const next = clusterSettings({ cluster: 'next' });
    bench.turn(() => bench.direct({ kind: 'SetCluster', settings: next }));
    expect(clusters.all.map(({ number }) => number)).toEqual([1, 0]);
  });

  test('is nobody’s loop any more', () => {
    const bench = new PlaneBench(configOf([clusterSettings(), clusterSettings({ cluster: 'd' })]));
    bench.turn(() => bench.direct({ kind: 'RemoveCluster', cluster: 'unknown' }));
    bench.turn(() => bench.client('a', '10.0.0.1:53'));
    expect(bench.counters()).toMatchObject({ loopsRefused: 1 });
    const settings = clusterSettings({ backends: backendsOf(8) });
    bench.turn(() => bench.direct({ kind: 'SetCluster', settings }));
    bench.turn(() => bench.direct({ kind: 'RemoveCluster', cluster: 'd' }));
    expect(bench.turn(() => bench.client('a', '10.0.0.1:53'))).toContain('send u1 a');
  });
});

test('a directive of an earlier generation is refused and counted, whatever it says', () => {
  const bench = new PlaneBench(configOf());
  bench.turn(() => bench.pump.direct({ generation: 3, directive: { kind: 'Stop' } }));
  const { reports } = bench;
  const told = reports.length;
  const settings = clusterSettings({ cluster: 'late' });
  bench.turn(() =>
    bench.pump.direct({ generation: 2, directive: { kind: 'SetCluster', settings } }),
  );
  expect(bench.plane.clusters.backendsOf('late')).toBeUndefined();
  expect(bench.plane.staleDirectives).toBe(1);
  bench.turn(() =>
    bench.pump.direct({ generation: 3, directive: { kind: 'SetCluster', settings } }),
  );
  expect(bench.plane.clusters.backendsOf('late')).toBeDefined();
  expect(bench.plane.staleDirectives).toBe(1);
  expect(reports).toHaveLength(told);
});
