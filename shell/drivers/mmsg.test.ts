import { constants } from 'node:os';
import { expect, test } from 'vitest';
import { ipv4, ipv6, present, socketId, type Address, type Arrivals } from '../../core/index.ts';
import { sendAgain } from '../../core/ports-room.laws.ts';
import { bufferLaws } from '../../core/ports-buffer.laws.ts';
import { driverLaws } from '../../core/ports.laws.ts';
import {
  benchFor,
  bytes,
  FRONT,
  LOCAL,
  LOCAL_IPV6,
  OTHER_FRONT,
  OTHER_UPSTREAM,
  UPSTREAM,
  type World,
} from '../../test/driver-bench.ts';
import { needKoffi } from '../../test/e2e/peers.ts';
import { silent, worldOf } from './mmsg-world.laws.ts';
import { loadLibc, type Libc } from './libc.ts';
import { MmsgDriver } from './mmsg.ts';

const libc = loadLibc();

if (typeof libc === 'string') {
  test(`the driver mmsg cannot be had: ${libc}`, needKoffi);
} else {
  const make = async (arrivals: Arrivals): Promise<World> => worldOf(libc, arrivals);
  driverLaws('mmsg', make);
  bufferLaws('mmsg', make);
  ownLaws(libc);
}

function ownLaws(real: Libc): void {
  const calls: number[] = [];
  const failing: number[] = [];
  const counting: Libc = {
    ...real,
    sendmmsg: (fd, headers, count) => {
      calls.push(count);
      const failure = failing.shift();
      if (failure === undefined) return real.sendmmsg(fd, headers, count);
      return failure > 0 ? real.sendmmsg(fd, headers, failure) : failure;
    },
  };
  const bench = benchFor(async (arrivals) => {
    calls.length = 0;
    failing.length = 0;
    return worldOf(counting, arrivals);
  });
  const { EPERM, EINTR } = constants.errno;

  test('sends a run of one flow, and the replies of many, in one call each, however they mix', async () => {
    const { client, backend } = bench.pair();
    bench.connect(OTHER_UPSTREAM, backend.address);
    const other = bench.world.peer(LOCAL);
    await bench.turn((ports) => {
      for (const n of [1, 2, 3]) {
        ports.sendToBackend(UPSTREAM, undefined, bytes(n));
        ports.sendToClient(FRONT, client.address, undefined, bytes(n));
        ports.sendToBackend(OTHER_UPSTREAM, undefined, bytes(n));
        ports.sendToClient(FRONT, other.address, undefined, bytes(n));
      }
    });
    expect(calls).toEqual([3, 6, 3]);
    for (let n = 0; n < 6; n += 1) await bench.receive(backend);
    for (const n of [1, 2, 3]) {
      expect((await bench.receive(client)).payload).toEqual(bytes(n));
      expect((await bench.receive(other)).payload).toEqual(bytes(n));
    }
  });

  test('sends more than a batch, and more than it can collect, in order', async () => {
    const { backend, client } = bench.pair();
    const other = bench.world.peer(LOCAL);
    bench.connect(OTHER_UPSTREAM, other.address);
    const numbers = Array.from({ length: 180 }, (_, n) => n);
    await bench.turn((ports) => {
      for (const n of numbers) {
        ports.sendToBackend(UPSTREAM, undefined, bytes(2 + n, n));
        ports.sendToBackend(OTHER_UPSTREAM, undefined, bytes(3 + n, n));
        ports.sendToClient(FRONT, client.address, undefined, bytes(4 + n, n));
      }
    });
    for (const [peer, size] of [
      [backend, 2],
      [other, 3],
      [client, 4],
    ] as const) {
      for (const n of numbers) {
        expect((await bench.receive(peer)).payload).toEqual(bytes(size + n, n));
      }
    }
    // 512 are collected, which is 171 for each but the last, and then the rest.
    expect(calls).toEqual([64, 64, 43, 64, 64, 43, 64, 64, 42, 10, 9, 9]);
  });

  test('copies no payload that has arrived: what is sent is read at the flush', async () => {
    const backend = bench.world.peer(LOCAL);
    let arrived: Uint8Array | undefined;
    const driver = new MmsgDriver(real);
    driver.attach({
      ...silent,
      clientDatagram: (_listener, _src, _local, payload) => {
        arrived = payload;
        driver.sendToBackend(UPSTREAM, undefined, payload);
        payload.fill(7);
      },
      endTurn: () => driver.flush(() => expect.unreachable('nothing fails')),
    });
    const socket = { ipv6Only: false, receiveBuffer: 65_536, sendBuffer: 65_536 };
    expect(driver.openListener(FRONT, LOCAL, socket)).toBeUndefined();
    expect(driver.openUpstream(UPSTREAM, backend.address, undefined)).toBeUndefined();
    bench.world.peer(LOCAL).send({ ...LOCAL, port: driver.portOf(FRONT) ?? 0 }, bytes(5));
    driver.turn(1_000);
    expect(arrived).toHaveLength(5);
    expect((await bench.receive(backend)).payload).toEqual(new Uint8Array(5).fill(7));
    driver.closeListener(FRONT);
    driver.closeUpstream(UPSTREAM);
    driver.close();
  });

  test('tells which reply of a batch the kernel would not take, and sends those around it', async () => {
    const { client } = bench.pair();
    failing.push(1, -EINTR, -EPERM);
    const failures = await bench.turn((ports) => {
      for (const n of [1, 2, 3]) ports.sendToClient(FRONT, client.address, undefined, bytes(n));
    });
    const about = { direction: 'to-client', cause: 'error', listener: FRONT };
    expect(failures).toEqual([{ ...about, errno: 'EPERM' }]);
    for (const n of [1, 3]) expect((await bench.receive(client)).payload).toEqual(bytes(n));
  });

  test('gives back what ended the run of a flow, for the second try to tell why', async () => {
    const { backend } = bench.pair();
    failing.push(1);
    const failures = await bench.turn((ports) => {
      for (const n of [1, 2, 3]) ports.sendToBackend(UPSTREAM, undefined, bytes(n));
    });
    expect(failures.map(({ cause }) => cause)).toEqual(['refused', 'blocked']);
    failing.push(-EPERM);
    const again = await bench.turn((ports) => failures.forEach((one) => sendAgain(ports, one)));
    expect(again).toEqual([
      { direction: 'to-backend', cause: 'error', socket: UPSTREAM, errno: 'EPERM' },
    ]);
    for (const n of [1, 3]) expect((await bench.receive(backend)).payload).toEqual(bytes(n));
  });

  for (const [asked, at] of [
    [ipv4(0x7f000003, 0), 'IPv4'],
    [LOCAL_IPV6, 'IPv6'],
  ] as const) {
    test(`answers from the ${at} address that was asked on a listener for both families`, async (context) => {
      bench.world.need(context, 'IPv6');
      const { port } = bench.listen(FRONT, ipv6([0, 0, 0, 0], 0));
      const client = bench.world.peer(asked.family === 4 ? LOCAL : LOCAL_IPV6);
      client.send({ ...asked, port }, bytes(1));
      const [arrival] = await bench.hear('client', 1);
      const { src, local } = present(arrival, 'one was heard');
      expect(local).toEqual({ ...asked, port });
      await bench.turn((ports) => ports.sendToClient(FRONT, src, local, bytes(2)));
      expect((await bench.receive(client)).from).toEqual({ ...asked, port });
    });
  }

  test('hears every socket when more have something than one turn holds', async () => {
    const { backend, front } = bench.pair();
    const other = bench.world.peer(LOCAL);
    const sockets = Array.from({ length: 280 }, (_, n) => socketId(n + 10, FRONT));
    for (const [n, socket] of sockets.entries()) {
      bench.connect(socket, n % 2 === 0 ? backend.address : other.address);
    }
    await bench.turn((ports) => {
      for (const socket of sockets) ports.sendToBackend(socket, undefined, bytes(1));
    });
    bench.log.length = 0;
    for (const n of sockets.keys()) {
      const peer = n % 2 === 0 ? backend : other;
      const { from } = await bench.receive(peer);
      for (const size of [2, 3]) peer.send(from, bytes(size));
    }
    bench.world.peer(LOCAL).send(front, bytes(4));
    await bench.hear('backend', 560);
    await bench.hear('client', 1);
    for (const size of [2, 3]) {
      const heard = bench.of('backend').filter(({ payload }) => payload.length === size);
      expect(heard).toHaveLength(sockets.length);
      expect(new Set(heard.map(({ socket }) => socket))).toEqual(new Set(sockets));
    }
    bench.call((ports) => sockets.forEach((socket) => ports.closeUpstream(socket)));
  });

  test('serves first what found no slot in the turn before', async () => {
    const { backend } = bench.pair();
    const [busy, patient] = [[11, 12, 13, 14], 15];
    const sockets = [...busy, patient].map((serial) => socketId(serial, FRONT));
    for (const socket of sockets) bench.connect(socket, backend.address);
    await bench.turn((ports) => {
      for (const socket of sockets) ports.sendToBackend(socket, undefined, bytes(1));
    });
    const from: Address[] = [];
    for (const _ of sockets) from.push((await bench.receive(backend)).from);
    // Flows that bring several datagrams at a time are asked for all of them.
    for (const to of from) for (const _ of [1, 2, 3]) backend.send(to, bytes(2));
    await bench.hear('backend', 3 * sockets.length);
    bench.log.length = 0;
    for (const [n, to] of from.entries()) {
      for (let more = n < busy.length ? 150 : 1; more > 0; more -= 1) backend.send(to, bytes(1));
    }
    await bench.hear('backend', 601);
    const place = bench.of('backend').findIndex(({ socket }) => socket === sockets.at(-1));
    expect(place).toBe(256);
    bench.call((ports) => sockets.forEach((socket) => ports.closeUpstream(socket)));
  });

  test('forgets what an arrival of the other family left in a slot', async (context) => {
    bench.world.need(context, 'IPv6');
    const front = bench.listen(FRONT, LOCAL);
    const { port } = bench.listen(OTHER_FRONT, ipv6([0, 0, 0, 0], 0));
    const [old, young] = [bench.world.peer(LOCAL), bench.world.peer(LOCAL_IPV6)];
    const asked = { ...LOCAL_IPV6, port };
    for (const count of [1, 3]) {
      old.send(front, bytes(4));
      await bench.hear('client', count);
      young.send(asked, bytes(6));
      await bench.hear('client', count + 1);
    }
    const heard = bench.of('client').map(({ src, local }) => [src, local]);
    const turn = [
      [old.address, undefined],
      [young.address, asked],
    ];
    expect(heard).toEqual([...turn, ...turn]);
  });

  test('sends nothing on what has the descriptor of the socket that was sent on last', async () => {
    const { client, backend } = bench.pair();
    const other = bench.world.peer(LOCAL);
    await bench.turn((ports) => {
      ports.sendToBackend(UPSTREAM, undefined, bytes(1));
      ports.sendToClient(FRONT, client.address, undefined, bytes(1));
    });
    bench.call((ports) => {
      ports.closeListener(FRONT);
      ports.closeUpstream(UPSTREAM);
    });
    bench.connect(OTHER_UPSTREAM, other.address);
    bench.listen(OTHER_FRONT, LOCAL);
    const failures = await bench.turn((ports) => {
      ports.sendToBackend(UPSTREAM, undefined, bytes(2));
      ports.sendToClient(FRONT, client.address, undefined, bytes(2));
    });
    expect(failures).toMatchObject([{ errno: 'EBADF' }, { errno: 'EBADF' }]);
    await bench.world.settle();
    const lengths = [client, backend, other].map(({ mailbox }) =>
      mailbox.map((one) => one.payload.length),
    );
    expect(lengths).toEqual([[1], [1], []]);
  });

  test('finds its listeners under the names that the kernel gives them', () => {
    const driver = new MmsgDriver(real);
    const socket = { ipv6Only: false, receiveBuffer: 8_192, sendBuffer: 8_192 };
    expect(driver.openListener(FRONT, LOCAL, socket)).toBeUndefined();
    expect(driver.inodeOf(FRONT)).toBeGreaterThan(0);
    driver.closeListener(FRONT);
    expect(driver.inodeOf(FRONT)).toBeUndefined();
    driver.close();
  });
}
