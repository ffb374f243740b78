/** The batching driver on real loopback, for the laws of drivers: whoever waits in a test has it take turns meanwhile. */
import { constants } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import type { Arrivals } from '../../core/index.ts';
import { EPOLLOUT, type Libc } from './libc.ts';
import { MmsgDriver } from './mmsg.ts';
import { withoutDescriptors } from '../../test/descriptor-limit.ts';
import type { World } from '../../test/driver-bench.ts';
import { needIpv6, needPeers } from '../../test/e2e/peers.ts';
import { LoopbackPeer } from '../../test/loopback-peer.ts';

export const silent: Arrivals = {
  clientDatagram: () => undefined,
  backendDatagram: () => undefined,
  refused: () => undefined,
  upstreamWritable: () => undefined,
  listenerWritable: () => undefined,
  lateSendFailure: () => undefined,
  timer: () => undefined,
  endTurn: () => undefined,
};

/** Real loopback, behind a kernel that can be told to have no room. */
export function worldOf(real: Libc, arrivals: Arrivals): World {
  const kernel = new NarrowKernel(real);
  const driver = new MmsgDriver(kernel.libc);
  driver.attach(arrivals);
  const peers: LoopbackPeer[] = [];
  return {
    ports: driver,
    portOf: (listener) => driver.portOf(listener),
    socketCount: () => driver.socketCount,
    need: (context, what) => {
      if (what === 'IPv6') needIpv6(context);
      else needPeers(context, 'prlimit');
    },
    peer: (at) => {
      const peer = new LoopbackPeer(at);
      peers.push(peer);
      return peer;
    },
    // What was sent waits for the flush, whatever arrives meanwhile.
    endOfTurn: async () => setImmediate(),
    settle: async () => {
      for (let poll = 0; poll < 4; poll += 1) {
        await setImmediate();
        driver.turn(0);
      }
    },
    setRoom: (count) => kernel.setRoom(count),
    pass: async (duration) => driver.turn(duration / 1_000),
    withoutDescriptors,
    dispose: async () => {
      for (const peer of peers) peer.close();
      driver.close();
      await setImmediate();
    },
  };
}

/**
 * Loopback always has room. This stands between the driver and the kernel, takes no more of a socket than it is told to, and
 * tells of room when there is some. (The true thing: overload.e2e.test.ts.)
 */
class NarrowKernel {
  readonly libc: Libc;
  private room = Infinity;
  private readonly taken = new Map<number, number>();
  /** Waits for room that a socket without it has asked for. */
  private readonly waiting = new Map<number, () => void>();

  constructor(real: Libc) {
    const isFull = (fd: number): boolean => (this.taken.get(fd) ?? 0) >= this.room;
    this.libc = {
      ...real,
      sendmmsg: (fd, headers, count) => {
        const taken = this.taken.get(fd) ?? 0;
        if (taken >= this.room) return -constants.errno.EAGAIN;
        const sent = real.sendmmsg(fd, headers, Math.min(count, this.room - taken));
        if (sent > 0) this.taken.set(fd, taken + sent);
        return sent;
      },
      hasRoom: (fd) => !isFull(fd) && real.hasRoom(fd),
      epollCtl: (epoll, operation, fd, events) => {
        const wait = (): number => real.epollCtl(epoll, operation, fd, events);
        if ((events & EPOLLOUT) === 0 || !isFull(fd)) return wait();
        this.waiting.set(fd, wait);
        return 0;
      },
      close: (fd) => {
        this.waiting.delete(fd);
        this.taken.delete(fd);
        return real.close(fd);
      },
    };
  }

  /** Each socket takes so many datagrams from now on. */
  setRoom(room: number): void {
    this.room = room;
    this.taken.clear();
    if (room === 0) return;
    for (const wait of this.waiting.values()) wait();
    this.waiting.clear();
  }
}
