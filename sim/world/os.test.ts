import { describe, expect, test } from 'vitest';
import { ipv4, ipv6, type Address } from '../../core/address.ts';
import { listenerId, socketId, type SocketId } from '../../core/brand.ts';
import type { ListenerSocket, Opened } from '../../core/ports.ts';
import { after, microseconds, milliseconds, seconds } from '../../core/time.ts';
import { bytes, FRONT, LOCAL, LOOPBACK, UPSTREAM, type Heard } from '../../test/driver-bench.ts';
import { OsBench } from './os-world.laws.ts';
import { SimulatedOs } from './os.ts';
import type { PlainOptions } from './plain-world.ts';

const BUFFERS = { ipv6Only: false, receiveBuffer: 212_992, sendBuffer: 212_992 };
const ALWAYS = { numerator: 1, denominator: 1 };
const SECOND_SOURCE = ipv4(LOOPBACK + 1, 0);

describe('opening', () => {
  test('gives the lowest free descriptor first, and EMFILE when the process may have no more', () => {
    const { os, kernel } = benchOf({ shape: { descriptors: 3 } });
    expect([1, 2, 3, 4].map((n) => connect(os, n))).toEqual([...worked(3), 'EMFILE']);
    os.closeUpstream(upstream(2));
    expect(connect(os, 5)).toBeUndefined();
    expect(kernel.descriptors.socketAt(1)?.descriptor).toBe(1);
    expect(connect(os, 6)).toBe('EMFILE');
  });

  test('chooses each port of the range once for each local address, and says EADDRINUSE then', () => {
    const { os, wire } = benchOf({ shape: { ephemeralPorts: { low: 40_000, high: 40_002 } } });
    const first = [1, 2, 3, 4].map((n) => connect(os, n, LOCAL));
    expect(first).toEqual([...worked(3), 'EADDRINUSE']);
    expect(wire.attached).toEqual([0, 1, 2].map((n) => `127.0.0.1:4000${n}`));
    expect([5, 6, 7].map((n) => connect(os, n, SECOND_SOURCE))).toEqual(worked(3));
    // Without a source the port is looked for at every address at once.
    expect(connect(os, 8)).toBe('EADDRINUSE');
    os.closeUpstream(upstream(1));
    expect(connect(os, 8)).toBe('EADDRINUSE');
    expect(connect(os, 8, LOCAL)).toBeUndefined();
  });

  test('finds fewer ports while the fault says so', () => {
    const bench = benchOf();
    bench.fault({ ephemeralPorts: 2 });
    expect([1, 2, 3].map((n) => connect(bench.os, n))).toEqual([...worked(2), 'EADDRINUSE']);
    bench.fault({ ephemeralPorts: undefined });
    expect(connect(bench.os, 3)).toBeUndefined();
  });

  test('says EADDRINUSE where another program listens, and EADDRNOTAVAIL where the address has gone', () => {
    const bench = benchOf();
    const at = ipv4(LOOPBACK, 53);
    bench.fault({ occupied: [ipv4(0, 53)], absent: [LOCAL] });
    expect(bench.os.openListener(FRONT, at, BUFFERS)).toBe('EADDRNOTAVAIL');
    expect(connect(bench.os, 1, LOCAL)).toBe('EADDRNOTAVAIL');
    bench.fault({ absent: [] });
    expect(bench.os.openListener(FRONT, at, BUFFERS)).toBe('EADDRINUSE');
    bench.fault({ occupied: [] });
    expect(bench.os.openListener(FRONT, at, BUFFERS)).toBeUndefined();
  });

  test('says ENETUNREACH where no address of the host leads', () => {
    const { os } = benchOf({ shape: { addresses: [ipv4(0x0a0000fe, 0)] } });
    const backend = ipv6([0x20010db8, 0, 0, 1], 53);
    expect(os.openUpstream(UPSTREAM, backend, undefined)).toBe('ENETUNREACH');
    expect(os.kernel.descriptors.count).toBe(0);
  });

  test('ends with the process: another one starts on the same host, on the same port', () => {
    const bench = benchOf();
    const front = listen(bench);
    connect(bench.os, 1);
    bench.os.wakeAt(after(bench.os.now(), seconds(1)));
    bench.program(LOCAL).send(front, bytes(1));
    bench.os.kill();
    bench.run(seconds(2));
    expect(bench.heard.log).toEqual([]);
    expect(bench.wire.attached).toEqual(['127.0.0.1:20000']);
    expect(bench.kernel.in.abandoned).toBe(1);
    const next = new SimulatedOs(bench.kernel);
    expect(next.openListener(FRONT, front, BUFFERS)).toBeUndefined();
  });
});

describe('receiving', () => {
  test('drops the newest when the receive buffer is full, counts them, and hears all again with room', () => {
    const bench = benchOf();
    const front = listen(bench);
    bench.fault({ receiveBuffer: 3 * 512 });
    const client = bench.program(LOCAL);
    for (const n of [1, 2, 3, 4, 5]) client.send(front, bytes(n));
    bench.run(milliseconds(1));
    client.send(front, bytes(6));
    bench.run(milliseconds(1));
    expect(bench.heard.of('client').map(({ payload }) => payload.length)).toEqual([1, 2, 3, 6]);
    expect(bench.kernel.in).toMatchObject({ received: 6, overflowed: 2, taken: 4 });
  });

  for (const [asked, taken] of [
    [1_024, 2],
    [1_000_000, 4],
  ] as const) {
    test(`grants a listener that asks for a buffer of ${asked} no more than the host has`, () => {
      const bench = benchOf({ shape: { socketBuffer: 2_048 } });
      const front = listen(bench, { ...BUFFERS, receiveBuffer: asked });
      for (let sent = 0; sent < 9; sent++) bench.program(LOCAL).send(front, bytes(0));
      bench.run(milliseconds(1));
      expect(bench.kernel.in).toMatchObject({ taken, overflowed: 9 - taken });
    });
  }

  test('takes a budget from each socket in a turn, so that a flood keeps nobody else waiting', () => {
    const bench = benchOf({ shape: { receiveBudget: 4 } });
    const [front, other] = [listen(bench), listen(bench, BUFFERS, 1)];
    const client = bench.program(LOCAL);
    for (let n = 0; n < 20; n++) client.send(front, bytes(1));
    client.send(other, bytes(2));
    bench.run(milliseconds(1));
    const turns = turnsOf(bench.heard.log);
    expect(turns.map((turn) => turn.length)).toEqual([5, 4, 4, 4, 4]);
    expect(turns[0]?.filter((one) => one.kind === 'client' && one.listener !== FRONT)).toHaveLength(
      1,
    );
    expect(bench.os).toMatchObject({ turns: 5, idleTurns: 0 });
  });

  test('looks at its sockets in an order that the seed draws', () => {
    const orders = new Set<string>();
    for (let seed = 0; seed < 30; seed++) {
      const bench = benchOf({ seed });
      for (const front of [0, 1, 2].map((n) => listen(bench, BUFFERS, n))) {
        bench.program(LOCAL).send(front, bytes(1));
      }
      bench.run(milliseconds(1));
      const heard = bench.heard.of('client').map(({ listener }) => listener);
      orders.add(heard.join());
    }
    expect(orders.size).toBe(6);
  });

  test('does not hear a stranger on a connected socket, and counts him', () => {
    const bench = benchOf();
    bench.heard.connect(UPSTREAM, bench.program(LOCAL).address);
    bench.program(LOCAL).send(localOf(bench), bytes(1));
    bench.run(milliseconds(1));
    expect(bench.heard.log).toEqual([]);
    expect(bench.kernel.in).toMatchObject({ received: 1, strange: 1, taken: 0 });
  });
});

describe('sending', () => {
  test('copies a payload at the send, and reads a header at the flush', async () => {
    const bench = benchOf();
    const { backend } = bench.heard.pair();
    const [header, payload] = [bytes(28, 1), bytes(10, 2)];
    await bench.heard.turn((ports) => {
      ports.sendToBackend(UPSTREAM, header, payload);
      header.fill(1);
      payload.fill(2);
    });
    expect([...(backend.mailbox[0]?.payload ?? [])]).toEqual([
      ...Array.from({ length: 28 }, () => 1),
      ...bytes(10, 2),
    ]);
  });

  test('means by a descriptor whatever is open there at the flush', () => {
    const bench = benchOf();
    const [backend, elsewhere] = [bench.program(LOCAL), bench.program(LOCAL)];
    bench.heard.connect(UPSTREAM, backend.address);
    bench.os.sendToBackend(UPSTREAM, undefined, bytes(1));
    bench.os.closeUpstream(UPSTREAM);
    bench.heard.connect(upstream(2), elsewhere.address);
    bench.os.flush(fail);
    expect([backend.mailbox.length, elsewhere.mailbox.length]).toEqual([0, 1]);
  });

  test('fills its send buffer at the rate of the host, blocks with EAGAIN, and tells of room', async () => {
    const bench = benchOf();
    const { backend } = bench.heard.pair();
    bench.fault({ sendRate: 1_000_000, sendBuffer: 3 * 1_512 });
    const failures = await bench.heard.turn((ports) => {
      for (let n = 0; n < 5; n++) ports.sendToBackend(UPSTREAM, undefined, bytes(1_000, n));
      ports.watchUpstream(UPSTREAM);
    });
    expect(failures.map(({ cause }) => cause)).toEqual(['blocked', 'blocked']);
    bench.run(microseconds(999));
    expect([backend.mailbox.length, bench.heard.of('writable').length]).toEqual([0, 0]);
    bench.run(microseconds(1));
    expect([backend.mailbox.length, bench.heard.of('writable').length]).toEqual([1, 1]);
    bench.run(milliseconds(5));
    expect(backend.mailbox.map(({ payload }) => payload)).toEqual(
      [0, 1, 2].map((n) => bytes(1_000, n)),
    );
    expect(bench.kernel.out).toMatchObject({ sends: 4, left: 3 });
  });

  test('holds everything in a jam, and lets it go in order when that is over', async () => {
    const bench = benchOf();
    const { backend, client } = bench.heard.pair();
    bench.fault({ sendRate: 0 });
    await bench.heard.turn((ports) => {
      ports.sendToBackend(UPSTREAM, undefined, bytes(1));
      ports.sendToClient(FRONT, client.address, undefined, bytes(2));
      ports.sendToBackend(UPSTREAM, undefined, bytes(3));
    });
    bench.run(seconds(10));
    expect([backend.mailbox.length, bench.kernel.leaving]).toEqual([0, 3]);
    bench.os.closeUpstream(UPSTREAM);
    bench.fault({ sendRate: undefined });
    expect(backend.mailbox.map(({ payload }) => payload.length)).toEqual([1, 3]);
    expect(client.mailbox).toHaveLength(1);
    expect(bench.kernel.leaving).toBe(0);
  });

  test('fails with ENOBUFS as often as the fault says, and takes the rest', async () => {
    const bench = benchOf();
    const { backend } = bench.heard.pair();
    bench.fault({ noBuffers: { numerator: 1, denominator: 4 } });
    const failures = await bench.heard.turn((ports) => {
      for (let n = 0; n < 400; n++) ports.sendToBackend(UPSTREAM, undefined, bytes(1));
    });
    expect(failures.length).toBeGreaterThan(70);
    expect(failures.length).toBeLessThan(130);
    expect(failures[0]).toMatchObject({ cause: 'error', errno: 'ENOBUFS', socket: UPSTREAM });
    expect(backend.mailbox.length + failures.length).toBe(400);
  });

  test('fails with EMSGSIZE beyond what the path takes, header included', async () => {
    const bench = benchOf();
    const { backend } = bench.heard.pair();
    bench.fault({ datagramBytes: 1_472 });
    const failures = await bench.heard.turn((ports) => {
      ports.sendToBackend(UPSTREAM, undefined, bytes(1_472));
      ports.sendToBackend(UPSTREAM, bytes(28), bytes(1_445));
    });
    expect(failures).toMatchObject([{ cause: 'error', errno: 'EMSGSIZE' }]);
    expect(backend.mailbox.map(({ payload }) => payload.length)).toEqual([1_472]);
  });

  test('never completes a send that stalls: the socket has no room again, and only a new one has', async () => {
    const bench = benchOf();
    const { backend, client } = bench.heard.pair();
    bench.fault({ upstreamStalls: ALWAYS });
    const turn = await bench.heard.turn((ports) => {
      ports.sendToBackend(UPSTREAM, undefined, bytes(1));
      ports.sendToBackend(UPSTREAM, undefined, bytes(2));
      ports.sendToClient(FRONT, client.address, undefined, bytes(3));
      ports.watchUpstream(UPSTREAM);
    });
    expect(turn).toMatchObject([{ cause: 'blocked', payload: bytes(2) }]);
    expect(client.mailbox).toHaveLength(1);
    bench.fault({ upstreamStalls: undefined });
    bench.run(seconds(100));
    expect(bench.heard.log).toEqual([]);
    expect(await bench.heard.forward(bytes(4))).toMatchObject([{ cause: 'blocked' }]);
    bench.os.closeUpstream(UPSTREAM);
    bench.heard.connect(upstream(2), backend.address);
    bench.os.sendToBackend(upstream(2), undefined, bytes(5));
    bench.os.flush(fail);
    expect(backend.mailbox.map(({ payload }) => payload.length)).toEqual([5]);
    expect(bench.kernel.out.stalled).toBe(1);
  });

  test('stalls listeners by a fault of their own', async () => {
    const bench = benchOf();
    const { backend, client } = bench.heard.pair();
    bench.fault({ listenerStalls: ALWAYS });
    const failures = await bench.heard.turn((ports) => {
      for (const n of [1, 2]) ports.sendToClient(FRONT, client.address, undefined, bytes(n));
      ports.sendToBackend(UPSTREAM, undefined, bytes(3));
    });
    expect(failures).toMatchObject([{ direction: 'to-client', cause: 'blocked' }]);
    expect([client.mailbox.length, backend.mailbox.length]).toEqual([0, 1]);
  });

  test('tells in a later turn of a send that failed after the flush', async () => {
    const bench = benchOf();
    const { backend } = bench.heard.pair();
    bench.fault({ lateFailures: ALWAYS });
    expect(await bench.heard.forward(bytes(1))).toEqual([]);
    bench.run(milliseconds(1));
    expect(bench.heard.log).toEqual([
      { kind: 'late', listener: FRONT, errno: 'EPERM' },
      { kind: 'endTurn' },
    ]);
    expect(backend.mailbox).toEqual([]);
  });
});

describe('a refusal', () => {
  test('is told by the poll when it comes between turns', async () => {
    const bench = benchOf({ delay: milliseconds(1) });
    bench.heard.pair().backend.close();
    expect(await bench.heard.forward(bytes(1))).toEqual([]);
    bench.run(microseconds(1_999));
    expect(bench.heard.log).toEqual([]);
    bench.run(microseconds(1));
    expect(bench.heard.of('refused')).toEqual([{ kind: 'refused', socket: UPSTREAM }]);
    expect(await bench.heard.forward(bytes(2))).toEqual([]);
  });

  test('meets the next send instead if the poll is late, and is told once', async () => {
    const bench = benchOf();
    bench.heard.pair().backend.close();
    bench.fault({ refusalDelay: seconds(1) });
    expect(await bench.heard.forward(bytes(1))).toEqual([]);
    const failures = await bench.heard.forward(bytes(2));
    expect(failures).toMatchObject([{ cause: 'refused', socket: UPSTREAM, payload: bytes(2) }]);
    bench.run(seconds(2));
    expect(bench.heard.of('refused')).toEqual([]);
    expect(bench.kernel.in.refusals).toBe(1);
    expect([...bench.kernel.out.failed]).toEqual([['ECONNREFUSED', 1]]);
  });

  test("for a datagram that went elsewhere is not the socket's", async () => {
    const bench = benchOf();
    const { backend } = bench.heard.pair();
    const datagram = { src: localOf(bench), dst: ipv4(LOOPBACK, 9), payload: bytes(1) };
    bench.kernel.unreachable(datagram);
    bench.kernel.unreachable({ ...datagram, src: backend.address });
    bench.run(milliseconds(1));
    expect(bench.heard.log).toEqual([]);
  });
});

function benchOf(options?: PlainOptions): OsBench {
  return new OsBench(options);
}

function listen(bench: OsBench, wanted: ListenerSocket = BUFFERS, number: number = FRONT): Address {
  const listener = listenerId(number);
  expect(bench.os.openListener(listener, LOCAL, wanted)).toBeUndefined();
  return { ...LOCAL, port: bench.os.portOf(listener) ?? 0 };
}

function upstream(serial: number): SocketId {
  return socketId(serial, FRONT);
}

function connect(os: SimulatedOs, serial: number, source?: Address): Opened {
  return os.openUpstream(upstream(serial), ipv4(0x0a000001, 53), source);
}

function worked(count: number): Opened[] {
  return Array.from({ length: count }, () => undefined);
}

/** Where the one connected socket is reached. */
function localOf({ kernel }: OsBench): Address {
  const connected = [...kernel.descriptors.sockets()].find(({ peer }) => peer !== undefined);
  return connected?.local ?? LOCAL;
}

function turnsOf(log: readonly Heard[]): Heard[][] {
  const turns: Heard[][] = [[]];
  for (const heard of log) {
    if (heard.kind === 'endTurn') turns.push([]);
    else turns.at(-1)?.push(heard);
  }
  return turns.slice(0, -1);
}

function fail(failure: unknown): never {
  throw new Error(`unexpected: ${JSON.stringify(failure)}`);
}
