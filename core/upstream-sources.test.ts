/** Where upstream sockets leave from, and what happens when a source or the machine has none left. */
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
import type { ClusterSettings } from './config.ts';
import { OPEN_BACK_OFF } from './upstream-sources.ts';

const REST = OPEN_BACK_OFF.first / 1_000_000;

describe('the sources of a cluster', () => {
  test('take turns, those of the backend’s family only', () => {
    const bench = benchWith({ upstreamSources: sources('10.9.0.1', '2001:db8::1', '10.9.0.2') });
    expect(opens(bench, 3)).toEqual([
      'open u1 10.0.0.1:53 from 10.9.0.1',
      'open u2 10.0.0.1:53 from 10.9.0.2',
      'open u3 10.0.0.1:53 from 10.9.0.1',
    ]);
  });

  test('are the kernel’s choice for a family that has none', () => {
    const bench = benchWith({ upstreamSources: sources('2001:db8::1') });
    expect(opens(bench, 1)).toEqual(['open u1 10.0.0.1:53']);
  });

  test.each(['EADDRINUSE', 'EAGAIN', 'EADDRNOTAVAIL'])(
    'follow each other for the same flow when one answers %s, and its datagrams go out on the one that works',
    (errno) => {
      const bench = benchWith({
        upstreamSources: sources('10.9.0.1', '10.9.0.2', '10.9.0.3'),
        sendProxyProtocol: true,
      });
      bench.ports.openResults = [errno, errno];
      expect(bench.turn(() => bench.client('a')).slice(0, -1)).toEqual([
        `open u1 10.0.0.1:53 from 10.9.0.1 !${errno}`,
        `open u1 10.0.0.1:53 from 10.9.0.2 !${errno}`,
        'open u1 10.0.0.1:53 from 10.9.0.3',
        'send u1 [28]a',
        'flush',
      ]);
      expect(bench.counters()).toMatchObject({ forwarded: 1, upstreamOpenFailed: 2, flowsShed: 0 });
    },
  );

  test('serve a flow of one datagram too, which closes in the drain that opened it', () => {
    const bench = benchWith({ upstreamSources: sources('10.9.0.1', '10.9.0.2'), requests: 1 });
    bench.ports.openResults = ['EADDRINUSE'];
    expect(bench.turn(() => bench.client('a'))).toEqual([
      'open u1 10.0.0.1:53 from 10.9.0.1 !EADDRINUSE',
      'open u1 10.0.0.1:53 from 10.9.0.2',
      'send u1 a',
      'flush',
      'close u1',
    ]);
    expect(bench.counters()).toMatchObject({ forwarded: 1, flowsShed: 0 });
  });

  test('leave one out that has no ports, for a while that doubles, and take it back', () => {
    const bench = benchWith({ upstreamSources: sources('10.9.0.1', '10.9.0.2') });
    bench.ports.openResults = ['EADDRINUSE'];
    expect(opens(bench, 2)).toHaveLength(3);
    bench.pass(REST);
    bench.ports.openResults = ['EADDRINUSE'];
    expect(opens(bench, 3).filter((call) => call.includes('!'))).toEqual([
      'open u3 10.0.0.1:53 from 10.9.0.1 !EADDRINUSE',
    ]);
    bench.pass(REST);
    expect(opens(bench, 2).filter((call) => call.includes('10.9.0.1'))).toEqual([]);
    bench.pass(REST);
    expect(opens(bench, 2).filter((call) => call.endsWith('10.9.0.1'))).toHaveLength(1);
  });

  test('that this machine does not have are named once, until they were there', () => {
    const bench = benchWith({ upstreamSources: sources('10.9.0.1', '10.9.0.2') });
    for (const round of [1, 2]) {
      bench.ports.openResults = ['EADDRNOTAVAIL'];
      for (let flow = 0; flow < 2; flow += 1) opens(bench, 1);
      expect(bench.reports.filter(({ kind }) => kind === 'UpstreamFailed')).toEqual([
        {
          kind: 'UpstreamFailed',
          listener: listenerId(0),
          errno: 'EADDRNOTAVAIL',
          source: addressOf('10.9.0.1:0'),
        },
      ]);
      bench.pass(2 * round * REST);
    }
  });
});

describe('when no source has a port', () => {
  test('the flow is aborted and its datagram counts as port_exhausted', () => {
    const bench = benchWith({ upstreamSources: sources('10.9.0.1', '10.9.0.2') });
    bench.ports.openResults = ['EADDRINUSE', 'EADDRINUSE'];
    bench.turn(() => bench.client('a'));
    expect(bench.counters()).toMatchObject({
      flowsCreated: 1,
      flowsEvicted: 1,
      flowsShed: 1,
      upstreamOpenFailed: 2,
      droppedPortExhausted: 1,
      droppedUnknownFlow: 0,
    });
  });

  test('new flows are refused without a try until the rest is over, and live ones are served', () => {
    const bench = benchWith({});
    bench.turn(() => bench.client('live', '10.1.0.9:9'));
    bench.ports.openResults = ['EADDRINUSE'];
    const calls = bench.turn(() => {
      for (let client = 1; client <= 5; client += 1) bench.client('new', `10.1.0.${client}:1`);
      bench.client('live', '10.1.0.9:9');
    });
    expect(calls).toEqual(['open u2 10.0.0.1:53 !EADDRINUSE', 'send u1 live', 'flush', 'close u2']);
    expect(bench.counters()).toMatchObject({
      droppedPortExhausted: 5,
      flowsShed: 5,
      flowsCreated: 2,
    });
    bench.pass(REST);
    expect(opens(bench, 1)).toEqual(['open u3 10.0.0.1:53']);
  });

  test('a cluster with another source goes on, and one with the same source waits too', () => {
    const clusters = ['10.9.0.1', '10.9.0.1', '10.9.0.2'].map((source, at) =>
      clusterSettings({
        cluster: `c${at}`,
        backends: backendsOf(at + 1),
        upstreamSources: sources(source),
      }),
    );
    const bench = new PlaneBench(
      configOf(
        clusters,
        clusters.map(({ cluster }) => listenerConfig({ cluster })),
      ),
    );
    bench.ports.openResults = ['EADDRINUSE'];
    const calls = bench.turn(() => [0, 1, 2].forEach((at) => bench.client('a', undefined, at)));
    expect(calls.filter((call) => call.startsWith('open'))).toEqual([
      'open u1 10.0.0.1:53 from 10.9.0.1 !EADDRINUSE',
      'open u2@2 10.0.0.3:53 from 10.9.0.2',
    ]);
    expect([0, 1, 2].map((at) => bench.counters(at).droppedPortExhausted)).toEqual([1, 1, 0]);
  });

  test('a backend of the family without ports is refused without a try where the other family has some', () => {
    const bench = benchWith({
      backends: [
        ...backendsOf(1),
        { ...backendsOf(2)[0]!, address: addressOf('[2001:db8::2]:53') },
      ],
      upstreamSources: sources('10.9.0.1', '2001:db8::1'),
      loadBalancing: 'ROUND_ROBIN',
    });
    bench.ports.openResults = ['EADDRINUSE'];
    const tried = [1, 2, 3, 4].flatMap((client) =>
      bench
        .turn(() => bench.client('a', `10.1.1.${client}:1`))
        .filter((call) => call.startsWith('open')),
    );
    expect(tried).toEqual([
      'open u1 10.0.0.1:53 from 10.9.0.1 !EADDRINUSE',
      'open u2 [2001:db8::2]:53 from 2001:db8::1',
      'open u4 [2001:db8::2]:53 from 2001:db8::1',
    ]);
    expect(bench.counters()).toMatchObject({ droppedPortExhausted: 2, forwarded: 2 });
  });
});

describe('when the machine has no descriptor', () => {
  test.each(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM'])(
    '%s holds every cluster, whatever its sources, and counts as shed',
    (errno) => {
      const bench = benchWith({ upstreamSources: sources('10.9.0.1', '10.9.0.2') });
      bench.ports.openResults = [errno];
      const calls = bench.turn(() =>
        ['10.1.0.1:1', '10.1.0.2:1'].forEach((from) => bench.client('a', from)),
      );
      expect(calls.filter((call) => call.startsWith('open'))).toHaveLength(1);
      expect(bench.counters()).toMatchObject({
        flowsShed: 2,
        droppedShed: 1,
        droppedUnknownFlow: 1,
      });
      expect(bench.counters().droppedPortExhausted).toBe(0);
      bench.pass(REST);
      expect(opens(bench, 1)).toHaveLength(1);
    },
  );

  test('other errors hold nobody: an address family that this machine lacks is no want of ports', () => {
    const bench = benchWith({});
    bench.ports.openResults = ['EADDRNOTAVAIL', 'EACCES'];
    expect(opens(bench, 3)).toHaveLength(3);
    expect(bench.counters()).toMatchObject({ droppedUnknownFlow: 2, forwarded: 1 });
  });
});

function benchWith(settings: Partial<ClusterSettings>): PlaneBench {
  return new PlaneBench(
    configOf(
      [clusterSettings({ backends: backendsOf(1), ...settings })],
      [listenerConfig({ maxFlows: 64 })],
    ),
  );
}

let clients = 0;

/** The opens of so many new flows. */
function opens(bench: PlaneBench, count: number): string[] {
  const calls = bench.turn(() => {
    for (let flow = 0; flow < count; flow += 1) {
      clients += 1;
      bench.client('a', `10.2.${clients >> 8}.${clients & 255}:1`);
    }
  });
  return calls.filter((call) => call.startsWith('open'));
}

function sources(...ips: readonly string[]): ClusterSettings['upstreamSources'] {
  return ips.map((ip) => addressOf(ip.includes(':') ? `[${ip}]:0` : `${ip}:0`));
}
