/** Sockets without room, through a whole data plane. Rows of spec §12.3 keep their names. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addressOf,
  clusterSettings,
  configOf,
  listenerConfig,
  PlaneBench,
} from '../test/plane-bench.ts';
import { listenerId } from './brand.ts';
import type { Directive } from './directives.ts';
import type { SendFailed } from './ports.ts';
import { instant } from './time.ts';

const DRAIN: Directive = { kind: 'Drain', deadline: instant(10_000_000) };

type Fate = SendFailed['cause'] | undefined;

describe('a flow whose socket has no room', () => {
  test('write_queue_push_until_full_then_drops: 64 wait, and the newest is dropped', () => {
    const bench = new PlaneBench(configOf());
    fates(bench, ...repeat('blocked', 70));
    bench.turn(() => numbers(70).forEach((n) => bench.client(`${n}`)));
    expect(bench.plane.waiting).toBe(64);
    expect(bench.counters()).toMatchObject({ datagramsIn: 70, forwarded: 0, droppedWqFull: 6 });
    expect(bench.turn(() => bench.client('late'))).toEqual(['flush']);
    expect(bench.counters()).toMatchObject({ datagramsIn: 71, forwarded: 0, droppedWqFull: 7 });
    fates(bench);
    bench.turn(() => bench.upstreamWritable());
    expect(bench.ports.delivered).toEqual(numbers(64).map((n) => `u1 ${n}`));
    expect(bench.counters()).toMatchObject({ forwarded: 64, droppedWqFull: 7 });
  });

  test('write_queue_drains_in_fifo_order_on_writable, and what comes later is sent at once again', () => {
    const bench = blockedFlow('a', 'b');
    bench.turn(() => bench.client('c'));
    expect(bench.turn(() => bench.upstreamWritable())).toEqual([
      'send u1 a',
      'send u1 b',
      'send u1 c',
      'flush',
      'wake 30',
    ]);
    expect(bench.turn(() => bench.client('d'))).toEqual(['send u1 d', 'flush']);
    expect(bench.ports.delivered).toEqual(['u1 a', 'u1 b', 'u1 c', 'u1 d']);
  });

  test('write_queue_stops_on_wouldblock_and_resumes: the front is kept', () => {
    const bench = blockedFlow('a', 'b', 'c', 'd');
    fates(bench, undefined, 'blocked');
    expect(bench.turn(() => bench.upstreamWritable()).slice(-2)).toEqual(['flush', 'watch u1']);
    expect(bench.ports.delivered).toEqual(['u1 a']);
    fates(bench, 'blocked');
    expect(bench.turn(() => bench.upstreamWritable()).slice(-2)).toEqual(['flush', 'watch u1']);
    expect(bench.plane.waiting).toBe(3);
    fates(bench);
    bench.turn(() => bench.upstreamWritable());
    expect(bench.ports.delivered).toEqual(['u1 a', 'u1 b', 'u1 c', 'u1 d']);
  });

  test('write_queue_hard_error_drops_one_and_continues', () => {
    const bench = blockedFlow('a', 'b', 'c', 'd');
    fates(bench, undefined, 'error', undefined, 'blocked');
    bench.turn(() => bench.upstreamWritable());
    expect(bench.counters()).toMatchObject({ forwarded: 2, droppedSendError: 1 });
    fates(bench);
    bench.turn(() => bench.upstreamWritable());
    expect(bench.ports.delivered).toEqual(['u1 a', 'u1 c', 'u1 d']);
    expect(bench.counters()).toMatchObject({ forwarded: 3, droppedSendError: 1, droppedWqFull: 0 });
  });

  test('write_queue_empties_cleanly_when_already_empty', () => {
    const bench = blockedFlow('a');
    bench.turn(() => bench.upstreamWritable());
    for (let times = 0; times < 2; times += 1) {
      expect(bench.turn(() => bench.pump.upstreamWritable(bench.socket(1)))).toEqual(['flush']);
      expect(bench.turn(() => bench.pump.listenerWritable(listenerId(0)))).toEqual(['flush']);
    }
    bench.timer(30);
    expect(bench.turn(() => bench.pump.upstreamWritable(bench.socket(1)))).toEqual(['flush']);
    expect(bench.counters()).toMatchObject({ forwarded: 1, flowsEvicted: 1 });
  });

  test('is asked for once, however much waits', () => {
    const bench = new PlaneBench(configOf());
    fates(bench, 'blocked');
    const calls = bench.turn(() => ['a', 'b', 'c'].forEach((one) => bench.client(one)));
    expect(calls.filter((call) => call.startsWith('watch'))).toEqual(['watch u1']);
    expect(bench.turn(() => bench.client('d'))).toEqual(['flush']);
  });

  test('gets what arrives behind an offered queue, in order, in the next turn that has room', () => {
    const bench = blockedFlow('a', 'b');
    const calls = bench.turn(() => {
      bench.client('before');
      bench.upstreamWritable();
      bench.client('behind');
    });
    expect(calls).toEqual(['send u1 a', 'send u1 b', 'send u1 before', 'flush', 'watch u1']);
    expect(bench.plane.waiting).toBe(1);
    expect(bench.turn(() => bench.upstreamWritable())).toEqual([
      'send u1 behind',
      'flush',
      'wake 30',
    ]);
    expect(bench.plane.waiting).toBe(0);
  });

  test('stands in nobody else’s way', () => {
    const bench = blockedFlow('a');
    bench.turn(() => {
      bench.client('b');
      bench.client('c', '10.1.0.2:1');
      bench.backend('d', 1);
    });
    expect(bench.ports.delivered).toEqual(['u2 c', '0 10.1.0.1:1000 d']);
  });

  test('gets the PROXY header with the datagram that it belongs to', () => {
    const bench = new PlaneBench(configOf([clusterSettings({ sendProxyProtocol: true })]));
    fates(bench, 'blocked');
    bench.turn(() => ['a', 'b'].forEach((one) => bench.client(one)));
    fates(bench);
    bench.turn(() => bench.upstreamWritable());
    expect(bench.ports.delivered).toEqual(['u1 [28]a', 'u1 b']);
  });

  test('gets the bytes that arrived, not what their buffer holds by then', () => {
    const bench = new PlaneBench(configOf());
    fates(bench, 'blocked');
    const buffer = Uint8Array.of(97, 98);
    bench.turn(() => {
      bench.pump.clientDatagram(listenerId(0), addressOf('10.1.0.1:1'), undefined, buffer);
    });
    buffer.fill(0xdb);
    fates(bench);
    expect(bench.turn(() => bench.upstreamWritable())).toContain('send u1 ab');
  });

  test('takes what waits along when it closes: that is counted as dropped, each once', () => {
    const bench = blockedFlow('a', 'b');
    bench.turn(() => bench.client('c'));
    expect(bench.timer(30)).toEqual(['flush', 'close u1']);
    expect(bench.counters()).toMatchObject({ forwarded: 0, droppedClosed: 3, droppedWqFull: 0 });
    expect(bench.plane.waiting).toBe(0);
  });

  test('may close in the turn that offers its queue: what is sent is sent, the rest is dropped', () => {
    const bench = blockedFlow('a', 'b');
    fates(bench, undefined, 'blocked');
    const calls = bench.turn(() => {
      bench.upstreamWritable();
      bench.client('behind');
      bench.direct({ kind: 'Stop' });
    });
    expect(calls.slice(2)).toEqual(['flush', 'close u1', 'unlisten 0', 'wake never']);
    expect(bench.counters()).toMatchObject({ forwarded: 1, droppedClosed: 1, droppedWqFull: 1 });
  });
});

describe('a listener whose socket has no room', () => {
  test('keeps 256 replies for all its clients together, in order, and drops the newest', () => {
    const bench = new PlaneBench(configOf());
    const clients = ['10.1.0.1:1', '10.1.0.2:2'];
    bench.turn(() => clients.forEach((client) => bench.client('q', client)));
    fates(bench, ...repeat('blocked', 250));
    bench.turn(() => numbers(250).forEach((n) => bench.backend(`${n}`, 1 + (n % 2))));
    bench.turn(() => numbers(10).forEach((n) => bench.backend(`${250 + n}`, 1 + (n % 2))));
    expect(bench.plane.waiting).toBe(256);
    expect(bench.counters()).toMatchObject({ datagramsOut: 260, returned: 0, droppedWqFull: 4 });
    fates(bench);
    bench.turn(() => bench.listenerWritable());
    expect(bench.ports.delivered.slice(2)).toEqual(
      numbers(256).map((n) => `0 ${clients[n % 2]} ${n}`),
    );
    expect(bench.counters()).toMatchObject({ returned: 256, droppedWqFull: 4 });
  });

  test('outlives the flows whose replies wait', () => {
    const bench = new PlaneBench(configOf([clusterSettings({ responses: 1 })]));
    bench.turn(() => bench.client('q'));
    fates(bench, 'blocked');
    bench.turn(() => bench.backend('a'));
    expect(bench.plane).toMatchObject({ flowCount: 0, waiting: 1 });
    fates(bench);
    expect(bench.turn(() => bench.listenerWritable())).toEqual([
      'reply 0 10.1.0.1:1000 a',
      'flush',
      'wake never',
    ]);
  });

  test('gets what arrives behind an offered queue in the next turn that has room', () => {
    const bench = new PlaneBench(configOf());
    bench.turn(() => bench.client('q'));
    fates(bench, 'blocked');
    bench.turn(() => bench.backend('a'));
    fates(bench);
    const calls = bench.turn(() => {
      bench.listenerWritable();
      bench.backend('b');
    });
    expect(calls.slice(-2)).toEqual(['flush', 'watch 0']);
    bench.turn(() => bench.listenerWritable());
    expect(bench.ports.delivered.slice(1)).toEqual(['0 10.1.0.1:1000 a', '0 10.1.0.1:1000 b']);
  });

  test('leaves other listeners alone', () => {
    const bench = new PlaneBench(
      configOf([clusterSettings()], [listenerConfig(), listenerConfig()]),
    );
    bench.turn(() => [0, 1].forEach((front) => bench.client('q', '10.1.0.1:1', front)));
    fates(bench, 'blocked');
    bench.turn(() => [1, 2].forEach((nth) => bench.backend('a', nth)));
    expect(bench.counters(0)).toMatchObject({ backendReceived: 1, returned: 0 });
    expect(bench.counters(1)).toMatchObject({ backendReceived: 1, returned: 1 });
  });
});

describe('a stop while datagrams wait', () => {
  test('a soft one waits for replies after the last flow has ended', () => {
    const bench = blockedReplies('a', 'b');
    bench.turn(() => bench.direct(DRAIN));
    bench.timer(4);
    bench.turn(() => bench.direct({ kind: 'SetCluster', settings: clusterSettings() }));
    expect(stops(bench)).toEqual([]);
    fates(bench, undefined, 'blocked');
    bench.turn(() => bench.listenerWritable());
    expect(stops(bench)).toEqual([]);
    fates(bench);
    expect(bench.turn(() => bench.listenerWritable())).toEqual([
      'reply 0 10.1.0.1:1000 b',
      'flush',
      'unlisten 0',
      'wake never',
    ]);
    expect(stops(bench)).toEqual([{ kind: 'Stopped', generation: 1, flowsClosed: 0 }]);
    expect(bench.counters()).toMatchObject({ returned: 2, droppedClosed: 0 });
  });

  test('a soft one drops at its deadline what still waits', () => {
    const bench = blockedReplies('a', 'b');
    bench.turn(() => bench.direct({ ...DRAIN, deadline: instant(3_000_000) }));
    expect(bench.timer(2).at(-1)).toBe('wake 3');
    expect(bench.timer(1)).toEqual(['flush', 'unlisten 0']);
    expect(stops(bench)).toEqual([{ kind: 'Stopped', generation: 1, flowsClosed: 0 }]);
    expect(bench.counters()).toMatchObject({ returned: 0, droppedClosed: 2 });
  });

  test('a hard one waits for nothing, and counts what it dropped', () => {
    const bench = blockedReplies('a', 'b');
    expect(bench.turn(() => bench.direct({ kind: 'Stop' }))).toEqual([
      'flush',
      'unlisten 0',
      'wake never',
    ]);
    expect(stops(bench)).toHaveLength(1);
    expect(bench.counters()).toMatchObject({ returned: 0, droppedClosed: 2, droppedWqFull: 0 });
    expect(bench.plane.waiting).toBe(0);
  });
});

const FLOWS = 3;

interface Event {
  readonly kind: 'client' | 'backend' | 'writable';
  readonly flow: number;
}

interface Turn {
  readonly events: readonly Event[];
  readonly fates: readonly Fate[];
}

test('however sockets block and recover: each keeps its order, sends nothing twice, and is never forgotten', () => {
  const datagram: fc.Arbitrary<Event> = fc.record({
    kind: fc.constantFrom('client', 'backend'),
    flow: fc.nat({ max: FLOWS - 1 }),
  });
  const writable: fc.Arbitrary<Event> = fc.record({
    kind: fc.constant('writable'),
    flow: fc.nat({ max: FLOWS }),
  });
  const turn: fc.Arbitrary<Turn> = fc.record({
    events: fc.array(fc.oneof(datagram, datagram, writable), { maxLength: 8 }),
    fates: fc.array(fc.constantFrom(undefined, 'blocked', 'error', 'refused'), { maxLength: 8 }),
  });
  fc.assert(
    fc.property(fc.array(turn, { maxLength: 30, size: 'max' }), (turns) => {
      const bench = new PlaneBench(configOf());
      bench.turn(() => numbers(FLOWS).forEach((flow) => bench.client('0', clientOf(flow))));
      let number = 0;
      for (const { events, fates: drawn } of turns) {
        fates(bench, ...drawn);
        bench.turn(() => {
          for (const one of events) {
            number += 1;
            happen(bench, one, `${number}`);
          }
        });
      }
      fates(bench);
      // Two turns: what arrives behind an offered queue may have to wait for the second.
      for (let last = 0; last < 2; last += 1) bench.turn(() => bench.allWritable());
      expect(bench.plane.waiting).toBe(0);
      expect(bench.ports.watched.size).toBe(0);
      for (const socket of ['u1 ', 'u2 ', 'u3 ', '0 ']) {
        const lines = bench.ports.delivered.filter((line) => line.startsWith(socket));
        const sent = lines.map((line) => Number(line.slice(line.lastIndexOf(' '))));
        expect(sent).toEqual([...new Set(sent)].sort((one, other) => one - other));
      }
    }),
    { numRuns: 500 },
  );
});

function happen(bench: PlaneBench, event: Event, payload: string): void {
  if (event.kind === 'writable') return becomeWritable(bench, event.flow);
  if (event.kind === 'client') return bench.client(payload, clientOf(event.flow));
  return bench.backend(payload, event.flow + 1);
}

/** The socket of a flow, or the listener's for a flow that is not there. If it is watched, it hears of it. */
function becomeWritable(bench: PlaneBench, flow: number): void {
  const { watched } = bench.ports;
  if (flow === FLOWS && watched.has(listenerId(0))) bench.listenerWritable();
  if (flow < FLOWS && watched.has(bench.socket(flow + 1))) bench.upstreamWritable(flow + 1);
}

function clientOf(flow: number): string {
  return `10.1.0.${flow + 1}:1`;
}

/** What becomes of the next sends of each turn, in order; all others go. */
function fates(bench: PlaneBench, ...drawn: readonly Fate[]): void {
  bench.ports.fate = (number) => drawn[number];
}

/** A flow, u1, for which these wait; from now on everything goes. */
function blockedFlow(...payloads: readonly string[]): PlaneBench {
  const bench = new PlaneBench(configOf());
  fates(bench, 'blocked');
  bench.turn(() => payloads.forEach((one) => bench.client(one)));
  expect(bench.plane.waiting).toBe(payloads.length);
  fates(bench);
  return bench;
}

/** A listener for whose client these replies wait, and a flow that ended with the last of them. */
function blockedReplies(...payloads: readonly string[]): PlaneBench {
  const responses = payloads.length;
  const bench = new PlaneBench(configOf([clusterSettings({ responses })]));
  bench.turn(() => bench.client('q'));
  fates(bench, 'blocked');
  bench.turn(() => payloads.forEach((one) => bench.backend(one)));
  expect(bench.plane).toMatchObject({ flowCount: 0, waiting: payloads.length });
  fates(bench);
  return bench;
}

function stops(bench: PlaneBench): PlaneBench['reports'] {
  return bench.reports.filter(({ kind }) => kind === 'Stopped');
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, n) => n);
}

function repeat(fate: Fate, count: number): Fate[] {
  return numbers(count).map(() => fate);
}
