/**
 * What a driver whose sockets have receive buffers must keep when one overflows. Asked beside `driverLaws`, of node:dgram and
 * of the simulated operating system: the driver in memory holds whatever it is sent.
 */
import { describe, expect, test } from 'vitest';
import { benchFor, bytes, FRONT, LOCAL, type MakeWorld } from '../test/driver-bench.ts';
import { LIMITS } from './config.ts';

const FLOOD = 200;

export function bufferLaws(name: string, make: MakeWorld): void {
  describe(`${name} as a driver with receive buffers`, () => {
    const bench = benchFor(make);

    test('loses the newest of what finds no room, keeps the rest in order, and hears again what comes later', async () => {
      const socket = { ipv6Only: false, receiveBuffer: 8_192, sendBuffer: LIMITS.socketBuffer };
      expect(bench.call((ports) => ports.openListener(FRONT, LOCAL, socket))).toBeUndefined();
      const front = { ...LOCAL, port: bench.world.portOf(FRONT) ?? 0 };
      const client = bench.world.peer(LOCAL);
      for (let n = 0; n < FLOOD; n += 1) client.send(front, bytes(1_000, n));
      await bench.hear('client', 1);
      await bench.world.settle();
      const heard = bench.of('client').map(({ payload }) => payload);
      expect(heard.length).toBeLessThan(FLOOD);
      expect(heard).toEqual(heard.map((_, n) => bytes(1_000, n)));
      client.send(front, bytes(3));
      expect((await bench.hear('client', heard.length + 1)).at(-1)?.payload).toEqual(bytes(3));
    });
  });
}
