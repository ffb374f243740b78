/** What every driver must keep when a socket has no room: nothing overtakes, nothing is lost, and room is told of. */
import { expect, test } from 'vitest';
import {
  benchFor,
  bytes,
  FRONT,
  LOOPBACK,
  UPSTREAM,
  type MakeWorld,
} from '../test/driver-bench.ts';
import { ipv4 } from './address.ts';
import type { Ports, SendFailed } from './ports.ts';

/** A part of `driverLaws`. */
export function roomLaws(make: MakeWorld): void {
  const bench = benchFor(make);
  const watchBoth = (ports: Ports): void => {
    ports.watchUpstream(UPSTREAM);
    ports.watchListener(FRONT);
  };

  test('tells of a watched socket that has room, in a later turn and once', async () => {
    bench.pair();
    for (const times of [1, 2]) {
      bench.call(watchBoth);
      await bench.hear('writable', 2 * times);
      await bench.world.settle();
      const told = bench.of('writable').slice(-2);
      expect(new Set(told.map(({ socket }) => socket))).toEqual(new Set([FRONT, UPSTREAM]));
      expect(bench.of('writable')).toHaveLength(2 * times);
      expect(bench.log.at(-1)).toEqual({ kind: 'endTurn' });
    }
  });

  test('is silent about a watched socket that was closed, and about one that is not open', async () => {
    bench.pair();
    bench.call((ports) => {
      watchBoth(ports);
      ports.closeUpstream(UPSTREAM);
      ports.closeListener(FRONT);
      watchBoth(ports);
    });
    await bench.world.settle();
    expect(bench.log).toEqual([]);
  });

  test('survives that a socket closes while it is blocked and watched, whichever it was first', async () => {
    for (const watchedFirst of [true, false]) {
      const { client } = bench.pair();
      if (watchedFirst) bench.call(watchBoth);
      bench.world.setRoom(0);
      bench.call((ports) => {
        for (const n of [1, 2]) {
          ports.sendToBackend(UPSTREAM, undefined, bytes(n));
          ports.sendToClient(FRONT, client.address, undefined, bytes(n));
        }
      });
      if (!watchedFirst) bench.call(watchBoth);
      bench.call((ports) => ports.closeUpstream(UPSTREAM));
      bench.call((ports) => ports.closeListener(FRONT));
      bench.world.setRoom(Infinity);
      await bench.world.settle();
      expect(bench.of('writable')).toEqual([]);
    }
  });

  test('loses count of nothing when sockets close that never had room, and a listener is back at its address', async () => {
    const { client, front, backend } = bench.pair();
    bench.world.setRoom(0);
    const blocked = await bench.turn((ports) => {
      for (const n of [1, 2]) {
        ports.sendToBackend(UPSTREAM, undefined, bytes(n));
        ports.sendToClient(FRONT, client.address, undefined, bytes(n));
      }
    });
    bench.call((ports) => {
      ports.closeUpstream(UPSTREAM);
      ports.closeListener(FRONT);
    });
    bench.listen(FRONT, front);
    await bench.world.settle();
    bench.world.setRoom(Infinity);
    await bench.world.settle();
    expect(blocked.length + bench.of('late').length).toBe(4);
    expect([client.mailbox, backend.mailbox]).toEqual([[], []]);
    await bench.turn((ports) => ports.sendToClient(FRONT, client.address, undefined, bytes(3)));
    expect((await bench.receive(client)).payload).toEqual(bytes(3));
    expect(bench.world.socketCount()).toBe(1);
  });

  test('gives back what found no room: an unbroken tail, its very bytes, in send order', async () => {
    const { client } = bench.pair();
    const from = ipv4(LOOPBACK, 53);
    const [header, dst] = [bytes(28), client.address];
    bench.world.setRoom(2);
    const failures = await bench.turn((ports) => {
      for (const n of [1, 2, 3, 4, 5, 6]) {
        ports.sendToBackend(UPSTREAM, n % 2 === 0 ? header : undefined, bytes(n, 1));
        ports.sendToClient(FRONT, dst, n % 2 === 0 ? from : undefined, bytes(n, 2));
      }
    });
    const about = { cause: 'blocked', direction: 'to-backend', socket: UPSTREAM };
    const blocked = { cause: 'blocked', direction: 'to-client', listener: FRONT, dst };
    const toBackend = failures.filter(({ direction }) => direction === 'to-backend');
    const toClient = failures.filter(({ direction }) => direction === 'to-client');
    expect(toBackend.slice(-3)).toEqual([
      { ...about, header, payload: bytes(4, 1) },
      { ...about, header: undefined, payload: bytes(5, 1) },
      { ...about, header, payload: bytes(6, 1) },
    ]);
    expect(toClient.slice(-3)).toEqual([
      { ...blocked, from, payload: bytes(4, 2) },
      { ...blocked, from: undefined, payload: bytes(5, 2) },
      { ...blocked, from, payload: bytes(6, 2) },
    ]);
    // A driver may keep one datagram of a full socket and send it itself.
    expect([3, 4]).toContain(toBackend.length);
    expect([3, 4]).toContain(toClient.length);
  });

  for (const room of [0, 2]) {
    test(`loses none of equal datagrams where ${room} find room: what came and what came back are all, in order`, async () => {
      const { client, backend } = bench.pair();
      const all = [1, 2, 3, 4, 5, 6].map((n) => bytes(8, n));
      bench.world.setRoom(room);
      const failures = await bench.turn((ports) => {
        for (const payload of all) {
          ports.sendToBackend(UPSTREAM, undefined, payload);
          ports.sendToClient(FRONT, client.address, undefined, payload);
        }
      });
      bench.world.setRoom(Infinity);
      await bench.world.settle();
      for (const [peer, direction] of [
        [backend, 'to-backend'],
        [client, 'to-client'],
      ] as const) {
        const back = failures.flatMap((one) =>
          one.direction === direction && one.cause === 'blocked' ? [one.payload] : [],
        );
        const arrived = peer.mailbox.map(({ payload }) => payload);
        expect([...arrived, ...back]).toEqual(all);
        if (room === 0) expect(back.length).toBeGreaterThan(4);
      }
    });
  }

  test('lets nothing overtake: once blocked, a socket takes no more in that turn even if it has room again', async () => {
    const { backend } = bench.pair();
    const numbers = [1, 2, 3, 4, 5, 6, 7, 8];
    const failures = await bench.turn((ports) => {
      for (const n of numbers) {
        bench.world.setRoom(n <= 4 ? 0 : Infinity);
        ports.sendToBackend(UPSTREAM, undefined, bytes(n));
      }
    });
    await bench.world.settle();
    const arrived = backend.mailbox.map(({ payload }) => payload.length);
    expect([...arrived, ...failures.map(lengthOf)]).toEqual(numbers);
  });

  test('tells of room when there is some and not before; what is sent again arrives in order', async () => {
    const { client, backend } = bench.pair();
    bench.world.setRoom(0);
    const blocked = await bench.turn((ports) => {
      for (const n of [1, 2, 3, 4]) {
        ports.sendToBackend(UPSTREAM, undefined, bytes(n));
        ports.sendToClient(FRONT, client.address, undefined, bytes(n));
      }
    });
    bench.call(watchBoth);
    await bench.world.settle();
    expect(bench.of('writable')).toEqual([]);
    expect([client.mailbox.length, backend.mailbox.length]).toEqual([0, 0]);
    bench.world.setRoom(Infinity);
    await bench.hear('writable', 2);
    const failures = await bench.turn((ports) => blocked.forEach((one) => sendAgain(ports, one)));
    expect(failures).toEqual([]);
    for (const n of [1, 2, 3, 4]) {
      expect((await bench.receive(backend)).payload).toEqual(bytes(n));
      expect((await bench.receive(client)).payload).toEqual(bytes(n));
    }
    await bench.world.settle();
    expect([client.mailbox.length, backend.mailbox.length]).toEqual([0, 0]);
    expect(bench.of('writable')).toHaveLength(2);
  });
}

function lengthOf(failure: SendFailed): number | undefined {
  return failure.cause === 'error' ? undefined : failure.payload.length;
}

/** What was blocked or refused, as whoever got it back sends it. */
export function sendAgain(ports: Ports, failure: SendFailed): void {
  if (failure.cause === 'error') return expect.unreachable('it is lost');
  if (failure.direction === 'to-client') {
    return ports.sendToClient(failure.listener, failure.dst, failure.from, failure.payload);
  }
  return ports.sendToBackend(failure.socket, failure.header, failure.payload);
}
