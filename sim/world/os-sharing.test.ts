/** Several sockets with one address, as SO_REUSEPORT gives them to threads. */
import { describe, expect, test } from 'vitest';
import { ipv4, type Address } from '../../core/address.ts';
import type { Sharing } from './os-bindings.ts';
import type { KernelSocket, SocketWish } from './os-kernel.ts';
import { PlainWorld } from './plain-world.ts';

const FRONT = ipv4(0x7f000001, 53);
const COUNT = 3;

describe('one address', () => {
  test('is had by several only if all of them share it', () => {
    const { open, kernel } = groupOf('tuple');
    expect(kernel.open({ ...wishOf(undefined) })).toBe('EADDRINUSE');
    expect(kernel.open({ ...wishOf(undefined), local: ipv4(0, 53) })).toBe('EADDRINUSE');
    expect(typeof open()).toBe('object');
  });

  test('is reached until the last of them has closed', () => {
    const { world, kernel, sockets } = groupOf('tuple');
    for (const socket of sockets) {
      expect(world.wire.attached).toEqual(['127.0.0.1:53']);
      kernel.close(socket);
    }
    expect(world.wire.attached).toEqual([]);
  });
});

describe('a datagram', () => {
  test('by its tuple goes to the same socket each time, and each socket has some clients', () => {
    const { places } = groupOf('tuple');
    const clients = clientsOf(30, 4);
    const first = places(clients);
    expect(places(clients)).toEqual(first);
    expect(new Set(first)).toEqual(new Set([0, 1, 2]));
    const ofOneHost = new Set(first.slice(0, 4));
    expect(ofOneHost.size, 'ports of one host go several ways').toBeGreaterThan(1);
  });

  test('by its source goes where all of its host go, and each socket has some hosts', () => {
    const { places } = groupOf('source');
    const first = places(clientsOf(30, 4));
    for (let host = 0; host < 30; host++) {
      expect(new Set(first.slice(host * 4, host * 4 + 4)).size).toBe(1);
    }
    expect(new Set(first)).toEqual(new Set([0, 1, 2]));
  });

  test.each(['tuple', 'source'] as const)(
    'goes by %s to the last of the group where another has closed',
    (steer) => {
      const { kernel, sockets, places } = groupOf(steer);
      const clients = clientsOf(30, 4);
      const before = places(clients);
      kernel.close(sockets[0]!);
      const now = places(clients);
      expect(now).not.toContain(0);
      expect(new Set(now)).toEqual(new Set([1, 2]));
      if (steer === 'tuple') return;
      // Place 0 is the third socket's now, and place 2 is nobody's.
      for (const [client, place] of before.entries()) {
        if (place === 0) expect(now[client]).toBe(2);
        if (place === 1) expect(now[client]).toBe(1);
      }
    },
  );
});

interface Group {
  readonly world: PlainWorld;
  readonly kernel: PlainWorld['kernel'];
  readonly sockets: readonly KernelSocket[];
  readonly open: () => KernelSocket | string;
  /** Which socket hears each of these clients. */
  readonly places: (clients: readonly Address[]) => number[];
}

function groupOf(steer: Sharing['steer']): Group {
  const world = new PlainWorld();
  const { kernel } = world;
  const open = (): KernelSocket | string => kernel.open(wishOf({ count: COUNT, steer }));
  const sockets = Array.from({ length: COUNT }, open).filter((one) => typeof one !== 'string');
  const places = (clients: readonly Address[]): number[] =>
    clients.map((src) => {
      kernel.deliver({ src, dst: FRONT, payload: new Uint8Array(1) });
      const place = sockets.findIndex(({ inbox }) => inbox.length > 0);
      sockets[place]!.inbox.length = 0;
      return place;
    });
  return { world, kernel, sockets, open, places };
}

function wishOf(sharing: Sharing | undefined): SocketWish {
  return {
    local: FRONT,
    ipv6Only: false,
    sharing,
    peer: undefined,
    receiveBuffer: 1_000_000,
    sendBuffer: 1_000_000,
    onReady: () => undefined,
    onLateFailure: () => undefined,
  };
}

/** Some ports of each of some hosts, host by host. */
function clientsOf(hosts: number, ports: number): Address[] {
  return Array.from({ length: hosts * ports }, (_, nth) =>
    ipv4(0x0a010001 + Math.floor(nth / ports), 4_000 + (nth % ports)),
  );
}
