import { describe, expect, test } from 'vitest';
import {
  addressOf,
  backendsOf,
  clusterSettings,
  configOf,
  listenerConfig,
  PlaneBench,
} from '../test/plane-bench.ts';
import { listenerId, listenerOf } from './brand.ts';
import type { Directive } from './directives.ts';
import { instant, seconds } from './time.ts';

describe('listeners and clusters', () => {
  test('several listeners share the backends of one cluster, and keep their flows apart', () => {
    const bench = new PlaneBench(
      configOf([clusterSettings()], [listenerConfig(), listenerConfig()]),
    );
    const calls = bench.turn(() => {
      bench.client('a', '10.1.0.1:1', 0);
      bench.client('b', '10.1.0.1:1', 1);
    });
    expect(calls.slice(0, 4)).toEqual([
      'open u1 10.0.0.1:53',
      'send u1 a',
      'open u2@1 10.0.0.2:53',
      'send u2@1 b',
    ]);
    expect(bench.turn(() => bench.backend('c', 2))).toContain('reply 1 10.1.0.1:1 c');
  });

  test('each listener leads to its own cluster', () => {
    const bench = new PlaneBench(
      configOf(
        [
          clusterSettings({ cluster: 'one', backends: backendsOf(1) }),
          clusterSettings({ cluster: 'two', backends: backendsOf(2), sendProxyProtocol: true }),
        ],
        [listenerConfig({ cluster: 'one' }), listenerConfig({ cluster: 'two' })],
      ),
    );
    const calls = bench.turn(() => {
      bench.client('a', '10.1.0.1:1', 0);
      bench.client('b', '10.1.0.1:1', 1);
    });
    expect(calls.slice(0, 4)).toEqual([
      'open u1 10.0.0.1:53',
      'send u1 a',
      'open u2@1 10.0.0.2:53',
      'send u2@1 [28]b',
    ]);
  });

  test('a listener that leads nowhere, or to a cluster without backends, forwards nothing', () => {
    const bench = new PlaneBench(
      configOf(
        [clusterSettings({ backends: [] })],
        [listenerConfig({ cluster: undefined }), listenerConfig()],
      ),
    );
    bench.turn(() => [0, 1].forEach((front) => bench.client('a', '10.1.0.1:1', front)));
    for (const front of [0, 1]) {
      expect(bench.counters(front)).toMatchObject({ droppedNoBackend: 1, flowsCreated: 0 });
    }
  });

  test('keeps the timeouts and limits of each listener', () => {
    const bench = new PlaneBench(
      configOf(
        [clusterSettings()],
        [
          listenerConfig({ maxFlows: 1, frontTimeout: seconds(5) }),
          listenerConfig({ maxRxDatagramSize: 1 }),
        ],
      ),
    );
    const calls = bench.turn(() => {
      for (const front of [0, 1]) {
        bench.client('a', '10.1.0.1:1', front);
        bench.client('bc', '10.1.0.2:1', front);
      }
    });
    expect(bench.counters(0)).toMatchObject({ droppedShed: 1, flowsShed: 1, droppedTruncated: 0 });
    expect(bench.counters(1)).toMatchObject({ droppedShed: 0, flowsShed: 0, droppedTruncated: 1 });
    expect(calls.at(-1)).toBe('wake 5');
    expect(bench.timer(5).slice(0, 2)).toEqual(['flush', 'close u1']);
    expect(bench.ports.wake).toBe(instant(30_000_000));
  });

  test('gives every socket of every listener an id of its own', () => {
    const fronts = [0, 1, 2];
    const bench = new PlaneBench(
      configOf(
        [clusterSettings({ requests: 1 })],
        fronts.map(() => listenerConfig()),
      ),
    );
    for (let round = 0; round < 5; round += 1) {
      bench.turn(() => fronts.forEach((front) => bench.client('a', '10.1.0.1:1', front)));
    }
    expect(new Set(bench.ports.opened).size).toBe(15);
    expect(bench.ports.opened.map(listenerOf)).toEqual(
      Array.from({ length: 15 }, (_, at) => listenerId(at % 3)),
    );
  });
});

describe('numbers of listeners that nobody has', () => {
  test('leave no gap in timers, flushes, changes of clusters and stops', () => {
    const bench = new PlaneBench(configOf([clusterSettings()], []));
    const opened = bench.turn(() => addListeners(bench, 3, 1));
    expect(opened).toEqual(['listen 3 10.0.0.53:53', 'listen 1 10.0.0.53:53', 'flush']);
    bench.turn(() => [1, 3].forEach((front) => bench.client('a', '10.1.0.1:1', front)));
    expect([0, 1, 2, 3].map((front) => bench.plane.countersOf(listenerId(front)))).toEqual([
      undefined,
      expect.objectContaining({ forwarded: 1 }),
      undefined,
      expect.objectContaining({ forwarded: 1 }),
    ]);
    expect(bench.plane.managerOf(listenerId(2))).toBeUndefined();
    bench.turn(() => bench.direct({ kind: 'SetCluster', settings: clusterSettings() }));
    expect(bench.timer(30)).toEqual(['flush', 'close u2@3', 'close u1@1']);
    bench.turn(() => bench.client('b', '10.1.0.1:1', 3));
    expect(bench.turn(() => bench.direct({ kind: 'Stop' }))).toEqual([
      'flush',
      'close u3@3',
      'unlisten 3',
      'unlisten 1',
      'wake never',
    ]);
  });

  test('are nobody’s when they are spoken for', () => {
    const bench = new PlaneBench(configOf([clusterSettings()], []));
    bench.turn(() => addListeners(bench, 1));
    expect(bench.turn(() => bench.client('a', '10.1.0.1:1', 0))).toEqual(['flush']);
    expect(bench.plane.countersOf(listenerId(0))).toBeUndefined();
  });
});

function addListeners(bench: PlaneBench, ...fronts: readonly number[]): void {
  for (const front of fronts) {
    const listener = listenerId(front);
    bench.direct({ kind: 'AddListener', listener, config: listenerConfig() });
  }
}

describe('a socket that has closed', () => {
  test('cannot speak for the next owner of its slot', () => {
    const bench = new PlaneBench(configOf([clusterSettings({ responses: 1 })]));
    bench.turn(() => bench.client('a', '10.1.0.1:1'));
    bench.turn(() => bench.backend('b', 1));
    bench.turn(() => bench.client('c', '10.1.0.2:1'));
    const slots = bench.plane.managerOf(listenerId(0))?.table.highWater;
    expect(slots, 'the second flow has the slot of the first').toBe(1);
    expect(bench.turn(() => bench.backend('late', 1))).toEqual(['flush']);
    expect(bench.counters()).toMatchObject({ droppedUnknownFlow: 1, returned: 1 });
    expect(bench.turn(() => bench.backend('d', 2))).toContain('reply 0 10.1.0.2:1 d');
  });

  test('cannot speak for it within one turn either', () => {
    const bench = new PlaneBench(configOf([clusterSettings({ responses: 1 })]));
    bench.turn(() => bench.client('a', '10.1.0.1:1'));
    const calls = bench.turn(() => {
      bench.backend('b', 1);
      bench.client('c', '10.1.0.2:1');
      bench.backend('late', 1);
    });
    expect(calls.filter((call) => call.startsWith('reply'))).toEqual(['reply 0 10.1.0.1:1 b']);
    expect(bench.counters()).toMatchObject({ droppedUnknownFlow: 1 });
  });

  test('may still be refused: that is counted and changes nothing', () => {
    const bench = new PlaneBench(configOf());
    bench.turn(() => bench.client('a'));
    bench.turn(() => bench.pump.refused(bench.socket(1)));
    expect(bench.plane.flowCount).toBe(1);
    bench.timer(30);
    bench.turn(() => bench.pump.refused(bench.socket(1)));
    expect(bench.counters()).toMatchObject({ upstreamRefused: 2, flowsEvicted: 1 });
  });
});

describe('SetCluster', () => {
  test('changes settings for new flows only', () => {
    const bench = new PlaneBench(configOf([clusterSettings()]));
    bench.turn(() => bench.client('a', '10.1.0.1:1'));
    const settings = clusterSettings({
      responses: 1,
      sendProxyProtocol: true,
      backends: backendsOf(9),
      onBackendRemoved: 'pin',
    });
    bench.turn(() => bench.direct({ kind: 'SetCluster', settings }));
    const calls = bench.turn(() => {
      bench.client('b', '10.1.0.1:1');
      bench.client('c', '10.1.0.2:1');
      bench.backend('d', 1);
      bench.backend('e', 2);
    });
    expect(calls).toEqual([
      'send u1 b',
      'open u2 10.0.0.9:53',
      'send u2 [28]c',
      'reply 0 10.1.0.1:1 d',
      'reply 0 10.1.0.2:1 e',
      'flush',
      'close u2',
    ]);
  });

  test('leaves other clusters alone', () => {
    const bench = new PlaneBench(configOf());
    const settings = clusterSettings({ cluster: 'other', backends: backendsOf(9), requests: 1 });
    bench.turn(() => bench.direct({ kind: 'SetCluster', settings }));
    expect(bench.turn(() => bench.client('a'))).toEqual([
      'open u1 10.0.0.1:53',
      'send u1 a',
      'flush',
      'wake 30',
    ]);
  });

  test('brings backends to a listener that came first', () => {
    const bench = new PlaneBench(configOf([]));
    bench.turn(() => bench.client('a'));
    bench.turn(() => bench.direct({ kind: 'SetCluster', settings: clusterSettings() }));
    expect(bench.turn(() => bench.client('b'))).toContain('send u1 b');
    expect(bench.counters()).toMatchObject({ droppedNoBackend: 1, forwarded: 1 });
  });
});

describe('a soft stop', () => {
  const drain: Directive = { kind: 'Drain', deadline: instant(10_000_000) };

  test('sheds new clients, serves live flows, and ends with the last of them', () => {
    const bench = new PlaneBench(configOf([clusterSettings({ responses: 2 })]));
    bench.turn(() => bench.client('a', '10.1.0.1:1'));
    expect(bench.turn(() => bench.direct(drain))).toEqual(['flush', 'wake 10']);
    const calls = bench.turn(() => {
      bench.client('b', '10.1.0.2:1');
      bench.client('c', '10.1.0.1:1');
      bench.backend('d');
    });
    expect(calls).toEqual(['send u1 c', 'reply 0 10.1.0.1:1 d', 'flush']);
    expect(bench.counters()).toMatchObject({ droppedShed: 1 });
    expect(bench.turn(() => bench.backend('e'))).toEqual([
      'reply 0 10.1.0.1:1 e',
      'flush',
      'close u1',
      'unlisten 0',
      'wake never',
    ]);
    expect(bench.reports.at(-1)).toEqual({ kind: 'Stopped', generation: 1, flowsClosed: 0 });
  });

  test('ends at its deadline, and says how many flows it cut short', () => {
    const bench = new PlaneBench(
      configOf([clusterSettings()], [listenerConfig(), listenerConfig()]),
    );
    bench.turn(() => [0, 1].forEach((front) => bench.client('a', '10.1.0.1:1', front)));
    bench.turn(() => bench.direct(drain));
    expect(bench.timer(9.999999)).toEqual(['flush', 'wake 10']);
    expect(bench.timer(0.000001)).toEqual([
      'flush',
      'close u1',
      'unlisten 0',
      'close u2@1',
      'unlisten 1',
    ]);
    expect(bench.reports.at(-1)).toEqual({ kind: 'Stopped', generation: 1, flowsClosed: 2 });
  });

  test('ends at once without flows', () => {
    const bench = new PlaneBench(configOf());
    expect(bench.turn(() => bench.direct(drain))).toEqual(['flush', 'unlisten 0']);
    expect(bench.reports.at(-1)).toMatchObject({ kind: 'Stopped', flowsClosed: 0 });
  });

  test('takes an earlier deadline from a second one, and is cut short by a hard stop', () => {
    const bench = new PlaneBench(configOf());
    bench.turn(() => bench.client('a'));
    bench.turn(() => bench.direct(drain));
    bench.turn(() => bench.direct({ kind: 'Drain', deadline: instant(2_000_000) }));
    expect(bench.ports.wake).toBe(instant(2_000_000));
    bench.turn(() => bench.direct({ kind: 'Drain', deadline: instant(3_000_000) }));
    expect(bench.ports.wake, 'who asks again does not get more time').toBe(instant(2_000_000));
    bench.turn(() => bench.direct({ kind: 'Stop' }));
    expect(bench.reports.filter(({ kind }) => kind === 'Stopped')).toEqual([
      { kind: 'Stopped', generation: 1, flowsClosed: 1 },
    ]);
  });
});

describe('a hard stop', () => {
  test('closes everything, and admits nothing in the same turn or later', () => {
    const bench = new PlaneBench(configOf());
    bench.turn(() => bench.client('a', '10.1.0.1:1'));
    const calls = bench.turn(() => {
      bench.direct({ kind: 'Stop' });
      bench.client('b', '10.1.0.1:1');
      bench.client('c', '10.1.0.2:1');
      bench.backend('d');
    });
    expect(calls).toEqual(['flush', 'close u1', 'unlisten 0', 'wake never']);
    bench.turn(() => bench.client('e'));
    expect(bench.counters()).toMatchObject({ droppedShed: 3, droppedUnknownFlow: 1 });
    expect(bench.reports.at(-1)).toEqual({ kind: 'Stopped', generation: 1, flowsClosed: 1 });
  });

  test('stops once, however often it is asked', () => {
    const bench = new PlaneBench(configOf());
    bench.turn(() => bench.direct({ kind: 'Stop' }));
    expect(bench.turn(() => bench.direct({ kind: 'Stop' }))).toEqual(['flush']);
    expect(bench.turn(() => bench.direct({ kind: 'Drain', deadline: instant(1) }))).toEqual([
      'flush',
    ]);
    expect(bench.reports.filter(({ kind }) => kind === 'Stopped')).toHaveLength(1);
  });

  test('lets what was sent in its turn leave first', () => {
    const bench = new PlaneBench(configOf());
    const calls = bench.turn(() => {
      bench.client('a');
      bench.direct({ kind: 'Stop' });
    });
    expect(calls).toEqual(['open u1 10.0.0.1:53', 'send u1 a', 'flush', 'close u1', 'unlisten 0']);
    expect(bench.counters()).toMatchObject({ forwarded: 1 });
  });
});

describe('load', () => {
  const twoBackends = { backends: backendsOf(1, 2), loadBalancing: 'LEAST_LOADED' } as const;

  test('LEAST_LOADED by CONNECTIONS follows the live flows of all listeners', () => {
    const bench = new PlaneBench(
      configOf(
        [clusterSettings({ ...twoBackends, requests: 3 })],
        [listenerConfig(), listenerConfig()],
      ),
    );
    bench.turn(() => bench.client('a', '10.1.0.1:1', 0));
    expect(bench.turn(() => bench.client('b', '10.1.0.1:1', 1))[0]).toBe('open u2@1 10.0.0.2:53');
    expect(bench.turn(() => bench.client('c', '10.1.0.2:1', 0))[0]).toBe('open u3 10.0.0.1:53');
    bench.turn(() => ['d', 'e'].forEach((payload) => bench.client(payload, '10.1.0.1:1', 0)));
    bench.turn(() => ['f', 'g'].forEach((payload) => bench.client(payload, '10.1.0.2:1', 0)));
    expect(bench.plane.flowCount).toBe(1);
    expect(bench.turn(() => bench.client('h', '10.1.0.3:1', 0))[0]).toBe('open u4 10.0.0.1:53');
  });

  test('by REQUESTS follows the datagrams of the last ten seconds', () => {
    const bench = new PlaneBench(
      configOf([clusterSettings({ ...twoBackends, loadMetric: 'REQUESTS' })]),
    );
    const opens = (from: string): string | undefined =>
      bench.turn(() => bench.client('x', from)).find((call) => call.startsWith('open'));
    expect(opens('10.1.0.1:1')).toBe('open u1 10.0.0.1:53');
    for (let count = 0; count < 2; count += 1) expect(opens('10.1.0.1:1')).toBeUndefined();
    expect(opens('10.1.0.2:1')).toBe('open u2 10.0.0.2:53');
    expect(opens('10.1.0.3:1')).toBe('open u3 10.0.0.2:53');
    expect(opens('10.1.0.4:1')).toBe('open u4 10.0.0.2:53');
    expect(opens('10.1.0.5:1')).toBe('open u5 10.0.0.1:53');
    bench.pass(11);
    expect(opens('10.1.0.2:1')).toBeUndefined();
    expect(opens('10.1.0.6:1')).toBe('open u6 10.0.0.1:53');
  });
});

test('a wildcard listener keys flows by the address that was asked', () => {
  const bench = new PlaneBench(
    configOf([clusterSettings()], [listenerConfig({ address: addressOf('0.0.0.0:53') })]),
  );
  const [src, one, other] = ['10.1.0.1:1', '10.0.0.53:53', '10.0.0.54:53'].map(addressOf);
  bench.turn(() => {
    for (const local of [one, other, one]) {
      bench.pump.clientDatagram(listenerId(0), src!, local, Uint8Array.of(120));
    }
  });
  expect(bench.plane.flowCount).toBe(2);
});
