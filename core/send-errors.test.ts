/** Sends that fail, through a whole data plane: what is sent again, what is lost, and what it says of the backend. */
import { describe, expect, test } from 'vitest';
import {
  addressOf,
  backendsOf,
  clusterSettings,
  configOf,
  PlaneBench,
} from '../test/plane-bench.ts';
import type { SendFailed } from './ports.ts';

type Fate = SendFailed['cause'] | undefined;

describe('a send that was refused', () => {
  test('goes out once more before the turn ends, header and all, and counts as forwarded', () => {
    const bench = live({ sendProxyProtocol: true, proxyProtocolEveryDatagram: true });
    flushes(bench, ['refused']);
    expect(bench.turn(() => bench.client('b'))).toEqual([
      'send u1 [28]b',
      'flush',
      'send u1 [28]b',
      'flush',
    ]);
    expect(bench.ports.delivered).toEqual(['u1 [28]a', 'u1 [28]b']);
    expect(bench.counters()).toMatchObject({ forwarded: 2, upstreamRefused: 1 });
    expect(bench.reports.filter(({ kind }) => kind === 'BackendRefused')).toHaveLength(1);
  });

  test('is lost when it is refused again, and counts so', () => {
    const bench = live();
    flushes(bench, ['refused'], ['refused']);
    const calls = bench.turn(() => bench.client('b'));
    expect(calls).toEqual(['send u1 b', 'flush', 'send u1 b', 'flush']);
    expect(bench.counters()).toMatchObject({
      forwarded: 1,
      droppedSendError: 1,
      upstreamRefused: 2,
    });
    expect(bench.plane).toMatchObject({ flowCount: 1, waiting: 0 });
  });

  test('stays ahead of what came after it, which goes along', () => {
    const bench = live();
    flushes(bench, ['refused']);
    bench.turn(() => ['b', 'c', 'd'].forEach((payload) => bench.client(payload)));
    expect(bench.ports.delivered).toEqual(['u1 a', 'u1 b', 'u1 c', 'u1 d']);
    expect(bench.plane.waiting).toBe(0);
  });

  test('from a queue leaves it like any other, whatever becomes of those behind it', () => {
    const bench = live();
    flushes(bench, ['blocked']);
    bench.turn(() => ['b', 'c', 'd'].forEach((payload) => bench.client(payload)));
    flushes(bench, ['refused']);
    bench.turn(() => bench.upstreamWritable());
    expect(bench.ports.delivered).toEqual(['u1 a', 'u1 b']);
    bench.turn(() => bench.upstreamWritable());
    expect(bench.ports.delivered).toEqual(['u1 a', 'u1 b', 'u1 c', 'u1 d']);
  });

  test('waits when it finds no room then, and so does what came behind it', () => {
    const bench = live();
    flushes(bench, ['refused'], ['blocked']);
    bench.turn(() => bench.client('b'));
    expect(bench.plane.waiting).toBe(1);
    bench.turn(() => bench.upstreamWritable());
    expect(bench.ports.delivered).toEqual(['u1 a', 'u1 b']);
    flushes(bench, ['refused'], ['blocked']);
    bench.turn(() => ['c', 'd'].forEach((payload) => bench.client(payload)));
    expect(bench.plane.waiting).toBe(2);
    bench.turn(() => bench.upstreamWritable());
    expect(bench.ports.delivered).toEqual(['u1 a', 'u1 b', 'u1 c', 'u1 d']);
    expect(bench.counters()).toMatchObject({ droppedWqFull: 0 });
  });

  test('of a flow that closed in this turn goes out too, before its socket closes', () => {
    const bench = new PlaneBench(configOf([clusterSettings({ requests: 2 })]));
    bench.turn(() => bench.client('a'));
    flushes(bench, ['refused']);
    expect(bench.turn(() => bench.client('b')).slice(0, 5)).toEqual([
      'send u1 b',
      'flush',
      'send u1 b',
      'flush',
      'close u1',
    ]);
    expect(bench.counters()).toMatchObject({ forwarded: 2 });
  });
});

test('a datagram that is too big has a counter of its own and speaks against nobody', () => {
  const bench = live();
  bench.ports.errno = 'EMSGSIZE';
  flushes(bench, ['error']);
  bench.turn(() => bench.client('b'));
  expect(bench.counters()).toMatchObject({ droppedTooBig: 1, droppedSendError: 0 });
  expect(bench.reports.map(({ kind }) => kind)).toEqual(['ListenerOpened']);
});

describe('a backend that no way leads to', () => {
  test.each(['ENETDOWN', 'ENETUNREACH', 'EHOSTUNREACH', 'EHOSTDOWN', 'ENOBUFS'])(
    '%s loses each datagram, and is told against the backend a few times a second',
    (errno) => {
      const bench = live();
      bench.ports.errno = errno;
      bench.ports.fate = () => 'error';
      for (let turn = 0; turn < 100; turn += 1) {
        bench.turn(() => bench.client('b'));
        bench.pass(0.01);
      }
      expect(bench.counters()).toMatchObject({ droppedSendError: 100, upstreamRefused: 0 });
      const told = bench.reports.filter(({ kind }) => kind === 'BackendRefused');
      expect(told).toHaveLength(10);
      expect(told[0]).toMatchObject({ address: addressOf('10.0.0.1:53'), flow: 1 });
    },
  );

  test('is told apart from others, and nothing is told of a listener’s own trouble', () => {
    const bench = live({ backends: backendsOf(1, 2) });
    bench.turn(() => bench.client('a', '10.1.0.2:1'));
    bench.ports.errno = 'ENETUNREACH';
    bench.ports.fate = () => 'error';
    bench.turn(() => {
      bench.client('b');
      bench.client('b', '10.1.0.2:1');
      bench.backend('reply');
    });
    const told = bench.reports.filter((report) => report.kind === 'BackendRefused');
    expect(told.map(({ flow }) => flow)).toEqual([1, 2]);
  });
});

/** With one live flow, whose first datagram was `a`. */
function live(settings: Parameters<typeof clusterSettings>[0] = {}): PlaneBench {
  const bench = new PlaneBench(
    configOf([clusterSettings({ backends: backendsOf(1), ...settings })]),
  );
  bench.turn(() => bench.client('a'));
  return bench;
}

/** The fates of the sends of each flush to come, by their order; then all goes well. */
function flushes(bench: PlaneBench, ...fates: readonly (readonly Fate[])[]): void {
  const ahead = [...fates];
  bench.ports.onFlush = () => {
    const drawn = ahead.shift() ?? [];
    bench.ports.fate = (number) => drawn[number];
  };
}
