import { constants } from 'node:os';
import { describe, expect, test } from 'vitest';
import { ipv4, listenerId, socketId, type SendFailed } from '../../core/index.ts';
import { needKoffi } from '../../test/e2e/peers.ts';
import { Arena } from './arena.ts';
import { ListenerLine, UpstreamLine, type Line } from './channel.ts';
import { loadLibc, type Libc } from './libc.ts';
import { MessageSpy } from './mmsg-world.laws.ts';
import { Outbox, OUTBOX_BYTES } from './outbox.ts';

const found = loadLibc();
const ROOM = 70_000;
const CLIENT = ipv4(0x7f000001, 5_353);
const FRONT = ipv4(0x7f000001, 53);

if (typeof found === 'string') test(`no outbox without libc: ${found}`, needKoffi);
else outboxTests(found);

/** No socket is there: what would be sent is looked at. */
function outboxTests(real: Libc): void {
  const lines: readonly [string, () => Line][] = [
    ['to a backend', () => new UpstreamLine(-1, 4, 65_535, socketId(1, listenerId(0)))],
    ['to a client', () => new ListenerLine(-1, 65_535, listenerId(0), FRONT, false)],
  ];

  describe.each(lines)('a train %s', (_, lineOf) => {
    test('that is longer than one send may be leaves as several, in order', () => {
      const { outbox, payload, calls, lend } = boxOf(() => undefined);
      lend();
      send(outbox, lineOf(), payload, 1_000);
      const again = payload.subarray(0, 130);
      outbox.flush(() => expect.unreachable('nothing fails'));
      expect(calls).toEqual([[64, 6]]);
      calls.length = 0;
      lend(again);
      send(outbox, lineOf(), again, 1);
      outbox.flush(() => expect.unreachable('nothing fails'));
      expect(calls).toEqual([[64, 64, 2]]);
    });

    test('that finds no room comes back datagram by datagram, in order, each with its bytes', () => {
      const { outbox, payload, lend } = boxOf(() => -constants.errno.EAGAIN);
      lend();
      const failures: SendFailed[] = [];
      send(outbox, lineOf(), payload, 999);
      outbox.flush((failure) => failures.push(failure));
      expect(failures.map(({ cause }) => cause)).toEqual(failures.map(() => 'blocked'));
      const bytes = failures.flatMap((one) => (one.cause === 'error' ? [] : [...one.payload]));
      expect(failures).toHaveLength(Math.ceil(ROOM / 999));
      expect(bytes).toEqual([...payload]);
    });

    test('that lies elsewhere is copied, and leaves as one all the same', () => {
      const { outbox, payload, calls } = boxOf(() => undefined);
      send(outbox, lineOf(), payload.slice(0, 95), 10);
      outbox.flush(() => expect.unreachable('nothing fails'));
      expect(calls).toEqual([[10]]);
    });
  });

  function send(outbox: Outbox, line: Line, payload: Uint8Array, unit: number): void {
    const dst = line.kind === 'listener' ? CLIENT : undefined;
    outbox.train(line, payload, unit, dst, undefined);
  }

  function boxOf(fails: () => number | undefined): {
    readonly outbox: Outbox;
    readonly payload: Uint8Array;
    readonly calls: number[][];
    readonly lend: (payload?: Uint8Array) => void;
  } {
    const spy = new MessageSpy();
    const watching = spy.watching(real);
    const calls: number[][] = [];
    const libc: Libc = {
      ...watching,
      sendmmsg: (_fd, headers, count) => {
        calls.push(spy.trainsAt(headers, count));
        return fails() ?? count;
      },
    };
    const arena = new Arena(libc, OUTBOX_BYTES + ROOM + 4_096);
    const outbox = new Outbox(libc, arena);
    const at = arena.reserve(ROOM);
    const payload = new Uint8Array(arena.buffer, at, ROOM);
    payload.forEach((_, index) => (payload[index] = index * 7 + (index >>> 8)));
    const lend = (lent: Uint8Array = payload): void => {
      arena.lent = lent;
      arena.lentAt = at;
    };
    return { outbox, payload, calls, lend };
  }
}
