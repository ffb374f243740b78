import { describe, expect, test } from 'vitest';
import { ipv4, ipv6, type Address } from '../../core/address.ts';
import { listenerId, socketId, type SocketId } from '../../core/brand.ts';
import type { ListenerSocket, Opened } from '../../core/ports.ts';
import { after, milliseconds, seconds } from '../../core/time.ts';
import { bytes, FRONT, LOCAL, LOOPBACK, UPSTREAM, type Heard } from '../../test/driver-bench.ts';
import { OsBench } from './os-world.laws.ts';
import { SimulatedOs } from './os.ts';
import type { PlainOptions } from './plain-world.ts';

const BUFFERS = { ipv6Only: false, receiveBuffer: 212_992, sendBuffer: 212_992 };
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
