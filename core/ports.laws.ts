/**
 * What every driver must keep: node:dgram, the driver in memory and the simulated operating system. `driverLaws('mine', …)`
 * in a test runs them all; drivers may differ in speed only. What cannot be shared is tested beside the drivers it belongs to:
 * - that bytes are read no sooner than the flush, and lent buffers overwritten after it: only a driver that batches can
 *   show the one, and only one that owns its receive buffers the other;
 * - arrivals that carry the local address: asked of a driver whose capabilities say that it has them;
 * - receive buffers that overflow: `bufferLaws`, which the driver in memory has no use for;
 * - what no true kernel does on request (ENOBUFS, sends that stall or fail late, refusals that a poll overlooks, ports that
 *   run out, addresses that go, machines that sleep) and the exact times of timers and turns: simulated only.
 */
import { describe, expect, test } from 'vitest';
import {
  benchFor,
  bytes,
  FRONT,
  LOCAL,
  LOCAL_IPV6,
  LOOPBACK,
  OTHER_FRONT,
  OTHER_UPSTREAM,
  UPSTREAM,
  type MakeWorld,
} from '../test/driver-bench.ts';
import { ipv4, ipv6, sameAddress, sameIp, toIpv6 } from './address.ts';
import { present } from './assert.ts';
import { DATAGRAM_BYTES_MAX } from './contract.ts';
import { roomLaws, sendAgain } from './ports-room.laws.ts';
import { timerLaws } from './ports-timer.laws.ts';
import type { Opened } from './ports.ts';

/** `make` attaches the arrivals to a fresh driver and says how its world is moved. */
export function driverLaws(name: string, make: MakeWorld): void {
  describe(`${name} as a driver`, () => {
    openLaws(make);
    deliveryLaws(make);
    addressLaws(make);
    failureLaws(make);
    roomLaws(make);
    turnLaws(make);
    timerLaws(make);
  });
}

function openLaws(make: MakeWorld): void {
  const bench = benchFor(make);

  test('opens a listener on a port of its choice, and closing it leaves nothing', () => {
    bench.listen(FRONT, LOCAL);
    expect(bench.world.portOf(FRONT)).toBeGreaterThan(0);
    expect(bench.world.socketCount()).toBe(1);
    bench.call((ports) => ports.closeListener(FRONT));
    expect(bench.world.socketCount()).toBe(0);
    expect(bench.world.portOf(FRONT)).toBeUndefined();
  });

  test('does nothing when asked to close what is not open', () => {
    bench.call((ports) => ports.closeListener(FRONT));
    bench.call((ports) => ports.closeUpstream(UPSTREAM));
    expect(bench.world.socketCount()).toBe(0);
  });

  test('refuses a port that is taken, by name, and grants it once it is free', () => {
    const address = bench.listen(FRONT, LOCAL);
    expect(bench.tryListen(OTHER_FRONT, address, false)).toBe('EADDRINUSE');
    expect(bench.world.socketCount()).toBe(1);
    bench.call((ports) => ports.closeListener(FRONT));
    expect(bench.tryListen(OTHER_FRONT, address, false)).toBeUndefined();
  });

  test('refuses an address that this host does not have, by name', () => {
    const elsewhere = ipv4(0xc0000201, 0);
    expect(bench.tryListen(FRONT, elsewhere, false)).toBe('EADDRNOTAVAIL');
    expect(bench.world.socketCount()).toBe(0);
  });

  test('keeps IPv4 off an IPv6 wildcard when told to, and only then', (context) => {
    bench.world.need(context, 'IPv6');
    const { port } = bench.listen(FRONT, ipv4(0, 0));
    const twin = ipv6([0, 0, 0, 0], port);
    expect(bench.tryListen(OTHER_FRONT, twin, false)).toBe('EADDRINUSE');
    expect(bench.tryListen(OTHER_FRONT, twin, true)).toBeUndefined();
    expect(bench.world.socketCount()).toBe(2);
  });

  test('says so when a backend cannot be connected to, and leaves nothing open', async () => {
    const broadcast = ipv4(-1, 9);
    expect(bench.tryConnect(UPSTREAM, broadcast)).toMatch(/^E[A-Z]+$/);
    expect(bench.world.socketCount()).toBe(0);
    await bench.world.settle();
    expect(bench.log).toEqual([]);
  });

  test('sends from the source it was given, and refuses one that this host does not have, by name', async () => {
    const backend = bench.world.peer(LOCAL);
    const source = ipv4(LOOPBACK + 2, 0);
    bench.connect(UPSTREAM, backend.address, source);
    await bench.forward(bytes(1));
    expect(sameIp((await bench.receive(backend)).from, source)).toBe(true);
    const elsewhere = ipv4(0xc0000201, 0);
    expect(bench.tryConnect(OTHER_UPSTREAM, backend.address, elsewhere)).toBe('EADDRNOTAVAIL');
    expect(bench.world.socketCount()).toBe(1);
  });

  test('names EMFILE when there is no descriptor left, and works on when there is', async (context) => {
    bench.world.need(context, 'descriptor limits');
    const backend = bench.world.peer(LOCAL);
    let opened: Opened[] = [];
    await bench.world.withoutDescriptors(() => {
      opened = [bench.tryConnect(UPSTREAM, backend.address), bench.tryListen(FRONT, LOCAL, false)];
    });
    expect(opened).toEqual(['EMFILE', 'EMFILE']);
    expect(bench.world.socketCount()).toBe(0);
    bench.connect(OTHER_UPSTREAM, backend.address);
    await bench.turn((ports) => ports.sendToBackend(OTHER_UPSTREAM, undefined, bytes(3)));
    expect((await bench.receive(backend)).payload).toEqual(bytes(3));
  });
}

function deliveryLaws(make: MakeWorld): void {
  const bench = benchFor(make);

  for (const size of [0, 1, 1_472, 1_500, 9_000, DATAGRAM_BYTES_MAX]) {
    test(`carries ${size} bytes both ways, every byte, as one datagram each`, async () => {
      const { client, backend, front } = bench.pair();
      client.send(front, bytes(size));
      expect((await bench.hear('client', 1))[0]?.payload).toEqual(bytes(size));
      await bench.forward(bytes(size, 1));
      const request = await bench.receive(backend);
      expect(request.payload).toEqual(bytes(size, 1));
      backend.send(request.from, bytes(size, 2));
      expect((await bench.hear('backend', 1))[0]?.payload).toEqual(bytes(size, 2));
      await bench.turn((ports) =>
        ports.sendToClient(FRONT, client.address, undefined, bytes(size, 3)),
      );
      expect((await bench.receive(client)).payload).toEqual(bytes(size, 3));
      await bench.world.settle();
      expect([client.mailbox.length, backend.mailbox.length]).toEqual([0, 0]);
      expect(bench.of('backend').map(({ socket }) => socket)).toEqual([UPSTREAM]);
    });
  }

  test('puts a header before the payload in the same datagram', async () => {
    const { backend } = bench.pair();
    await bench.turn((ports) => {
      ports.sendToBackend(UPSTREAM, bytes(28, 7), bytes(0));
      ports.sendToBackend(UPSTREAM, bytes(28, 7), bytes(100, 9));
    });
    expect((await bench.receive(backend)).payload).toEqual(bytes(28, 7));
    expect((await bench.receive(backend)).payload).toEqual(
      Uint8Array.from([...bytes(28, 7), ...bytes(100, 9)]),
    );
    await bench.world.settle();
    expect(backend.mailbox.length).toBe(0);
  });

  test('keeps the order of a flow in both directions, each datagram once', async () => {
    const { client, backend, front } = bench.pair();
    const numbers = Array.from({ length: 60 }, (_, at) => at);
    for (const turn of [0, 20, 40]) {
      await bench.turn((ports) => {
        for (const n of numbers.slice(turn, turn + 20)) {
          ports.sendToBackend(UPSTREAM, undefined, bytes(2, n));
          ports.sendToClient(FRONT, client.address, undefined, bytes(3, n));
        }
      });
    }
    for (const n of numbers) {
      expect((await bench.receive(backend)).payload).toEqual(bytes(2, n));
      expect((await bench.receive(client)).payload).toEqual(bytes(3, n));
    }
    for (const n of numbers) client.send(front, bytes(4, n));
    await bench.hear('client', numbers.length);
    await bench.world.settle();
    const heard = bench.of('client').map(({ payload }) => payload);
    expect(heard).toEqual(numbers.map((n) => bytes(4, n)));
    expect([client.mailbox.length, backend.mailbox.length]).toEqual([0, 0]);
  });

  test('connects each upstream socket to its backend: a stranger is not heard', async () => {
    const { backend } = bench.pair();
    await bench.forward(bytes(1));
    const { from } = await bench.receive(backend);
    bench.world.peer(LOCAL).send(from, bytes(5));
    backend.send(from, bytes(6));
    expect((await bench.hear('backend', 1))[0]?.payload).toEqual(bytes(6));
    await bench.world.settle();
    expect(bench.of('backend')).toHaveLength(1);
  });

  test('tells two upstream sockets to one backend apart', async () => {
    const { backend } = bench.pair();
    bench.connect(OTHER_UPSTREAM, backend.address);
    await bench.turn((ports) => {
      ports.sendToBackend(UPSTREAM, undefined, bytes(1));
      ports.sendToBackend(OTHER_UPSTREAM, undefined, bytes(2));
    });
    const [one, other] = [await bench.receive(backend), await bench.receive(backend)];
    expect(sameAddress(one.from, other.from)).toBe(false);
    backend.send(other.from, bytes(2));
    backend.send(one.from, bytes(1));
    await bench.hear('backend', 2);
    for (const { socket, payload } of bench.of('backend')) {
      expect(payload).toEqual(bytes(socket === UPSTREAM ? 1 : 2));
    }
  });

  test('is silent about a socket that was closed, even with datagrams waiting in it', async () => {
    const { client, backend, front } = bench.pair();
    await bench.forward(bytes(1));
    const { from } = await bench.receive(backend);
    client.send(front, bytes(1));
    backend.send(from, bytes(1));
    bench.call((ports) => ports.closeUpstream(UPSTREAM));
    bench.call((ports) => ports.closeListener(FRONT));
    bench.connect(OTHER_UPSTREAM, backend.address);
    backend.send(from, bytes(2));
    await bench.world.settle();
    expect(bench.of('client')).toEqual([]);
    expect(bench.of('backend')).toEqual([]);
    expect(bench.world.socketCount()).toBe(1);
  });
}

function addressLaws(make: MakeWorld): void {
  const bench = benchFor(make);

  for (const [family, at] of [
    ['IPv4', LOCAL],
    ['IPv6', LOCAL_IPV6],
  ] as const) {
    test(`answers the ${family} client that asked, from the address it asked`, async (context) => {
      if (family === 'IPv6') bench.world.need(context, 'IPv6');
      const front = bench.listen(FRONT, at);
      const clients = [bench.world.peer(at), bench.world.peer(at)];
      for (const [n, client] of clients.entries()) client.send(front, bytes(n + 1));
      await bench.hear('client', clients.length);
      await bench.turn((ports) => {
        for (const { src, payload } of bench.of('client').reverse()) {
          ports.sendToClient(FRONT, src, undefined, payload);
        }
      });
      for (const [n, client] of clients.entries()) {
        expect(await bench.receive(client)).toEqual({ from: front, payload: bytes(n + 1) });
      }
    });
  }

  test('sees IPv4 clients of a dual-stack listener as IPv4, and answers them', async (context) => {
    bench.world.need(context, 'IPv6');
    const { port } = bench.listen(FRONT, ipv6([0, 0, 0, 0], 0));
    const old = bench.world.peer(LOCAL);
    const young = bench.world.peer(LOCAL_IPV6);
    old.send(ipv4(LOOPBACK, port), bytes(4));
    young.send({ ...LOCAL_IPV6, port }, bytes(6));
    await bench.hear('client', 2);
    const sources = bench.of('client').map(({ src }) => src);
    expect(sources).toEqual(expect.arrayContaining([old.address, young.address]));
    await bench.turn((ports) => {
      ports.sendToClient(FRONT, old.address, undefined, bytes(44));
      ports.sendToClient(FRONT, toIpv6(old.address), undefined, bytes(45));
      ports.sendToClient(FRONT, young.address, undefined, bytes(66));
    });
    expect(await bench.receive(old)).toEqual({ from: ipv4(LOOPBACK, port), payload: bytes(44) });
    expect((await bench.receive(old)).payload).toEqual(bytes(45));
    expect((await bench.receive(young)).payload).toEqual(bytes(66));
  });

  test('reaches IPv6 backends', async (context) => {
    bench.world.need(context, 'IPv6');
    const backend = bench.world.peer(LOCAL_IPV6);
    bench.connect(UPSTREAM, backend.address);
    await bench.forward(bytes(6));
    backend.send((await bench.receive(backend)).from, bytes(7));
    const answer = { socket: UPSTREAM, payload: bytes(7) };
    expect(await bench.hear('backend', 1)).toMatchObject([answer]);
  });

  test('answers from the local address of the arrival, if its capabilities say that it has it', async () => {
    const { port } = bench.listen(FRONT, ipv4(0, 0));
    const client = bench.world.peer(LOCAL);
    const asked = ipv4(0x7f000002, port);
    client.send(asked, bytes(1));
    const [arrival] = await bench.hear('client', 1);
    const { src, local } = present(arrival, 'one was heard');
    if (!bench.world.ports.capabilities.localAddress) return expect(local).toBeUndefined();
    expect(local).toEqual(asked);
    await bench.turn((ports) => ports.sendToClient(FRONT, src, local, bytes(2)));
    return expect(await bench.receive(client)).toEqual({ from: asked, payload: bytes(2) });
  });
}

function failureLaws(make: MakeWorld): void {
  const bench = benchFor(make);

  test('tells of a refusal, keeps the socket, and loses nothing once the backend is up', async () => {
    const { backend } = bench.pair();
    backend.close();
    expect(await bench.forward(bytes(1))).toEqual([]);
    expect(await bench.hear('refused', 1)).toEqual([{ kind: 'refused', socket: UPSTREAM }]);
    backend.reopen();
    await bench.forward(bytes(2));
    expect((await bench.receive(backend)).payload).toEqual(bytes(2));
  });

  test('gives back every datagram that meets a stale refusal, and what is sent again arrives once', async () => {
    const { backend } = bench.pair();
    backend.close();
    const failures = await bench.turn((ports) => {
      ports.sendToBackend(UPSTREAM, bytes(28), bytes(1));
      ports.sendToBackend(UPSTREAM, bytes(28), bytes(2));
    });
    const about = { direction: 'to-backend', socket: UPSTREAM, header: bytes(28) };
    expect(failures).toEqual([{ ...about, cause: 'refused', payload: bytes(2) }]);
    backend.reopen();
    expect(await bench.turn((ports) => failures.forEach((one) => sendAgain(ports, one)))).toEqual(
      [],
    );
    expect((await bench.receive(backend)).payload).toHaveLength(30);
    await bench.world.settle();
    expect(backend.mailbox.length).toBe(0);
    expect(bench.of('refused')).toEqual([]);
  });

  test('lets nothing overtake a datagram that is known to be refused', async () => {
    const { backend } = bench.pair();
    backend.close();
    bench.call((ports) => {
      for (const n of [1, 2]) ports.sendToBackend(UPSTREAM, undefined, bytes(n));
    });
    await bench.world.endOfTurn();
    const failures = await bench.turn((ports) => {
      for (const n of [3, 4]) ports.sendToBackend(UPSTREAM, undefined, bytes(n));
    });
    expect(failures.map(({ cause }) => cause)).toEqual(['refused', 'blocked', 'blocked']);
    backend.reopen();
    expect(await bench.turn((ports) => failures.forEach((one) => sendAgain(ports, one)))).toEqual(
      [],
    );
    for (const n of [2, 3, 4]) expect((await bench.receive(backend)).payload).toEqual(bytes(n));
  });

  test('reports at the flush, once, what the kernel will not take, and sends the rest', async () => {
    const { client, backend } = bench.pair();
    const failures = await bench.turn((ports) => {
      ports.sendToBackend(UPSTREAM, undefined, bytes(1));
      ports.sendToBackend(UPSTREAM, undefined, bytes(DATAGRAM_BYTES_MAX + 1));
      ports.sendToBackend(UPSTREAM, bytes(28), bytes(DATAGRAM_BYTES_MAX));
      ports.sendToClient(FRONT, client.address, undefined, bytes(DATAGRAM_BYTES_MAX + 1));
      ports.sendToClient(FRONT, client.address, undefined, bytes(2));
    });
    const failed = { cause: 'error', errno: 'EMSGSIZE' };
    expect(failures).toEqual([
      { direction: 'to-backend', socket: UPSTREAM, ...failed },
      { direction: 'to-backend', socket: UPSTREAM, ...failed },
      { direction: 'to-client', listener: FRONT, ...failed },
    ]);
    expect((await bench.receive(backend)).payload).toEqual(bytes(1));
    expect((await bench.receive(client)).payload).toEqual(bytes(2));
    expect(await bench.forward(bytes(3))).toEqual([]);
    expect((await bench.receive(backend)).payload).toEqual(bytes(3));
  });

  test('reports what was sent on a socket that is not open', async () => {
    const failures = await bench.turn((ports) => {
      ports.sendToBackend(UPSTREAM, undefined, bytes(1));
      ports.sendToClient(FRONT, LOCAL, undefined, bytes(1));
    });
    expect(failures).toEqual([
      { direction: 'to-backend', cause: 'error', socket: UPSTREAM, errno: 'EBADF' },
      { direction: 'to-client', cause: 'error', listener: FRONT, errno: 'EBADF' },
    ]);
  });
}

function turnLaws(make: MakeWorld): void {
  const bench = benchFor(make);

  test('ends a turn after everything that one look at the sockets found', async () => {
    const { client, backend, front } = bench.pair();
    bench.listen(OTHER_FRONT, LOCAL);
    bench.connect(OTHER_UPSTREAM, backend.address);
    await bench.forward(bytes(1));
    await bench.turn((ports) => ports.sendToBackend(OTHER_UPSTREAM, undefined, bytes(1)));
    const flows = [await bench.receive(backend), await bench.receive(backend)];
    bench.log.length = 0;
    for (const n of [1, 2, 3]) {
      client.send(front, bytes(n));
      client.send({ ...front, port: bench.world.portOf(OTHER_FRONT) ?? 0 }, bytes(n));
    }
    // One of each: whether a turn takes more from a backend at once is the driver's own affair.
    for (const { from } of flows) backend.send(from, bytes(1));
    await bench.hear('endTurn', 1);
    await bench.world.settle();
    const kinds = bench.log.map(({ kind }) => kind);
    expect(kinds).toHaveLength(9);
    expect(kinds.indexOf('endTurn')).toBe(8);
  });
}
