/** A socket without room is given up after some seconds: its flow, or its listener, goes on with another one. */
import { describe, expect, test } from 'vitest';
import {
  backendsOf,
  clusterSettings,
  configOf,
  listenerConfig,
  PlaneBench,
} from '../test/plane-bench.ts';
import { BLOCKED_MAX, BlockedSockets } from './blocked-sockets.ts';
import { listenerId } from './brand.ts';
import type { ClusterSettings, ListenerConfig } from './config.ts';
import { GIVEN_UP_PER_TURN } from './stuck-sockets.ts';
import { instant, seconds } from './time.ts';

const BOUND = BLOCKED_MAX / 1_000_000;

describe('sockets that have no room', () => {
  test('are due in the order in which they last showed a sign of room', () => {
    const sockets = new BlockedSockets<number>();
    expect(sockets.dueAt).toBeUndefined();
    for (const [socket, at] of [1, 2, 3].entries()) sockets.blocked(socket, instant(at));
    sockets.blocked(0, instant(10));
    sockets.forget(1);
    expect(sockets.dueAt).toBe(BLOCKED_MAX + 3);
    expect(sockets.due(instant(BLOCKED_MAX + 2))).toBeUndefined();
    expect(sockets.due(instant(BLOCKED_MAX + 3))).toBe(2);
    sockets.forget(2);
    expect(sockets.dueAt).toBe(BLOCKED_MAX + 10);
    expect(sockets.due(instant(BLOCKED_MAX + 10))).toBe(0);
  });
});

describe('an upstream socket that stays blocked', () => {
  test('is renewed for its backend, however often its client sends; what waited is dropped as closed', () => {
    const bench = live({ sendProxyProtocol: true });
    blockAll(bench);
    for (let second = 0; second < BOUND; second += 1) {
      bench.turn(() => bench.client(`${second}`));
      bench.pass(1);
    }
    expect(bench.plane.pollTimeout()).toEqual({ at: bench.ports.wake, reason: 'socket-blocked' });
    expect(bench.ports.wake).toBe(bench.ports.clock);
    const calls = bench.timer();
    expect(calls).toEqual(['open u2 10.0.0.1:53', 'flush', 'close u1', expect.any(String)]);
    flow(bench);
    bench.turn(() => bench.client('z'));
    expect(bench.ports.delivered.at(-1)).toBe('u2 [28]z');
    expect(bench.counters()).toMatchObject({
      socketsGivenUp: 1,
      droppedClosed: BOUND,
      flowsCreated: 1,
      flowsEvicted: 0,
    });
  });

  test('is not given up a moment early', () => {
    const bench = live();
    blockAll(bench);
    bench.turn(() => bench.client('b'));
    expect(bench.timer(BOUND - 0.001).filter(isOpen)).toEqual([]);
    expect(bench.timer(0.001).filter(isOpen)).toHaveLength(1);
  });

  test('stays while it shows signs of room, however slow it is', () => {
    const bench = live();
    blockAll(bench);
    bench.turn(() => ['b', 'c', 'd', 'e', 'f'].forEach((payload) => bench.client(payload)));
    bench.ports.fate = (number) => (number === 0 ? undefined : 'blocked');
    for (let left = 5; left > 0; left -= 1) {
      expect(bench.timer(BOUND - 1).filter(isOpen)).toEqual([]);
      bench.turn(() => bench.upstreamWritable());
    }
    expect(bench.ports.delivered.slice(1)).toEqual(['u1 b', 'u1 c', 'u1 d', 'u1 e', 'u1 f']);
    expect(bench.plane.pollTimeout()?.reason).toBe('flow-idle');
    expect(bench.counters().socketsGivenUp).toBe(0);
  });

  test('of a flow that lingers is closed with it: nothing more is sent there', () => {
    const bench = live({ requests: 3, requestsLinger: true });
    blockAll(bench);
    bench.turn(() => ['b', 'c'].forEach((payload) => bench.client(payload)));
    expect(bench.plane.waiting).toBe(2);
    bench.timer(BOUND);
    expect(bench.plane.waiting).toBe(0);
    expect(bench.counters()).toMatchObject({ droppedClosed: 2, closedAborted: 1 });
  });

  test('ends its flow when no other can be opened', () => {
    const bench = live();
    blockAll(bench);
    bench.turn(() => bench.client('b'));
    bench.ports.openResults = ['EMFILE'];
    bench.timer(BOUND);
    expect(bench.plane.flowCount).toBe(0);
    expect(bench.counters()).toMatchObject({ droppedClosed: 1, closedAborted: 1 });
  });

  test('is one of some, when a jam stops all: the others follow in turns of their own', () => {
    const bench = live({}, { maxFlows: 200 });
    const flows = GIVEN_UP_PER_TURN + 6;
    const ask = (): void => {
      for (let port = 0; port < flows; port += 1) bench.client('b', `10.1.0.2:${1_000 + port}`);
    };
    bench.turn(ask);
    blockAll(bench);
    bench.turn(ask);
    const slices = [BOUND, 0].map((time) => bench.timer(time).filter(isOpen).length);
    expect(slices).toEqual([GIVEN_UP_PER_TURN, 6]);
    expect(bench.plane.pollTimeout()?.reason).toBe('flow-idle');
  });
});

describe('a listener whose socket stays blocked', () => {
  test('is closed and opened again at its address, with its flows; what waited is dropped as closed', () => {
    const bench = muted();
    expect(bench.timer(BOUND)).toEqual([
      'flush',
      'unlisten 0',
      'listen 0 10.0.0.53:53',
      expect.any(String),
    ]);
    flow(bench);
    bench.turn(() => bench.backend('z'));
    expect(bench.ports.delivered.at(-1)).toBe('0 10.1.0.1:1000 z');
    expect(bench.counters()).toMatchObject({
      socketsGivenUp: 1,
      droppedClosed: 2,
      flowsEvicted: 0,
    });
  });

  test('lets nothing wait for what closes with the turn', () => {
    const bench = muted();
    bench.pass(BOUND);
    bench.turn(() => {
      bench.fire();
      bench.backend('late');
    });
    expect(bench.plane.waiting).toBe(0);
    expect(bench.counters()).toMatchObject({ droppedClosed: 2, droppedWqFull: 1 });
    expect(bench.turn(() => bench.backend('z'))).toContain('watch 0');
  });

  test.each([
    [undefined, 1],
    [seconds(2), 2],
  ])('is tried again whatever the failure; bind_retry %s', (bindRetry, pause) => {
    const bench = muted({ bindRetry });
    bench.ports.listenerResult = 'EMFILE';
    for (const time of [BOUND, pause]) {
      expect(bench.timer(time)).toContain('listen 0 10.0.0.53:53 !EMFILE');
    }
    bench.ports.listenerResult = undefined;
    expect(bench.timer(pause)).toContain('listen 0 10.0.0.53:53');
    const told = bench.reports.map((report) => [report.kind, 'retry' in report && report.retry]);
    expect(told).toEqual([
      ['ListenerOpened', false],
      ['ListenerFailed', seconds(pause)],
      ['ListenerOpened', false],
    ]);
  });

  test('comes back in a drain too, for the replies that are left', () => {
    const bench = muted();
    bench.ports.listenerResult = 'EADDRINUSE';
    bench.timer(BOUND);
    bench.turn(() => bench.direct({ kind: 'Drain', deadline: instant(60_000_000) }));
    expect(bench.timer(1)).toContain('listen 0 10.0.0.53:53 !EADDRINUSE');
  });

  test('stays closed when it is removed in the same turn, or all is to stop', () => {
    for (const directive of [
      { kind: 'RemoveListener', listener: listenerId(0) },
      { kind: 'Stop' },
    ] as const) {
      const bench = muted();
      bench.ports.listenerResult = 'EADDRINUSE';
      bench.pass(BOUND);
      bench.turn(() => {
        bench.fire();
        bench.direct(directive);
      });
      expect(bench.ports.wake).toBeUndefined();
      expect(bench.ports.listening.size).toBe(0);
      expect(bench.reports.filter(({ kind }) => kind === 'ListenerFailed')).toEqual([]);
    }
  });
});

/** One live flow that is idle after a minute. */
function live(
  cluster: Partial<ClusterSettings> = {},
  listener: Partial<ListenerConfig> = {},
): PlaneBench {
  const times = { frontTimeout: seconds(60), backTimeout: seconds(60) };
  const bench = new PlaneBench(
    configOf(
      [clusterSettings({ backends: backendsOf(1), ...cluster })],
      [listenerConfig({ ...times, ...listener })],
    ),
  );
  bench.turn(() => bench.client('a'));
  return bench;
}

/** One live flow; two replies wait. */
function muted(listener: Partial<ListenerConfig> = {}): PlaneBench {
  const bench = live({}, listener);
  blockAll(bench);
  bench.turn(() => ['b', 'c'].forEach((payload) => bench.backend(payload)));
  expect(bench.plane.waiting).toBe(2);
  return bench;
}

function blockAll(bench: PlaneBench): void {
  bench.ports.fate = () => 'blocked';
}

function flow(bench: PlaneBench): void {
  bench.ports.fate = () => undefined;
}

function isOpen(call: string): boolean {
  return call.startsWith('open');
}
