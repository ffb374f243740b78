import { describe, expect, test, vi } from 'vitest';
import {
  addressOf,
  clusterSettings,
  configOf,
  listenerConfig,
  PlaneBench,
} from '../test/plane-bench.ts';
import { listenerId } from './brand.ts';
import { instant } from './time.ts';

describe('a turn of the pump', () => {
  test('performs what each arrival caused, then flushes once, then wakes at the next deadline', () => {
    const bench = new PlaneBench(configOf());
    const calls = bench.turn(() => {
      bench.client('a');
      bench.client('b', '10.1.0.2:1000');
      bench.client('c');
    });
    expect(calls).toEqual([
      'open u1 10.0.0.1:53',
      'send u1 a',
      'open u2 10.0.0.2:53',
      'send u2 b',
      'send u1 c',
      'flush',
      'wake 30',
    ]);
  });

  test('hands on the very bytes it was lent, in both directions: nothing is copied', () => {
    const bench = new PlaneBench(configOf());
    const [asked, answered] = [Uint8Array.of(1), Uint8Array.of(2)];
    const sentUp = vi.spyOn(bench.ports, 'sendToBackend');
    const sentDown = vi.spyOn(bench.ports, 'sendToClient');
    bench.turn(() => {
      bench.pump.clientDatagram(listenerId(0), addressOf('10.1.0.1:1'), undefined, asked);
      bench.pump.backendDatagram(bench.socket(1), answered);
    });
    expect(sentUp.mock.calls[0]?.[2]).toBe(asked);
    expect(sentDown.mock.calls[0]?.[3]).toBe(answered);
  });

  test('asks to be woken only when the deadline moved', () => {
    const bench = new PlaneBench(configOf());
    bench.turn(() => bench.client('a'));
    expect(bench.turn(() => bench.client('b'))).toEqual(['send u1 b', 'flush']);
    expect(bench.turn()).toEqual(['flush']);
    bench.pass(1);
    expect(bench.turn(() => bench.client('c'))).toEqual(['send u1 c', 'flush', 'wake 31']);
  });

  test('closes what it ended only after the datagram that ended it was flushed', () => {
    const bench = new PlaneBench(configOf([clusterSettings({ requests: 1 })]));
    const calls = bench.turn(() => bench.client('a'));
    expect(calls).toEqual(['open u1 10.0.0.1:53', 'send u1 a', 'flush', 'close u1']);
  });

  test('opens a new socket before the old one is closed when a client returns in the same turn', () => {
    const bench = new PlaneBench(configOf([clusterSettings({ requests: 1 })]));
    const calls = bench.turn(() => {
      bench.client('a');
      bench.client('b');
    });
    expect(calls).toEqual([
      'open u1 10.0.0.1:53',
      'send u1 a',
      'open u2 10.0.0.2:53',
      'send u2 b',
      'flush',
      'close u1',
      'close u2',
    ]);
  });

  test('reads the clock once, and gives all its inputs that time', () => {
    const bench = new PlaneBench(configOf());
    bench.ports.clockReads = 0;
    const calls = bench.turn(() => {
      bench.client('a');
      bench.pass(9);
      bench.client('b', '10.1.0.2:1000');
      bench.backend('c');
      bench.fire();
    });
    expect(bench.ports.clockReads).toBe(1);
    expect(calls.at(-1)).toBe('wake 30');
    bench.turn(() => bench.client('d'));
    expect(bench.ports.clockReads).toBe(2);
  });

  test('counts a datagram as forwarded or returned at the flush and no sooner', () => {
    const bench = new PlaneBench(configOf());
    bench.ports.onFlush = () => {
      expect(bench.counters()).toMatchObject({ datagramsIn: 1, datagramsOut: 1 });
      expect(bench.counters()).toMatchObject({ forwarded: 0, returned: 0 });
    };
    bench.turn(() => {
      bench.client('a');
      bench.backend('b');
    });
    expect(bench.counters()).toMatchObject({ forwarded: 1, returned: 1 });
  });

  test('arms the timer again, for the same instant too, when it fired early', () => {
    const bench = new PlaneBench(configOf());
    bench.turn(() => bench.client('a'));
    expect(bench.timer(29)).toEqual(['flush', 'wake 30']);
    expect(bench.timer()).toEqual(['flush', 'wake 30']);
    expect(bench.timer(1)).toEqual(['flush', 'close u1']);
    expect(bench.ports.wake).toBeUndefined();
  });

  test('disarms the timer when nothing is left to wait for', () => {
    const bench = new PlaneBench(configOf([clusterSettings({ responses: 1 })]));
    bench.turn(() => bench.client('a'));
    expect(bench.turn(() => bench.backend('b'))).toEqual([
      'reply 0 10.1.0.1:1000 b',
      'flush',
      'close u1',
      'wake never',
    ]);
  });
});

describe('a socket that does not open', () => {
  test('aborts its flow after the drain; its datagram is not tried and counts once (T12)', () => {
    const bench = new PlaneBench(configOf([clusterSettings({ responses: 1 })]));
    bench.ports.openResults = ['EMFILE'];
    const calls = bench.turn(() => bench.client('a'));
    expect(calls).toEqual(['open u1 10.0.0.1:53 !EMFILE', 'flush', 'close u1']);
    expect(bench.counters()).toMatchObject({
      flowsCreated: 1,
      flowsEvicted: 1,
      flowsShed: 1,
      upstreamOpenFailed: 1,
      droppedUnknownFlow: 1,
      forwarded: 0,
    });
    expect(bench.reports.at(-1)).toEqual({
      kind: 'UpstreamFailed',
      listener: listenerId(0),
      errno: 'EMFILE',
    });
  });

  test('counts the same when its flow closed in the very drain that opened it', () => {
    const bench = new PlaneBench(configOf([clusterSettings({ requests: 1 })]));
    bench.ports.openResults = ['EADDRNOTAVAIL'];
    const calls = bench.turn(() => bench.client('a'));
    expect(calls).toEqual(['open u1 10.0.0.1:53 !EADDRNOTAVAIL', 'flush', 'close u1']);
    expect(bench.counters()).toMatchObject({
      flowsCreated: 1,
      flowsEvicted: 1,
      flowsShed: 1,
      upstreamOpenFailed: 1,
      droppedUnknownFlow: 1,
      forwarded: 0,
    });
  });

  test('is over before the next arrival: the client is admitted afresh', () => {
    const bench = new PlaneBench(configOf());
    bench.ports.openResults = ['EACCES', 'EACCES'];
    const calls = bench.turn(() => ['a', 'b', 'c'].forEach((payload) => bench.client(payload)));
    expect(calls).toEqual([
      'open u1 10.0.0.1:53 !EACCES',
      'open u2 10.0.0.2:53 !EACCES',
      'open u3 10.0.0.1:53',
      'send u3 c',
      'flush',
      'close u1',
      'close u2',
      'wake 30',
    ]);
    expect(bench.counters()).toMatchObject({ flowsShed: 2, droppedUnknownFlow: 2, forwarded: 1 });
  });

  test('leaves the flows of other clients alone', () => {
    const bench = new PlaneBench(configOf());
    bench.turn(() => bench.client('a'));
    bench.ports.openResults = ['ENFILE'];
    bench.turn(() => bench.client('b', '10.1.0.2:1000'));
    expect(bench.turn(() => bench.client('c'))).toEqual(['send u1 c', 'flush']);
    expect(bench.plane.flowCount).toBe(1);
  });
});

describe('what a flush could not send', () => {
  test('is dropped as droppedSendError when the kernel refused it, and the rest counts as sent', () => {
    const bench = new PlaneBench(configOf());
    bench.turn(() => bench.client('a'));
    bench.ports.fate = (number) => (number > 0 ? 'error' : undefined);
    bench.turn(twoEachWay(bench));
    expect(bench.counters()).toMatchObject({ forwarded: 2, returned: 0, droppedSendError: 3 });
    expect(bench.plane).toMatchObject({ flowCount: 1, waiting: 0 });
  });

  test('waits when there was no room for it, and counts as sent when it was', () => {
    const bench = new PlaneBench(configOf());
    bench.turn(() => bench.client('a'));
    bench.ports.fate = (number) => (number > 0 ? 'blocked' : undefined);
    expect(bench.turn(twoEachWay(bench)).slice(-4)).toEqual([
      'flush',
      'watch 0',
      'watch u1',
      'wake 5',
    ]);
    expect(bench.counters()).toMatchObject({ forwarded: 2, returned: 0, droppedWqFull: 0 });
    expect(bench.plane).toMatchObject({ flowCount: 1, waiting: 3 });
    bench.ports.fate = () => undefined;
    bench.turn(() => bench.allWritable());
    expect(bench.counters()).toMatchObject({ forwarded: 3, returned: 2, droppedWqFull: 0 });
  });

  test('is counted for the listener it belongs to', () => {
    const bench = new PlaneBench(
      configOf([clusterSettings()], [listenerConfig(), listenerConfig()]),
    );
    bench.ports.fate = (number) => (number === 1 ? 'error' : undefined);
    bench.turn(() => {
      bench.client('a', '10.1.0.1:1', 0);
      bench.client('b', '10.1.0.1:1', 1);
    });
    expect(bench.counters(0)).toMatchObject({ forwarded: 1, droppedSendError: 0 });
    expect(bench.counters(1)).toMatchObject({ forwarded: 0, droppedSendError: 1 });
  });

  test('is told before the sockets of the turn are closed', () => {
    const bench = new PlaneBench(configOf([clusterSettings({ requests: 1 })]));
    bench.ports.fate = () => 'blocked';
    expect(bench.turn(() => bench.client('a'))).toEqual([
      'open u1 10.0.0.1:53',
      'send u1 a',
      'flush',
      'close u1',
    ]);
    expect(bench.counters()).toMatchObject({ forwarded: 0, droppedWqFull: 1 });
  });

  test('may be told later as well, and then changes no other count', () => {
    const bench = new PlaneBench(configOf());
    bench.turn(() => bench.client('a'));
    bench.turn(() => bench.pump.lateSendFailure(listenerId(0)));
    expect(bench.counters()).toMatchObject({ forwarded: 1, sendFailedLate: 1 });
  });
});

test('the driver hears of listeners in the order of the configuration, and the plane of their fate', () => {
  const listeners = [listenerConfig(), listenerConfig({ ipv6Only: true })];
  const bench = new PlaneBench(configOf([clusterSettings()], listeners));
  expect(bench.ports.calls).toEqual([
    'listen 0 10.0.0.53:53',
    'listen 1 10.0.0.53:53 v6only',
    'flush',
  ]);
  expect(bench.reports.map(({ kind }) => kind)).toEqual(['ListenerOpened', 'ListenerOpened']);
});

test('a listener that does not open is reported with its address and errno', () => {
  const bench = new PlaneBench(configOf(), 'EADDRINUSE');
  expect(bench.reports).toEqual([
    {
      kind: 'ListenerFailed',
      generation: 1,
      listener: listenerId(0),
      address: listenerConfig().address,
      errno: 'EADDRINUSE',
    },
  ]);
  bench.turn(() => bench.direct({ kind: 'Drain', deadline: instant(1) }));
  expect(bench.reports.at(-1)).toMatchObject({ kind: 'Stopped', flowsClosed: 0 });
});

/** Two datagrams and two replies, the first datagram before all the others. */
function twoEachWay(bench: PlaneBench): () => void {
  return () => {
    bench.client('b');
    bench.backend('c');
    bench.client('d');
    bench.backend('e');
  };
}
