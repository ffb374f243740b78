/** Ports for listeners and servers: a configuration names them before anything binds them. */
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below 32768, where Linux begins to hand out ports by itself: a port found free by binding 0 could be any other socket's
 * before the proxy binds it, one from here cannot.
 */
const FIRST = 20_000;
const LAST = 32_767;

/** Of so many ports one is this process's: test files run beside each other, and what one has found the next must not bind. */
const EVERY = 16;
const OWN = Number(process.env['VITEST_POOL_ID'] ?? 0) % EVERY;
const COUNT = Math.floor((LAST + 1 - FIRST) / EVERY);

const used = new Set<number>();

/** A UDP port that is free on every local address, and not given out before. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = anyPort();
    if (used.has(port)) continue;
    used.add(port);
    if ((await isFree('udp4', port)) && (await isFree('udp6', port))) return port;
  }
}

/** The same for TCP, on 127.0.0.1. */
export async function freeTcpPort(): Promise<number> {
  for (;;) {
    const port = anyPort();
    if (used.has(port)) continue;
    used.add(port);
    const server = createServer();
    try {
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
      return port;
    } catch {
      // Somebody has it.
    } finally {
      server.close();
    }
  }
}

function anyPort(): number {
  return FIRST + EVERY * randomInt(COUNT) + OWN;
}

async function isFree(type: 'udp4' | 'udp6', port: number): Promise<boolean> {
  const socket = createSocket({ type, ipv6Only: type === 'udp6' });
  try {
    socket.bind({ port, exclusive: true });
    await once(socket, 'listening');
    return true;
  } catch (error) {
    // A machine without IPv6 has no IPv6 port in use.
    return error instanceof Error && 'code' in error && error.code === 'EAFNOSUPPORT';
  } finally {
    socket.close();
  }
}
