import { createHook } from 'node:async_hooks';
import { Socket } from 'node:dgram';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { ipv4, listenerId, socketId, type Arrivals } from '../../core/index.ts';
import { bufferLaws } from '../../core/ports-buffer.laws.ts';
import { driverLaws } from '../../core/ports.laws.ts';
import { withoutDescriptors } from '../../test/descriptor-limit.ts';
import { LOOPBACK, type World } from '../../test/driver-bench.ts';
import { needIpv6, needPeers } from '../../test/e2e/peers.ts';
import { LoopbackPeer } from '../../test/loopback-peer.ts';
import { DgramDriver } from './dgram.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

driverLaws('node:dgram', async (arrivals) => worldOf(new DgramDriver(), arrivals));
bufferLaws('node:dgram', async (arrivals) => worldOf(new DgramDriver(), arrivals));

test('an open that fails for want of a descriptor leaves no handle behind in the runtime', async (context) => {
  needPeers(context, 'prlimit');
  const driver = new DgramDriver();
  const live = new Set<number>();
  const hook = createHook({
    init: (id, kind) => void (kind === 'UDPWRAP' && live.add(id)),
    destroy: (id) => void live.delete(id),
  }).enable();
  await withoutDescriptors(() => {
    for (let serial = 1; serial <= 20; serial += 1) {
      const socket = socketId(serial, listenerId(0));
      expect(driver.openUpstream(socket, ipv4(LOOPBACK, 9), undefined)).toBe('EMFILE');
    }
    expect(live.size).toBe(20);
  });
  await vi.waitFor(() => expect(live.size).toBe(0));
  hook.disable();
});

/** Real loopback: what was sent lies in the receiver's socket when the call returns, and the next poll finds it. */
function worldOf(driver: DgramDriver, arrivals: Arrivals): World {
  driver.attach(arrivals);
  const peers: LoopbackPeer[] = [];
  let narrow: NarrowKernel | undefined;
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
    endOfTurn: async () => setImmediate(),
    settle: async () => {
      for (let poll = 0; poll < 4; poll += 1) await setImmediate();
    },
    setRoom: (count) => {
      narrow ??= new NarrowKernel();
      narrow.setRoom(count);
    },
    pass: async (duration) => setTimeout(duration / 1_000),
    withoutDescriptors,
    dispose: async () => {
      for (const peer of peers) peer.close();
      await setImmediate();
    },
  };
}

/**
 * Loopback always has room. This stands between node:dgram and libuv, and does what libuv does when the kernel would block:
 * it holds that datagram and all that follow, and sends them when there is room. (The true thing: overload.e2e.test.ts.)
 */
class NarrowKernel {
  private room = Infinity;
  private readonly taken = new Map<Socket, number>();
  private readonly held = new Map<Socket, Held[]>();

  constructor() {
    const [send, close] = [originalOf('send'), originalOf('close')];
    const { held } = this;
    const take = (socket: Socket, one: Held): void => this.take(socket, one);
    vi.spyOn(Socket.prototype, 'send').mockImplementation(function (this: Socket, ...words) {
      take(this, { send: () => send(this, words), told: words.at(-1) });
    });
    vi.spyOn(Socket.prototype, 'close').mockImplementation(function (this: Socket) {
      for (const { told } of held.get(this) ?? []) cancel(told);
      held.delete(this);
      close(this, []);
      return this;
    });
    vi.spyOn(Socket.prototype, 'getSendQueueCount').mockImplementation(function (this: Socket) {
      // Throws if the socket is closed, as it does without the spy.
      this.address();
      return held.get(this)?.length ?? 0;
    });
  }

  /** Each socket takes so many datagrams from now on. */
  setRoom(room: number): void {
    this.room = room;
    this.taken.clear();
    const held = [...this.held];
    this.held.clear();
    for (const [socket, ones] of held) for (const one of ones) this.take(socket, one);
  }

  private take(socket: Socket, one: Held): void {
    const taken = this.taken.get(socket) ?? 0;
    const held = this.held.get(socket) ?? [];
    if (held.length > 0 || taken >= this.room) {
      this.held.set(socket, [...held, one]);
    } else {
      this.taken.set(socket, taken + 1);
      one.send();
    }
  }
}

function originalOf(method: 'send' | 'close'): (socket: Socket, words: unknown[]) => void {
  const original: unknown = Reflect.get(Socket.prototype, method);
  if (typeof original !== 'function') throw new Error(`a socket has no ${method}`);
  return (socket, words) => {
    Reflect.apply(original, socket, words);
  };
}

/** A send that waits, and who is told when it is done. */
interface Held {
  readonly send: () => void;
  readonly told: unknown;
}

/** libuv closes sockets last in a round of the event loop, and only then tells of what they held. */
function cancel(told: unknown): void {
  const error = Object.assign(new Error('send ECANCELED'), { code: 'ECANCELED' });
  void setImmediate().then(() => {
    if (typeof told === 'function') told(error);
  });
}
