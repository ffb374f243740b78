import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Address } from '../../core/address.ts';
import { ipv4, ipv6, sameAddress, sameIp } from '../../core/address.ts';
import type { PacketKind } from './packet.ts';
import { addressKey, ipKey, wireBytes } from './packet.ts';

const few = fc.constantFrom(0, 1, -1, 0x7fffffff);
const anyAddress: fc.Arbitrary<Address> = fc.oneof(
  fc.tuple(few, fc.constantFrom(0, 1, 65_535)).map(([word, port]) => ipv4(word, port)),
  fc
    .tuple(few, few, few, few, fc.constantFrom(0, 1, 65_535), fc.nat(1))
    .map(([one, two, three, four, port, scope]) => ipv6([one, two, three, four], port, scope)),
);

test('two addresses have one key when they are the same, and only then', () => {
  const someChange = fc.constantFrom<Partial<Address>>(
    {},
    { a: 5 },
    { b: 5 },
    { c: 5 },
    { d: 5 },
    { port: 5 },
    { scope: 5 },
  );
  const anyPair = fc.oneof(
    fc.tuple(anyAddress, anyAddress),
    fc
      .tuple(anyAddress, someChange)
      .filter(([{ family }, change]) => family === 6 || 'port' in change)
      .map(([one, change]): [Address, Address] => [one, { ...one, ...change }]),
  );
  fc.assert(
    fc.property(anyPair, ([one, other]) => {
      expect(addressKey(one) === addressKey(other)).toBe(sameAddress(one, other));
      expect(ipKey(one) === ipKey(other)).toBe(sameIp(one, other));
    }),
    { numRuns: 1_000 },
  );
});

test('bytes on the wire count all headers, and an ICMP error quotes only so much', () => {
  expect(bytesOf('datagram', 4, 1_472)).toBe(1_500);
  expect(bytesOf('datagram', 6, 1_452)).toBe(1_500);
  expect(bytesOf('unreachable', 4, 10)).toBe(66);
  expect(bytesOf('unreachable', 4, 5_000)).toBe(576);
  expect(bytesOf('too-big', 6, 10)).toBe(106);
  expect(bytesOf('too-big', 6, 5_000)).toBe(1_280);
});

function bytesOf(kind: PacketKind, family: 4 | 6, length: number): number {
  const address = family === 4 ? ipv4(1, 1) : ipv6([1, 0, 0, 1], 1);
  const datagram = { src: address, dst: address, payload: new Uint8Array(length) };
  const header = { serial: 2, copy: false, raw: false, about: 1, mtu: 0 };
  return wireBytes({ kind, ...header, sent: datagram, datagram });
}
