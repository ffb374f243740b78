import { setImmediate } from 'node:timers/promises';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  DataPlane,
  healthSettings,
  ipv4,
  listenerId,
  milliseconds,
  NO_CLUSTER,
  present,
  seconds,
  type Address,
  type Config,
  type Duration,
  type HealthSettings,
} from '../core/index.ts';
import { LOCAL, LOOPBACK } from '../test/driver-bench.ts';
import { LoopbackPeer } from '../test/loopback-peer.ts';
import { clusterSettings, listenerConfig } from '../test/plane-bench.ts';
import type { Log } from './log.ts';
import { InThreadPlane } from './planes/in-thread.ts';
import { Proxy } from './proxy.ts';

const FRONT = listenerId(0);

let peers: LoopbackPeer[];
let lines: unknown[];
let log: Log;

beforeEach(() => {
  peers = [];
  lines = [];
  log = pino(
    { level: 'info', base: null, timestamp: false },
    { write: (line) => void lines.push(JSON.parse(line)) },
  );
});

afterEach(() => {
  vi.useRealTimers();
  for (const one of peers) one.close();
});

describe('a running proxy', () => {
  test('forwards over real sockets, and counts what it did', async () => {
    const { proxy, client, backend, front } = start();
    client.send(front, Uint8Array.of(1));
    const asked = await next(backend);
    backend.send(asked.from, Uint8Array.of(2));
    expect(await next(client)).toEqual({ from: front, payload: Uint8Array.of(2) });
    await vi.waitFor(() => {
      expect(proxy.figures.counters.get(FRONT)).toMatchObject({ forwarded: 1, returned: 1 });
    });
    expect(proxy.figures.flows).toBe(1);
    await stop(proxy);
  });

  test('has a secret table seed of its own: what collides in one collides in no other', async () => {
    const [one, other] = [start().proxy, start().proxy];
    const clients = Array.from({ length: 8 }, (_, at) => ipv4(0x0a000001 + at, 4_000));
    expect(clients.map(tableHash(one))).not.toEqual(clients.map(tableHash(other)));
    await stop(one);
    await stop(other);
  });

  test('says which listeners did not open, and why', async () => {
    const taken = peer();
    const proxy = new Proxy(configFor(taken.address, LOCAL), log);
    expect(proxy.failures).toMatchObject([{ errno: 'EADDRINUSE', address: taken.address }]);
    await stop(proxy);
  });

  test('logs one line for many flows that could not be opened', async () => {
    const broadcast = ipv4(-1, 9);
    const { proxy, client, front } = start(broadcast);
    for (let count = 0; count < 5; count += 1) client.send(front, Uint8Array.of(1));
    await vi.waitFor(() => {
      expect(proxy.figures.counters.get(FRONT)).toMatchObject({
        upstreamOpenFailed: 5,
        flowsShed: 5,
      });
    });
    expect(lines.filter((line) => JSON.stringify(line).includes('upstream'))).toEqual([
      {
        level: 40,
        errno: 'ENOTCONN',
        suppressed: 0,
        msg: 'an upstream socket could not be opened; flow refused',
      },
    ]);
    await stop(proxy);
  });

  test('names every upstream source that this machine does not have', async () => {
    // Of the net for documentation (RFC 5737), which nobody has.
    const upstreamSources = [ipv4(0xcb007109, 0), ipv4(0xcb00710a, 0)];
    const { clusters } = configFor(LOCAL, ipv4(LOOPBACK, 9));
    const { proxy, client, front } = start(undefined, {
      clusters: clusters.map((one) => ({ ...one, upstreamSources })),
    });
    client.send(front, Uint8Array.of(1));
    await vi.waitFor(() => {
      expect(proxy.figures.counters.get(FRONT)).toMatchObject({
        upstreamOpenFailed: 2,
        flowsShed: 1,
      });
    });
    const told = lines.filter((line) => JSON.stringify(line).includes('EADDRNOTAVAIL'));
    expect(told).toMatchObject([{ source: '203.0.113.9' }, { source: '203.0.113.10' }]);
    await stop(proxy);
  });
});

describe('health', () => {
  test('probes at once, counts what came of it, and is silent about what goes well', async () => {
    const { proxy, backend, health } = probed(seconds(10));
    const asked = await next(backend);
    expect(asked.payload).toEqual(health.udpProbePayload);
    backend.send(asked.from, Uint8Array.of(1));
    await vi.waitFor(() => {
      expect(proxy.clusterCountersOf('c')).toMatchObject({ probesOk: 1, availableBackends: 1 });
    });
    expect(proxy.figures.failOpenSelections.get('c')).toBe(0);
    expect(lines).toHaveLength(1);
    await stop(proxy);
  });

  test('a backend that refuses is down, in the log too, and tried all the same when it is the only one', async () => {
    const { proxy, backend, client, front } = probed(milliseconds(20));
    await next(backend);
    backend.close();
    await vi.waitFor(() => {
      expect(proxy.clusterCountersOf('c')).toMatchObject({ availableBackends: 0 });
    });
    const { port } = backend.address;
    expect(lines.slice(1)).toEqual([
      {
        level: 40,
        cluster: 'c',
        backend: `127.0.0.1:${port}`,
        evidence: expect.stringMatching(/^udp probe: (refused|timeout)$/),
        streak: 1,
        suppressed: 0,
        msg: 'backend down',
      },
      {
        level: 50,
        cluster: 'c',
        total: 1,
        suppressed: 0,
        msg: 'no backend is available: every one is tried',
      },
    ]);
    client.send(front, Uint8Array.of(1));
    await vi.waitFor(() => expect(proxy.figures.failOpenSelections.get('c')).toBe(1));
    await stop(proxy);
  });

  test('a stop leaves no probe and no timer behind', async () => {
    const before = timers();
    const { proxy, backend } = probed(seconds(10));
    await next(backend);
    expect([openSockets(), timers()]).toEqual([4, before + 1]);
    proxy.stop();
    await proxy.stopped;
    for (const one of peers) one.close();
    // Closing takes a round of the event loop.
    for (let round = 0; round < 2; round += 1) await setImmediate();
    expect([openSockets(), timers()]).toEqual([0, before]);
  });
});

describe('stopping', () => {
  test('drains at once without flows', async () => {
    const { proxy } = start();
    proxy.drain();
    expect(await proxy.stopped).toEqual({ flowsClosed: 0 });
  });

  test('drains until the grace time is over, and says what it cut short', async () => {
    const { proxy, client, backend, front } = start(undefined, { grace: milliseconds(20) });
    client.send(front, Uint8Array.of(1));
    await next(backend);
    proxy.drain();
    expect(await proxy.stopped).toEqual({ flowsClosed: 1 });
  });

  test('leaves no socket and no timer behind', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { proxy, client, backend, front } = start();
    client.send(front, Uint8Array.of(1));
    while (backend.mailbox.length === 0) await setImmediate();
    await setImmediate();
    expect(vi.getTimerCount()).toBe(1);
    proxy.stop();
    expect(await proxy.stopped).toEqual({ flowsClosed: 1 });
    for (const one of peers) one.close();
    await setImmediate();
    expect(vi.getTimerCount()).toBe(0);
    expect(openSockets()).toBe(0);
  });

  test('is harmless when repeated, whichever way', async () => {
    const { proxy } = start();
    proxy.drain();
    proxy.stop();
    proxy.drain();
    expect(await proxy.stopped).toEqual({ flowsClosed: 0 });
  });
});

interface Running {
  readonly proxy: Proxy;
  readonly client: LoopbackPeer;
  readonly backend: LoopbackPeer;
  readonly front: Address;
}

/** A proxy that leads to `backend`, a peer unless a test says otherwise. */
function start(at?: Address, more: Partial<Config> = {}): Running {
  const backend = peer();
  const proxy = new Proxy({ ...configFor(LOCAL, at ?? backend.address), ...more }, log);
  expect(proxy.failures).toEqual([]);
  const port = present(proxy.portOf(FRONT), 'the listener is open');
  return { proxy, client: peer(), backend, front: ipv4(LOOPBACK, port) };
}

/** A proxy whose only backend is probed ten times a second, over UDP. */
function probed(probeTimeout: Duration): Running & { readonly health: HealthSettings } {
  const [client, backend] = [peer(), peer()];
  const health = healthSettings({
    mode: 'UDP_PROBE',
    udpProbePayload: Uint8Array.of(4, 2),
    fall: 1,
    probeInterval: milliseconds(100),
    probeTimeout,
  });
  const config = configFor(LOCAL, backend.address);
  const clusters = config.clusters.map((one) => ({ ...one, health }));
  const proxy = new Proxy({ ...config, clusters }, log);
  const port = present(proxy.portOf(FRONT), 'the listener is open');
  return { proxy, client, backend, front: ipv4(LOOPBACK, port), health };
}

/** Timers that the event loop waits for. */
function timers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
}

function configFor(address: Address, backend: Address): Config {
  const only = { id: 'b', address: backend, weight: 100, backup: false };
  return {
    listeners: [listenerConfig({ address })],
    clusters: [clusterSettings({ ...NO_CLUSTER, cluster: 'c', backends: [only] })],
    grace: seconds(5),
  };
}

function peer(): LoopbackPeer {
  const one = new LoopbackPeer(LOCAL);
  peers.push(one);
  return one;
}

async function next(one: LoopbackPeer): Promise<(typeof one.mailbox)[number]> {
  await vi.waitFor(() => expect(one.mailbox.length).toBeGreaterThan(0), { interval: 1 });
  return present(one.mailbox.shift(), 'one has arrived');
}

async function stop(proxy: Proxy): Promise<void> {
  proxy.stop();
  await proxy.stopped;
}

/** Where the flow table of a proxy keeps a client. It is nobody's business but this test's, so it is not public. */
function tableHash(proxy: Proxy): (client: Address) => number {
  const planes: unknown = Reflect.get(proxy, 'planes');
  const plane: unknown = planes instanceof InThreadPlane ? planes.plane : undefined;
  if (!(plane instanceof DataPlane)) throw new Error('a proxy has a data plane');
  const { table } = present(plane.managerOf(FRONT), 'the listener is open');
  return (client) => table.hashOf(client, undefined);
}

/** UDP sockets of this process that the event loop waits for. */
function openSockets(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'UDPWrap').length;
}
