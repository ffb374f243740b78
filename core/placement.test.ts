import { expect, test } from 'vitest';
import { ipv6 } from './address.ts';
import { PLACEMENT_SEED, sipHash13 } from './hash.ts';
import { affinityKey, backendHash } from './placement.ts';

const linkLocal = (port: number, scope: number): ReturnType<typeof ipv6> =>
  ipv6([0xfe800000, 0, 0, 1], port, scope);

test('with the port, an IPv6 client is hashed with its zone: seed, family, octets, port, flow, zone', () => {
  const seed = [0x15, 0x7c, 0x4a, 0x7f, 0xb9, 0x79, 0x37, 0x9e];
  const family = [1, 0, 0, 0, 0, 0, 0, 0];
  const octets = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
  const bytes = [...seed, ...family, ...octets, 0x39, 0x30, 0, 0, 0, 0, 4, 3, 2, 1];
  const key = affinityKey(PLACEMENT_SEED, linkLocal(12_345, 0x01020304), true);
  expect(key).toEqual(sipHash13(Uint8Array.from(bytes)));
});

test('without the port, neither port nor zone plays a part', () => {
  const keys = [linkLocal(1, 2), linkLocal(3, 4)].map((client) =>
    affinityKey(PLACEMENT_SEED, client, false),
  );
  expect(keys[0]).toEqual(keys[1]);
});

test('a backend is hashed by its address and port, not by its zone', () => {
  const hash = (port: number, scope: number): unknown =>
    backendHash({ high: 0, low: 42 }, PLACEMENT_SEED, linkLocal(port, scope));
  expect(hash(53, 1)).toEqual(hash(53, 2));
  expect(hash(53, 1)).not.toEqual(hash(54, 1));
});
