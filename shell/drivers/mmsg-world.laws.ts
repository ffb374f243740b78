/** The batching driver on real loopback, for the laws of drivers: whoever waits in a test has it take turns meanwhile. */
import { constants } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import type { Arrivals } from '../../core/index.ts';
import { CMSGHDR, IOVEC, MMSGHDR } from './libc-layout.ts';
import { EPOLLOUT, SOL_UDP, UDP_SEGMENT, type Libc } from './libc.ts';
import { MmsgDriver } from './mmsg.ts';
import { withoutDescriptors } from '../../test/descriptor-limit.ts';
import type { World } from '../../test/driver-bench.ts';
import { needIpv6, needPeers } from '../../test/e2e/peers.ts';
import { LoopbackPeer } from '../../test/loopback-peer.ts';

export const silent: Arrivals = {
  clientDatagram: () => undefined,
  backendDatagram: () => undefined,
  clientTrain: () => false,
  backendTrain: () => false,
  refused: () => undefined,
  upstreamWritable: () => undefined,
  listenerWritable: () => undefined,
  lateSendFailure: () => undefined,
  timer: () => undefined,
  endTurn: () => undefined,
};

export interface MmsgWorld extends World {
  readonly driver: MmsgDriver;
}

/** Real loopback, behind a kernel that can be told to have no room. */
export function worldOf(real: Libc, arrivals: Arrivals): MmsgWorld {
  const kernel = new NarrowKernel(real);
  const driver = new MmsgDriver(kernel.libc);
  driver.attach(arrivals);
  const peers: LoopbackPeer[] = [];
  return {
    driver,
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
  private readonly spy = new MessageSpy();
  private room = Infinity;
  private readonly taken = new Map<number, number>();
  /** Waits for room that a socket without it has asked for. */
  private readonly waiting = new Map<number, () => void>();

  constructor(real: Libc) {
    const isFull = (fd: number): boolean => (this.taken.get(fd) ?? 0) >= this.room;
    this.libc = {
      ...this.spy.watching(real),
      sendmmsg: (fd, headers, count) => {
        const sizes = this.spy.trainsAt(headers, count);
        let [fitting, left] = [0, this.room - (this.taken.get(fd) ?? 0)];
        for (const datagrams of sizes) {
          // As in the kernel, the last that finds any room may take more than there is.
          if (left <= 0) break;
          left -= datagrams;
          fitting += 1;
        }
        if (fitting === 0) return -constants.errno.EAGAIN;
        const sent = real.sendmmsg(fd, headers, fitting);
        const taken = sizes.slice(0, Math.max(sent, 0)).reduce((sum, one) => sum + one, 0);
        this.taken.set(fd, (this.taken.get(fd) ?? 0) + taken);
        return sent;
      },
      send: (fd, address, bytes) => {
        if (isFull(fd)) return -constants.errno.EAGAIN;
        this.taken.set(fd, (this.taken.get(fd) ?? 0) + 1);
        return real.send(fd, address, bytes);
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

/** Reads the messages of a send where the kernel would. */
export class MessageSpy {
  private view = new DataView(new ArrayBuffer(0));
  private address = 0;

  watching(real: Libc): Libc {
    return {
      ...real,
      addressOf: (memory) => {
        this.view = new DataView(memory);
        this.address = real.addressOf(memory);
        return this.address;
      },
    };
  }

  /** How many datagrams each of `count` messages becomes on the wire. */
  trainsAt(headers: number, count: number): number[] {
    return Array.from({ length: count }, (_, n) => this.trainAt(headers + n * MMSGHDR.size));
  }

  /** In how many pieces the first message lies in memory. */
  vectorsAt(headers: number): number {
    return this.word(headers - this.address + MMSGHDR.vectorCount);
  }

  private trainAt(message: number): number {
    const at = message - this.address;
    const segment = this.segmentOf(
      this.word(at + MMSGHDR.control),
      this.word(at + MMSGHDR.controlLength),
    );
    if (segment === undefined) return 1;
    let bytes = 0;
    const vectors = this.word(at + MMSGHDR.vectors) - this.address;
    for (let n = this.word(at + MMSGHDR.vectorCount) - 1; n >= 0; n -= 1) {
      bytes += this.word(vectors + n * IOVEC.size + IOVEC.length);
    }
    return Math.ceil(bytes / segment);
  }

  private segmentOf(control: number, length: number): number | undefined {
    for (let at = control - this.address; at < control - this.address + length;) {
      const level = this.view.getInt32(at + CMSGHDR.level, true);
      const type = this.view.getInt32(at + CMSGHDR.type, true);
      if (level === SOL_UDP && type === UDP_SEGMENT) {
        return this.view.getUint16(at + CMSGHDR.data, true);
      }
      at += Math.ceil(this.word(at + CMSGHDR.length) / 8) * 8;
    }
    return undefined;
  }

  private word(at: number): number {
    return Number(this.view.getBigUint64(at, true));
  }
}
