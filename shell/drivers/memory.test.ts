import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import {
  DataPlane,
  initialDirectives,
  listenerId,
  present,
  Pump,
  seconds,
  socketId,
  type Address,
  type Arrivals,
  type ClusterSettings,
  type ListenerCounters,
  type SendFailed,
} from '../../core/index.ts';
import { OPEN_BACK_OFF } from '../../core/upstream-sources.ts';
import { driverLaws } from '../../core/ports.laws.ts';
import { bytes, DriverBench, FRONT, LOCAL, UPSTREAM, type World } from '../../test/driver-bench.ts';
import { addressOf, clusterSettings, configOf, listenerConfig } from '../../test/plane-bench.ts';
import { MemoryDriver, type MemoryPeer } from './memory.ts';

driverLaws('memory', async (arrivals) => worldOf(new MemoryDriver(), arrivals));
driverLaws('memory, with batches of three', async (arrivals) =>
  worldOf(new MemoryDriver({ batch: 3 }), arrivals),
);

describe('a driver that batches', () => {
  test('reads payload and header at the flush, not at the send', () => {
    const { driver, backend } = connected();
    const [header, payload] = [bytes(28), bytes(10)];
    driver.sendToBackend(UPSTREAM, header, payload);
    header.fill(1);
    payload.fill(2);
    expect(backend.mailbox).toEqual([]);
    driver.flush(fail);
    expect(backend.mailbox.map((one) => [...one.payload])).toEqual([
      [...Array.from({ length: 28 }, () => 1), ...Array.from({ length: 10 }, () => 2)],
    ]);
  });

  test('sends as soon as a batch is full, and tells of failures at the flush all the same', () => {
    const { driver, backend } = connected(2);
    driver.room = 3;
    for (const n of [1, 2, 3, 4, 5]) driver.sendToBackend(UPSTREAM, undefined, bytes(n));
    expect(backend.mailbox.map(({ payload }) => payload.length)).toEqual([1, 2, 3]);
    expect(flushed(driver)).toHaveLength(2);
    expect(backend.mailbox).toHaveLength(3);
  });

  for (const [jam, cause] of [
    ['EAGAIN', 'blocked'],
    ['EPERM', 'error'],
  ] as const) {
    test(`fails the unbroken tail of each socket with ${jam}, once`, () => {
      const { driver, backend } = connected();
      const other = socketId(2, FRONT);
      driver.openUpstream(other, backend.address, undefined);
      driver.room = 2;
      driver.jam = jam;
      for (const n of [1, 2, 3, 4]) {
        driver.sendToBackend(UPSTREAM, undefined, bytes(n));
        driver.sendToBackend(other, undefined, bytes(10 + n));
      }
      const about = { direction: 'to-backend', cause };
      expect(flushed(driver)).toMatchObject(
        [3, 13, 4, 14].map((n) => ({
          ...about,
          socket: n < 10 ? UPSTREAM : other,
          ...(cause === 'blocked' ? { payload: bytes(n) } : { errno: jam }),
        })),
      );
      expect(flushed(driver)).toEqual([]);
      expect(backend.mailbox.map(({ payload }) => payload.length)).toEqual([1, 11, 2, 12]);
    });
  }

  test('lends what blocked again for the call that reports it, and poisons it then', () => {
    const { driver, backend } = connected();
    const arrivals = new DriverBench();
    driver.attach(arrivals);
    driver.sendToBackend(UPSTREAM, undefined, bytes(1));
    driver.flush(fail);
    driver.room = 0;
    const lent: Uint8Array[] = [];
    const reported: number[][] = [];
    arrivals.backendDatagram = (socket, payload) => {
      lent.push(payload);
      driver.sendToBackend(socket, undefined, payload);
    };
    arrivals.endTurn = () =>
      driver.flush((failure) => {
        if (failure.cause === 'blocked') reported.push([...failure.payload]);
      });
    backend.send(present(backend.mailbox[0], 'it was asked').from, Uint8Array.of(1, 2, 3));
    driver.deliver();
    expect(reported).toEqual([[1, 2, 3]]);
    expect(lent).toEqual([Uint8Array.of(0xdb, 0xdb, 0xdb)]);
  });

  test('means by a descriptor whatever is open there at the flush', () => {
    const { driver, backend } = connected();
    const elsewhere = driver.peer(LOCAL);
    driver.sendToBackend(UPSTREAM, undefined, bytes(1));
    driver.closeUpstream(UPSTREAM);
    driver.openUpstream(socketId(2, FRONT), elsewhere.address, undefined);
    driver.flush(fail);
    expect([backend.mailbox.length, elsewhere.mailbox.length]).toEqual([0, 1]);
  });
});

describe('the pump over a driver that batches, poisons and reuses', () => {
  test('closes after the flush: with requests = 1 each datagram reaches the backend it was meant for', () => {
    const { driver, front, backends } = proxy({ requests: 1 });
    const client = driver.peer(LOCAL);
    for (const n of [1, 2, 3, 4]) client.send(front, bytes(n));
    driver.deliver();
    expect(backends.map(lengths)).toEqual([
      [1, 3],
      [2, 4],
    ]);
    expect(driver.socketCount).toBe(1);
  });

  test('keeps no payload past the flush, in either direction', () => {
    const { driver, front, backends, counters } = proxy({ sendProxyProtocol: true });
    const client = driver.peer(LOCAL);
    const [backend] = backends;
    for (let round = 0; round < 3; round += 1) {
      client.send(front, bytes(50, round));
      driver.deliver();
      const asked = present(backend?.mailbox.shift(), 'the backend was asked');
      expect(asked.payload.subarray(round === 0 ? 28 : 0)).toEqual(bytes(50, round));
      backend?.send(asked.from, bytes(60, round));
      driver.deliver();
      expect(client.mailbox.shift()).toEqual({ from: front, payload: bytes(60, round) });
    }
    expect(counters()).toMatchObject({ forwarded: 3, returned: 3 });
  });

  test('keeps what a full socket cannot take, byte for byte, and sends it in order as there is room', () => {
    const { driver, front, backends, counters } = proxy({ sendProxyProtocol: true });
    const client = driver.peer(LOCAL);
    const [backend] = backends;
    driver.room = 0;
    for (const n of [1, 2, 3]) client.send(front, bytes(n));
    driver.deliver();
    for (const n of [4, 5]) client.send(front, bytes(n));
    driver.deliver();
    expect(driver.deliver(), 'nothing moves while there is no room').toBe(false);
    expect(counters()).toMatchObject({ clientReceived: 5, forwarded: 0 });
    driver.room = 2;
    driver.deliver();
    expect(lengths(backend)).toEqual([29, 2]);
    client.send(front, bytes(6));
    while (driver.deliver());
    expect(backend?.mailbox.map(({ payload }) => payload).slice(1)).toEqual(
      [2, 3, 4, 5, 6].map((n) => bytes(n)),
    );
    expect(counters()).toMatchObject({ forwarded: 6, droppedWqFull: 0 });
  });

  test('keeps replies, too, for several clients of one socket', () => {
    const { driver, front, backends, counters } = proxy({}, addressOf('0.0.0.0:0'));
    const clients = [1, 2].map(() => driver.peer(LOCAL));
    const asked = { ...addressOf('127.0.0.7:0'), port: front.port };
    for (const client of clients) client.send(asked, bytes(1));
    driver.deliver();
    driver.room = 0;
    for (const backend of backends) {
      const { from } = present(backend.mailbox[0], 'the backend was asked');
      for (const n of [1, 2, 3]) backend.send(from, bytes(n));
    }
    driver.deliver();
    expect(counters()).toMatchObject({ backendReceived: 6, returned: 0 });
    driver.room = 4;
    while (driver.deliver());
    for (const client of clients) {
      expect(client.mailbox).toEqual([1, 2, 3].map((n) => ({ from: asked, payload: bytes(n) })));
    }
    expect(counters()).toMatchObject({ returned: 6 });
  });

  test('refuses clients beyond the descriptors it has, and admits them when there are more', () => {
    const { driver, front, counters } = proxy();
    const clients = [1, 2, 3].map(() => driver.peer(LOCAL));
    driver.descriptorsMax = 3;
    for (const client of clients) client.send(front, bytes(1));
    driver.deliver();
    expect(counters()).toMatchObject({ forwarded: 2, flowsShed: 1, droppedUnknownFlow: 1 });
    driver.descriptorsMax = 4;
    driver.pass(OPEN_BACK_OFF.first);
    clients[2]?.send(front, bytes(2));
    driver.deliver();
    expect(counters()).toMatchObject({ forwarded: 3 });
  });

  test('answers from the address that was asked, on a wildcard listener', () => {
    const { driver, front, backends } = proxy({}, addressOf('0.0.0.0:0'));
    const client = driver.peer(LOCAL);
    const asked = { ...addressOf('127.0.0.7:0'), port: front.port };
    client.send(asked, bytes(1));
    driver.deliver();
    const [backend] = backends;
    backend?.send(present(backend.mailbox[0], 'the backend was asked').from, bytes(2));
    driver.deliver();
    expect(client.mailbox).toEqual([{ from: asked, payload: bytes(2) }]);
  });

  test('closes an idle flow when the timer says so, early wake-ups included', () => {
    const { driver, front } = proxy();
    driver.peer(LOCAL).send(front, bytes(1));
    driver.deliver();
    driver.fireTimer();
    driver.pass(seconds(29));
    expect(driver.socketCount).toBe(2);
    driver.pass(seconds(1));
    expect(driver.socketCount).toBe(1);
    expect(driver.wake).toBeUndefined();
  });
});

function worldOf(driver: MemoryDriver, arrivals: Arrivals): World {
  driver.attach(arrivals);
  return {
    ports: driver,
    portOf: (listener) => driver.portOf(listener),
    socketCount: () => driver.socketCount,
    need: () => undefined,
    peer: (at) => driver.peer(at),
    endOfTurn: async () => setImmediate(),
    settle: async () => {
      while (driver.deliver());
    },
    setRoom: (count) => {
      driver.room = count;
    },
    pass: async (duration) => driver.pass(duration),
    withoutDescriptors: async (run) => {
      const { descriptorsMax } = driver;
      driver.descriptorsMax = driver.socketCount;
      run();
      driver.descriptorsMax = descriptorsMax;
    },
    dispose: async () => undefined,
  };
}

function connected(batch = 32): { driver: MemoryDriver; backend: MemoryPeer } {
  const driver = new MemoryDriver({ batch });
  const backend = driver.peer(LOCAL);
  expect(driver.openUpstream(UPSTREAM, backend.address, undefined)).toBeUndefined();
  return { driver, backend };
}

interface ProxyInMemory {
  readonly driver: MemoryDriver;
  readonly front: Address;
  readonly backends: readonly MemoryPeer[];
  readonly counters: () => ListenerCounters | undefined;
}

/** A listener and two backends in turn, on a driver that hands out buffers and takes them back. */
function proxy(more: Partial<ClusterSettings> = {}, at: Address = LOCAL): ProxyInMemory {
  const driver = new MemoryDriver({ batch: 4 });
  const backends = [driver.peer(LOCAL), driver.peer(LOCAL)];
  const plane = new DataPlane({
    placementSeed: { high: 1, low: 2 },
    tableSeed: { first: 3, second: 4 },
    randomSeed: { high: 5, low: 6 },
  });
  const pump = new Pump(plane, driver, () => undefined);
  driver.attach(pump);
  const settings = clusterSettings({
    backends: backends.map(({ address }, n) => ({
      id: `b${n}`,
      address,
      weight: 100,
      backup: false,
    })),
    ...more,
  });
  for (const directive of initialDirectives(
    configOf([settings], [listenerConfig({ address: at })]),
  )) {
    pump.direct({ generation: 1, directive });
  }
  pump.endTurn();
  const front = { ...at, port: present(driver.portOf(listenerId(0)), 'the listener is open') };
  return { driver, front, backends, counters: () => plane.countersOf(listenerId(0)) };
}

function lengths(peer: MemoryPeer | undefined): number[] {
  return (peer?.mailbox ?? []).map(({ payload }) => payload.length);
}

function flushed(driver: MemoryDriver): SendFailed[] {
  const failures: SendFailed[] = [];
  driver.flush((failure) => failures.push(failure));
  return failures;
}

function fail(failure: SendFailed): never {
  throw new Error(`unexpected: ${JSON.stringify(failure)}`);
}
