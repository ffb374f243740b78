/** A flow whose socket no way leads out of gets another one, and is not asked to wait for its idle time. */
import { describe, expect, test } from 'vitest';
import {
  addressOf,
  backendsOf,
  clusterSettings,
  configOf,
  listenerConfig,
  PlaneBench,
} from '../test/plane-bench.ts';
import { present } from './assert.ts';
import { flowId, listenerId } from './brand.ts';
import type { ClusterSettings } from './config.ts';
import { FAILURES_MIN, RENEWAL_PERIOD } from './dead-ways.ts';
import { seconds } from './time.ts';

const PERIOD = RENEWAL_PERIOD / 1_000_000;

describe('a flow whose sends find no way out', () => {
  test('goes on from the next source after the third, with its PROXY header, and loses those three only', () => {
    const bench = live();
    fail(bench, 'ENETUNREACH');
    expect(send(bench, FAILURES_MIN).at(-1)).toBe('open u2 10.0.0.1:53 from 10.9.0.2');
    bench.ports.fate = () => undefined;
    bench.turn(() => bench.client('z'));
    expect(bench.ports.delivered.at(-1)).toBe('u2 [28]z');
    expect([...bench.ports.open]).toHaveLength(1);
    expect(bench.counters()).toMatchObject({
      flowsCreated: 1,
      flowsEvicted: 0,
      flowsRebound: 0,
      droppedSendError: FAILURES_MIN,
    });
  });

  test('changes its socket once a second at most, while nothing helps', () => {
    const bench = live();
    fail(bench, 'ENETUNREACH');
    const opens = send(bench, 300, PERIOD / 100).filter((call) => call.startsWith('open'));
    expect(opens).toEqual([
      'open u2 10.0.0.1:53 from 10.9.0.2',
      'open u3 10.0.0.1:53 from 10.9.0.1',
      'open u4 10.0.0.1:53 from 10.9.0.2',
    ]);
    expect(bench.counters()).toMatchObject({ droppedSendError: 300, flowsEvicted: 0 });
  });

  test('keeps its socket when an answer comes between', () => {
    const bench = live();
    fail(bench, 'EHOSTUNREACH');
    for (let round = 0; round < 5; round += 1) {
      expect(send(bench, FAILURES_MIN - 1)).toEqual([]);
      bench.turn(() => bench.backend('here'));
    }
  });

  test('keeps its socket when they are rare', () => {
    const bench = live();
    fail(bench, 'EHOSTUNREACH');
    expect(send(bench, 10, 40)).toEqual([]);
  });

  test.each(['EPERM', 'EMSGSIZE', 'ENOBUFS'])('keeps its socket when they fail by %s', (errno) => {
    const bench = live();
    fail(bench, errno);
    expect(send(bench, 20).filter((call) => call.startsWith('open'))).toEqual([]);
  });
});

test('a flow keeps its cluster with its new socket, wherever its listener leads by then', () => {
  const bench = live();
  const other = clusterSettings({ cluster: 'other', backends: backendsOf(2) });
  bench.turn(() => bench.direct({ kind: 'SetCluster', settings: other }));
  const config = listenerConfig({ frontTimeout: seconds(300), cluster: 'other' });
  bench.turn(() => bench.direct({ kind: 'UpdateListener', listener: listenerId(0), config }));
  fail(bench, 'ENETUNREACH');
  expect(send(bench, FAILURES_MIN).at(-1)).toBe('open u2 10.0.0.1:53 from 10.9.0.2');
  const told = bench.reports.filter((report) => report.kind === 'BackendRefused');
  expect(new Set(told.map(({ cluster }) => cluster))).toEqual(new Set(['c']));
  const flowsAt = (cluster: string, at: string): number | undefined =>
    bench.plane.clusters.backendsOf(cluster)?.flowsAt(addressOf(at));
  expect(flowsAt('c', '10.0.0.1:53')).toBe(1);
  expect(flowsAt('other', '10.0.0.1:53')).toBe(0);
});

test.each([[undefined], ['EMFILE']])(
  'a flow whose listener leads nowhere by then has its socket renewed for what waits; the open ends with %s',
  (errno) => {
    const bench = live();
    bench.ports.fate = () => 'blocked';
    bench.turn(() => ['b', 'c', 'd', 'e'].forEach((payload) => bench.client(payload)));
    bench.turn(() => bench.direct({ kind: 'RemoveCluster', cluster: 'c' }));
    fail(bench, 'ENETUNREACH');
    bench.ports.openResults = [errno, errno];
    const calls = bench.turn(() => bench.upstreamWritable());
    expect(calls.filter((call) => call.startsWith('open'))).toHaveLength(1);
    expect(bench.plane.flowCount).toBe(errno === undefined ? 1 : 0);
  },
);

test('a flow that lingers sends nothing more, and keeps the socket its replies come to; one that is gone is nobody’s', () => {
  const bench = live({ requests: 1, requestsLinger: true });
  const manager = present(bench.plane.managerOf(listenerId(0)), 'the listener exists');
  expect(manager.flow(flowId(0))?.phase).toBe('Lingering');
  for (const slot of [0, 7]) {
    manager.renewUpstream(flowId(slot), bench.ports.clock);
    expect(manager.pollOutput()).toBeUndefined();
  }
});

test('a backend that nothing can be connected to is told of, so that its traffic can speak against it', () => {
  const bench = new PlaneBench(configOf([clusterSettings({ backends: backendsOf(1) })]));
  bench.ports.openResults = ['ENOTCONN', 'ENETUNREACH', 'EMFILE'];
  for (const port of [1, 2, 3]) {
    bench.turn(() => bench.client('a', `10.1.0.1:${port}`));
    bench.pass(1);
  }
  const told = bench.reports.filter(({ kind }) => kind === 'BackendRefused');
  expect(told).toMatchObject([
    { address: addressOf('10.0.0.1:53'), flow: 1 },
    { address: addressOf('10.0.0.1:53'), flow: 2 },
  ]);
});

/** One live flow from the first of two sources. */
function live(more: Partial<ClusterSettings> = {}): PlaneBench {
  const bench = new PlaneBench(
    configOf(
      [
        clusterSettings({
          backends: backendsOf(1),
          sendProxyProtocol: true,
          upstreamSources: [addressOf('10.9.0.1:0'), addressOf('10.9.0.2:0')],
          ...more,
        }),
      ],
      [listenerConfig({ frontTimeout: seconds(300) })],
    ),
  );
  bench.turn(() => bench.client('a'));
  return bench;
}

function fail(bench: PlaneBench, errno: string): void {
  bench.ports.errno = errno;
  bench.ports.fate = () => 'error';
}

/** So many datagrams, each in a turn of its own, `apart` seconds apart; what was done with sockets. */
function send(bench: PlaneBench, count: number, apart = 0.01): string[] {
  const calls: string[] = [];
  for (let left = count; left > 0; left -= 1) {
    bench.pass(apart);
    const done = bench.turn(() => bench.client('b'));
    calls.push(...done.filter((call) => /^(open|listen)/.test(call)));
  }
  return calls;
}
