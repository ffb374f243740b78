import { array, assert, asyncProperty, constantFrom, oneof, pre, record } from 'fast-check';
import { constants } from 'node:os';
import { expect, test } from 'vitest';
import { ipv4, present, type Address } from '../../core/index.ts';
import { sendAgain } from '../../core/ports-room.laws.ts';
import {
  benchFor,
  bytes,
  FRONT,
  LOCAL,
  LOOPBACK,
  OTHER_UPSTREAM,
  UPSTREAM,
} from '../../test/driver-bench.ts';
import { needKoffi } from '../../test/e2e/peers.ts';
import { loadLibc, SOL_UDP, type Libc } from './libc.ts';
import { MessageSpy, worldOf, type MmsgWorld } from './mmsg-world.laws.ts';

const libc = loadLibc();

if (typeof libc === 'string') test(`no trains without libc: ${libc}`, needKoffi);
else trainTests(libc);

function trainTests(real: Libc): void {
  /** Datagrams of each message, call by call. */
  const calls: number[][] = [];
  /** What the next sends of trains meet, and whether the kernel knows them at all. */
  const refusals: (keyof typeof constants.errno)[] = [];
  let isOld = false;
  const spy = new MessageSpy();
  const refusing: Libc = {
    ...spy.watching(real),
    setsockopt: (fd, level, ...option) =>
      isOld && level === SOL_UDP
        ? -constants.errno.ENOPROTOOPT
        : real.setsockopt(fd, level, ...option),
    sendmmsg: (fd, headers, count) => {
      const trains = spy.trainsAt(headers, count);
      calls.push(trains);
      const first = trains.findIndex((datagrams) => datagrams > 1);
      const [refusal] = refusals;
      if (refusal === undefined || first < 0) return real.sendmmsg(fd, headers, count);
      if (first > 0) return real.sendmmsg(fd, headers, first);
      refusals.shift();
      return -constants.errno[refusal];
    },
  };
  let live: MmsgWorld | undefined;
  const bench = benchFor(async (arrivals) => {
    calls.length = 0;
    refusals.length = 0;
    live = worldOf(refusing, arrivals);
    return live;
  });
  const figures = (): unknown => {
    const { kernelDrops: _, ...sent } = present(live, 'a test has a world').driver.figures;
    return sent;
  };

  test('equal neighbours leave as one in both directions, of which the last may be shorter', async () => {
    const { client, backend } = bench.pair();
    const sizes = [9, 9, 9, 4];
    const failures = await bench.turn((ports) => {
      for (const [n, size] of sizes.entries()) {
        ports.sendToBackend(UPSTREAM, undefined, bytes(size, n));
        ports.sendToClient(FRONT, client.address, undefined, bytes(size, n));
      }
    });
    expect(failures).toEqual([]);
    expect(calls).toEqual([[4], [4]]);
    for (const peer of [backend, client]) {
      for (const [n, size] of sizes.entries()) {
        expect((await bench.receive(peer)).payload).toEqual(bytes(size, n));
      }
    }
    expect(figures()).toEqual({ trains: 2, datagramsInTrains: 8, trainsRefused: 0 });
  });

  test('a header counts as a part of its datagram', async () => {
    const { backend } = bench.pair();
    const [header, first, second] = [bytes(28, 3), bytes(72, 1), bytes(100, 2)];
    await bench.turn((ports) => {
      ports.sendToBackend(UPSTREAM, header, first);
      ports.sendToBackend(UPSTREAM, undefined, second);
      ports.sendToBackend(UPSTREAM, header, second);
    });
    expect(calls).toEqual([[2, 1]]);
    const expected = [[...header, ...first], [...second], [...header, ...second]];
    for (const datagram of expected) {
      expect([...(await bench.receive(backend)).payload]).toEqual(datagram);
    }
  });

  test('whatever the sizes and the peers are, each datagram arrives whole, and in the order of its flow', async () => {
    const { front } = bench.pair();
    const clients = [0, 1].map(() => bench.world.peer(LOCAL));
    const one = record({
      to: constantFrom(...clients),
      from: constantFrom(undefined, ipv4(LOOPBACK, front.port)),
      size: oneof(constantFrom(0, 1, 8, 8, 8, 9), constantFrom(1_200, 1_200, 16_000)),
      times: constantFrom(1, 1, 2, 5, 70),
    });
    await assert(
      asyncProperty(array(one, { maxLength: 8 }), async (runs) => {
        calls.length = 0;
        const sends = runs.flatMap((run) => Array.from({ length: run.times }, () => run));
        // A receive buffer holds about so much.
        pre(sends.reduce((sum, { size }) => sum + 2 * size + 1_500, 0) < 200_000);
        const failures = await bench.turn((ports) => {
          for (const [n, { to, from, size }] of sends.entries()) {
            ports.sendToClient(FRONT, to.address, from, bytes(size, n));
          }
        });
        expect(failures).toEqual([]);
        for (const [n, { to, size }] of sends.entries()) {
          expect((await bench.receive(to)).payload).toEqual(bytes(size, n));
        }
        expect(calls.flat()).toEqual(
          trainsOf(sends.map((send) => ({ ...send, to: send.to.address }))),
        );
      }),
      { numRuns: 40 },
    );
  });

  for (const errno of ['EINVAL', 'EMSGSIZE', 'EIO', 'EOPNOTSUPP'] as const) {
    test(`a path that refuses trains by ${errno} is sent the same datagrams one by one, once told`, async () => {
      const { client, backend } = bench.pair();
      bench.connect(OTHER_UPSTREAM, backend.address);
      const numbers = [1, 2, 3];
      for (const round of [1, 2]) {
        if (round === 1) refusals.push(errno, errno);
        const failures = await bench.turn((ports) => {
          ports.sendToBackend(UPSTREAM, undefined, bytes(7));
          for (const n of numbers) {
            ports.sendToBackend(UPSTREAM, undefined, bytes(40, n));
            ports.sendToClient(FRONT, client.address, undefined, bytes(50, n));
          }
        });
        expect(failures).toEqual([]);
        expect((await bench.receive(backend)).payload).toEqual(bytes(7));
        for (const n of numbers) {
          expect((await bench.receive(backend)).payload).toEqual(bytes(40, n));
          expect((await bench.receive(client)).payload).toEqual(bytes(50, n));
        }
      }
      const plain = [1, 1, 1];
      expect(calls).toEqual([[1, 3], [3], plain, [3], plain, [1, ...plain], plain]);
      expect(figures()).toEqual({ trains: 0, datagramsInTrains: 0, trainsRefused: 2 });
      calls.length = 0;
      await bench.turn((ports) => {
        for (const n of numbers) {
          ports.sendToBackend(OTHER_UPSTREAM, undefined, bytes(40, n));
          ports.sendToBackend(UPSTREAM, undefined, bytes(39, n));
        }
      });
      const smaller = errno === 'EINVAL' || errno === 'EMSGSIZE' ? [3] : plain;
      expect(calls).toEqual([[3], smaller]);
    });
  }

  test('an old kernel is never asked for a train', async () => {
    isOld = true;
    const { driver } = worldOf(refusing, bench);
    isOld = false;
    const backend = bench.world.peer(LOCAL);
    expect(driver.openUpstream(UPSTREAM, backend.address, undefined)).toBeUndefined();
    for (const n of [1, 2]) driver.sendToBackend(UPSTREAM, undefined, bytes(3, n));
    driver.flush(() => expect.unreachable('nothing fails'));
    expect(calls).toEqual([[1, 1]]);
    driver.closeUpstream(UPSTREAM);
    driver.close();
  });

  test('a train that meets a stale refusal comes back as its datagrams, none of which was sent', async () => {
    const { backend } = bench.pair();
    backend.close();
    await bench.forward(bytes(1));
    const failures = await bench.turn((ports) => {
      for (const n of [1, 2, 3]) ports.sendToBackend(UPSTREAM, undefined, bytes(5, n));
      ports.sendToBackend(UPSTREAM, undefined, bytes(9));
    });
    expect(failures.map(({ cause }) => cause)).toEqual([
      'refused',
      'blocked',
      'blocked',
      'blocked',
    ]);
    backend.reopen();
    expect(await bench.turn((ports) => failures.forEach((one) => sendAgain(ports, one)))).toEqual(
      [],
    );
    for (const n of [1, 2, 3]) expect((await bench.receive(backend)).payload).toEqual(bytes(5, n));
    expect((await bench.receive(backend)).payload).toEqual(bytes(9));
    await bench.world.settle();
    expect(backend.mailbox).toEqual([]);
  });

  test('a train that the kernel will not take at all is lost datagram by datagram, and no other is', async () => {
    const { client } = bench.pair();
    const other = bench.world.peer(LOCAL);
    refusals.push('EPERM');
    const failures = await bench.turn((ports) => {
      for (const n of [1, 2, 3]) ports.sendToClient(FRONT, client.address, undefined, bytes(5, n));
      ports.sendToClient(FRONT, other.address, undefined, bytes(5));
    });
    const failure = { direction: 'to-client', cause: 'error', listener: FRONT, errno: 'EPERM' };
    expect(failures).toEqual([failure, failure, failure]);
    expect((await bench.receive(other)).payload).toEqual(bytes(5));
    expect(client.mailbox).toEqual([]);
  });
}

interface Send {
  readonly to: Address;
  readonly from: Address | undefined;
  readonly size: number;
}

/** How many datagrams go together, by the rules. */
function trainsOf(sends: readonly Send[]): number[] {
  const trains: Send[][] = [];
  for (const send of sends) {
    const train = trains.at(-1) ?? [];
    const [first, last] = [train[0], train.at(-1)];
    const bytesTogether = train.reduce((sum, { size }) => sum + size, send.size);
    const goesAlong =
      first !== undefined &&
      last?.size === first.size &&
      send.to === first.to &&
      send.from === first.from &&
      send.size > 0 &&
      send.size <= first.size &&
      train.length < 64 &&
      bytesTogether <= 65_000;
    if (goesAlong) train.push(send);
    else trains.push([send]);
  }
  return trains.map(({ length }) => length);
}
