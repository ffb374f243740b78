import { describe, expect, test } from 'vitest';
import { ipv4, ipv6, type Address } from '../../core/address.ts';
import { listenerId, socketId, type SocketId } from '../../core/brand.ts';
import { microseconds, milliseconds, seconds } from '../../core/time.ts';
import { bytes, FRONT, LOCAL, LOOPBACK, UPSTREAM } from '../../test/driver-bench.ts';
import { OsBench } from './os-world.laws.ts';
import { POISON } from './os.ts';

const BUFFERS = { ipv6Only: false, receiveBuffer: 212_992, sendBuffer: 212_992 };
const ALWAYS = { numerator: 1, denominator: 1 };
const SECOND_SOURCE = ipv4(LOOPBACK + 1, 0);

describe('sending', () => {
  test('copies a payload at the send, and reads a header at the flush', async () => {
    const bench = new OsBench();
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
    const bench = new OsBench();
    const [backend, elsewhere] = [bench.program(LOCAL), bench.program(LOCAL)];
    bench.heard.connect(UPSTREAM, backend.address);
    bench.os.sendToBackend(UPSTREAM, undefined, bytes(1));
    bench.os.closeUpstream(UPSTREAM);
    bench.heard.connect(upstream(2), elsewhere.address);
    bench.os.flush(fail);
    expect([backend.mailbox.length, elsewhere.mailbox.length]).toEqual([0, 1]);
  });

  test('fills its send buffer at the rate of the host, blocks with EAGAIN, and tells of room', async () => {
    const bench = new OsBench();
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

  test('grants a send buffer as it is asked for, up to what the host has', async () => {
    for (const [asked, taken] of [
      [1_024, 2],
      [1_000_000, 4],
    ] as const) {
      const bench = new OsBench({ shape: { socketBuffer: 2_048 } });
      const client = bench.program(LOCAL);
      bench.os.openListener(FRONT, LOCAL, { ...BUFFERS, sendBuffer: asked });
      bench.fault({ sendRate: 0 });
      const failures = await bench.heard.turn((ports) => {
        for (let n = 0; n < 9; n++) {
          ports.sendToClient(FRONT, client.address, undefined, bytes(0));
        }
      });
      expect(failures).toHaveLength(9 - taken);
    }
  });

  test('counts a changed rate from when it changes', async () => {
    const bench = new OsBench();
    const { backend } = bench.heard.pair();
    bench.fault({ sendRate: 1_000_000 });
    await bench.heard.forward(bytes(1_000));
    bench.run(microseconds(900));
    bench.fault({ sendRate: 500_000 });
    bench.run(microseconds(1_999));
    expect(backend.mailbox).toEqual([]);
    bench.run(microseconds(1));
    expect(backend.mailbox).toHaveLength(1);
  });

  test('tells of room once, whatever arrives afterwards', () => {
    const bench = new OsBench();
    const { client, front } = bench.heard.pair();
    bench.os.watchListener(FRONT);
    bench.run(milliseconds(1));
    client.send(front, bytes(1));
    bench.run(milliseconds(1));
    expect(bench.heard.log.map(({ kind }) => kind)).toEqual([
      'writable',
      'endTurn',
      'client',
      'endTurn',
    ]);
  });

  test('says ENETUNREACH for a source that the socket is not bound to, and for a family it does not have', async () => {
    const bench = new OsBench();
    const { client } = bench.heard.pair();
    bench.os.openListener(listenerId(1), ipv6([0, 0, 0, 0], 0), { ...BUFFERS, ipv6Only: true });
    const failures = await bench.heard.turn((ports) => {
      ports.sendToClient(FRONT, client.address, SECOND_SOURCE, bytes(1));
      ports.sendToClient(listenerId(1), client.address, undefined, bytes(2));
      ports.sendToClient(FRONT, ipv6([0, 0, 0, 1], 9), undefined, bytes(3));
    });
    expect(failures.map((one) => one.cause === 'error' && one.errno)).toEqual(
      Array.from({ length: 3 }, () => 'ENETUNREACH'),
    );
    expect(client.mailbox).toEqual([]);
  });

  test('holds everything in a jam, and lets it go in order when that is over', async () => {
    const bench = new OsBench();
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
    const bench = new OsBench();
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
    const bench = new OsBench();
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
    const bench = new OsBench();
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
    const bench = new OsBench();
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
    const bench = new OsBench();
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

describe('what is lent', () => {
  test('is overwritten when the turn is over: datagrams, and those that met a refusal', async () => {
    const bench = new OsBench();
    const { backend, client, front } = bench.heard.pair();
    backend.close();
    bench.fault({ refusalDelay: seconds(1) });
    await bench.heard.forward(bytes(1));
    const lent: Uint8Array[] = [];
    const inTurn: number[][] = [];
    bench.heard.clientDatagram = (_listener, _src, _local, payload) => {
      lent.push(payload);
      bench.os.sendToBackend(UPSTREAM, undefined, payload);
    };
    bench.heard.endTurn = () => {
      bench.os.flush((failure) => {
        if (failure.cause === 'refused') lent.push(failure.payload);
      });
      inTurn.push(...lent.map((payload) => [...payload]));
    };
    client.send(front, Uint8Array.of(1, 2, 3));
    bench.run(milliseconds(1));
    expect(inTurn).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ]);
    const poisoned = Uint8Array.of(POISON, POISON, POISON);
    expect(lent).toEqual([poisoned, poisoned]);
  });

  test('is overwritten as soon as it was reported, if it was blocked', () => {
    const bench = new OsBench();
    bench.heard.pair();
    bench.fault({ sendBuffer: 0 });
    bench.os.sendToBackend(UPSTREAM, undefined, Uint8Array.of(1, 2));
    const kept: Uint8Array[] = [];
    bench.os.flush((failure) => {
      if (failure.cause === 'blocked') kept.push(failure.payload);
      expect(kept.map((payload) => [...payload])).toEqual([[1, 2]]);
    });
    expect(kept).toEqual([Uint8Array.of(POISON, POISON)]);
  });
});

describe('a refusal', () => {
  test('is told by the poll when it comes between turns', async () => {
    const bench = new OsBench({ delay: milliseconds(1) });
    bench.heard.pair().backend.close();
    expect(await bench.heard.forward(bytes(1))).toEqual([]);
    bench.run(microseconds(1_999));
    expect(bench.heard.log).toEqual([]);
    bench.run(microseconds(1));
    expect(bench.heard.of('refused')).toEqual([{ kind: 'refused', socket: UPSTREAM }]);
    expect(await bench.heard.forward(bytes(2))).toEqual([]);
  });

  test('meets the next send instead if the poll is late, and is told once', async () => {
    const bench = new OsBench();
    bench.heard.pair().backend.close();
    bench.fault({ refusalDelay: seconds(1) });
    expect(await bench.heard.forward(bytes(1))).toEqual([]);
    const failures = await bench.heard.forward(bytes(2));
    expect(failures).toMatchObject([{ cause: 'refused', socket: UPSTREAM, payload: bytes(2) }]);
    bench.run(seconds(2));
    expect(bench.heard.of('refused')).toEqual([]);
    expect([bench.kernel.in.refusals, bench.os.turns]).toEqual([1, 0]);
    expect([...bench.kernel.out.failed]).toEqual([['ECONNREFUSED', 1]]);
  });

  test('takes the place of a send even where there is no room for one', async () => {
    const bench = new OsBench();
    bench.heard.pair().backend.close();
    bench.fault({ refusalDelay: seconds(1) });
    await bench.heard.forward(bytes(1));
    bench.fault({ sendBuffer: 0 });
    expect(await bench.heard.forward(bytes(2))).toMatchObject([{ cause: 'refused' }]);
  });

  test('is not told of a socket that the same turn has closed', async () => {
    const bench = new OsBench();
    const { backend } = bench.heard.pair();
    bench.heard.connect(upstream(2), backend.address);
    backend.close();
    await bench.heard.turn((ports) => {
      for (const n of [1, 2]) ports.sendToBackend(upstream(n), undefined, bytes(n));
    });
    const told: SocketId[] = [];
    bench.heard.refused = (socket) => {
      told.push(socket);
      for (const n of [1, 2]) bench.os.closeUpstream(upstream(n));
    };
    bench.run(milliseconds(1));
    expect(told).toHaveLength(1);
  });

  test('of a datagram that the socket did not send is nothing to it', () => {
    const bench = new OsBench();
    const { backend } = bench.heard.pair();
    const datagram = { src: localOf(bench), dst: ipv4(LOOPBACK, 9), payload: bytes(1) };
    bench.kernel.unreachable(datagram);
    bench.kernel.unreachable({ ...datagram, src: backend.address });
    bench.run(milliseconds(1));
    expect(bench.heard.log).toEqual([]);
  });
});

function upstream(serial: number): SocketId {
  return socketId(serial, FRONT);
}

/** Where the one connected socket is reached. */
function localOf({ kernel }: OsBench): Address {
  const connected = [...kernel.descriptors.sockets()].find(({ peer }) => peer !== undefined);
  return connected?.local ?? LOCAL;
}

function fail(failure: unknown): never {
  throw new Error(`unexpected: ${JSON.stringify(failure)}`);
}
