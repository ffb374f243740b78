/** Probes over real loopback sockets; what they leave behind is counted in descriptors. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  ipv4,
  ipv6,
  LOCAL_HEADER,
  type Address,
  type Probe,
  type ProbeAnswer,
  type ProbeId,
} from '../core/index.ts';
import { Prober } from './prober.ts';

const LOOPBACK = 0x7f000001;
const PAYLOAD = Uint8Array.of(1, 2, 3);

let answers: [ProbeId, ProbeAnswer][];
let prober: Prober;
let closing: (() => void)[];

beforeEach(() => {
  answers = [];
  closing = [];
  prober = new Prober((probe, how) => answers.push([probe, how]));
});

afterEach(() => {
  for (const close of closing) close();
});

describe('a TCP probe', () => {
  test('of a listening port is ok, and sends nothing', async () => {
    const { port, received } = await tcpServer();
    prober.start(tcp(port));
    expect(await answer()).toEqual([1, 'ok']);
    expect(await received).toEqual(Buffer.alloc(0));
    expect(prober.inFlight).toBe(0);
  });

  test('carries a LOCAL header where the plan says so, and nothing else', async () => {
    const { port, received } = await tcpServer();
    prober.start(tcp(port, { header: LOCAL_HEADER }));
    expect(await answer()).toEqual([1, 'ok']);
    expect(await received).toEqual(Buffer.from(LOCAL_HEADER));
  });

  test('of a closed port is refused', async () => {
    const { port, server } = await tcpServer();
    server.close();
    await once(server, 'close');
    prober.start(tcp(port));
    expect(await answer()).toEqual([1, 'refused']);
  });

  test('reaches IPv6', async () => {
    const { port } = await tcpServer('::1');
    prober.start(tcp(port, { target: ipv6([0, 0, 0, 1], port) }));
    expect(await answer()).toEqual([1, 'ok']);
  });

  test('without a route, or to an address of no one host, is not tried', async () => {
    prober.start(tcp(9, { target: ipv4(-1, 9) }));
    expect(await answer()).toEqual([1, 'not-tried']);
  });
});

describe('a UDP probe', () => {
  test('is header and payload in one datagram, and any reply is ok', async () => {
    const { socket, port } = await udpServer();
    const heard = once(socket, 'message');
    socket.on('message', (_, from) => socket.send('whatever', from.port, from.address));
    prober.start(udp(port, { header: LOCAL_HEADER }));
    expect(await answer()).toEqual([1, 'ok']);
    expect((await heard)[0]).toEqual(Buffer.from([...LOCAL_HEADER, ...PAYLOAD]));
  });

  test('of a closed port is refused', async () => {
    const { socket, port } = await udpServer();
    socket.close();
    await once(socket, 'close');
    prober.start(udp(port));
    expect(await answer()).toEqual([1, 'refused']);
  });

  test('of a silent socket has no answer until it is cancelled', async () => {
    const { socket, port } = await udpServer();
    const heard = once(socket, 'message');
    prober.start(udp(port));
    await heard;
    expect(prober.inFlight).toBe(1);
    prober.cancel(1);
    expect([prober.inFlight, answers]).toEqual([0, []]);
  });

  test('hears nobody but the backend', async () => {
    const [{ socket, port }, stranger] = [await udpServer(), await udpServer()];
    const heard = once(socket, 'message');
    prober.start(udp(port));
    const [, from] = await heard;
    stranger.socket.send('me', from.port, from.address);
    socket.send('a', from.port, from.address);
    expect(await answer()).toEqual([1, 'ok']);
    expect(answers).toHaveLength(1);
  });

  test('to a broadcast address is not tried, and says so at once', () => {
    prober.start(udp(9, { target: ipv4(-1, 9) }));
    expect(answers).toEqual([[1, 'not-tried']]);
  });

  test('reaches IPv6', async () => {
    const { socket, port } = await udpServer('::1');
    socket.on('message', (_, from) => socket.send('yes', from.port, from.address));
    prober.start(udp(port, { target: ipv6([0, 0, 0, 1], port) }));
    expect(await answer()).toEqual([1, 'ok']);
  });
});

test('cancelled probes are silent, whatever happens to their sockets later; an unknown one is nobody’s', async () => {
  const { port } = await tcpServer();
  const udpSide = await udpServer();
  prober.start(tcp(port));
  prober.start(udp(udpSide.port, { probe: 2 }));
  prober.cancel(1);
  prober.cancel(2);
  prober.cancel(3);
  const heard = once(udpSide.socket, 'message');
  udpSide.socket.send('still here', udpSide.port, '127.0.0.1');
  await heard;
  expect([prober.inFlight, answers]).toEqual([0, []]);
});

test('five hundred probes of every fate leave no descriptor behind', async () => {
  const { port } = await tcpServer();
  const silent = await udpServer();
  const echo = await udpServer();
  echo.socket.on('message', (_, from) => echo.socket.send('yes', from.port, from.address));
  const closed = await udpServer();
  closed.socket.close();
  await once(closed.socket, 'close');
  const before = descriptors();
  const fates: ((probe: ProbeId) => Probe)[] = [
    (probe) => tcp(port, { probe }),
    (probe) => tcp(port, { probe, header: LOCAL_HEADER }),
    (probe) => tcp(closed.port, { probe }),
    (probe) => tcp(9, { probe, target: ipv4(-1, 9) }),
    (probe) => udp(silent.port, { probe }),
    (probe) => udp(echo.port, { probe }),
    (probe) => udp(echo.port, { probe, header: LOCAL_HEADER }),
    (probe) => udp(closed.port, { probe }),
    (probe) => udp(9, { probe, target: ipv4(-1, 9) }),
    (probe) => tcp(port, { probe }),
  ];
  for (let round = 0; round < 50; round += 1) {
    for (const [at, fate] of fates.entries()) prober.start(fate(1 + round * 10 + at));
    // The last of each round is cancelled before anything can have happened to it.
    prober.cancel(10 + round * 10);
    await vi.waitFor(() => expect(answers.length).toBe(8 * (round + 1)), { interval: 1 });
    prober.cancel(5 + round * 10);
  }
  expect(prober.inFlight).toBe(0);
  await vi.waitFor(() => expect(descriptors()).toBe(before), { timeout: 5_000, interval: 5 });
});

function tcp(port: number, more: Partial<Probe> = {}): Probe {
  return {
    kind: 'StartProbe',
    probe: 1,
    cluster: 'c',
    target: loopback(port),
    mode: 'tcp',
    payload: undefined,
    header: undefined,
    expectReply: true,
    ...more,
  };
}

function udp(port: number, more: Partial<Probe> = {}): Probe {
  return tcp(port, { mode: 'udp', payload: PAYLOAD, ...more });
}

function loopback(port: number): Address {
  return ipv4(LOOPBACK, port);
}

async function answer(): Promise<[ProbeId, ProbeAnswer] | undefined> {
  await vi.waitFor(() => expect(answers.length).toBeGreaterThan(0), { interval: 1 });
  return answers[0];
}

/** A TCP listener, and everything that its first connection said until it ended. */
async function tcpServer(
  host = '127.0.0.1',
): Promise<{ server: Server; port: number; received: Promise<Buffer> }> {
  const server = createServer();
  const received = new Promise<Buffer>((resolve) => {
    server.on('connection', (socket) => {
      const parts: Buffer[] = [];
      socket.on('data', (part: Buffer) => parts.push(part));
      socket.on('error', () => undefined);
      socket.on('close', () => resolve(Buffer.concat(parts)));
    });
  });
  server.listen(0, host);
  await once(server, 'listening');
  closing.push(() => server.close());
  return { server, port: portOf(server.address()), received };
}

async function udpServer(host = '127.0.0.1'): Promise<{ socket: Socket; port: number }> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  let open = true;
  socket.once('close', () => {
    open = false;
  });
  closing.push(() => {
    if (open) socket.close();
  });
  socket.bind(0, host);
  await once(socket, 'listening');
  return { socket, port: socket.address().port };
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new Error('not a TCP address');
  return address.port;
}

/** Sockets this process has open. */
function descriptors(): number {
  return readdirSync('/dev/fd').length;
}
