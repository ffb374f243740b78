import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { addresses } from '../test/trace-arbitraries.ts';
import { AddressDisguise } from './address-disguise.ts';
import {
  formatIp,
  isLoopback,
  isMapped,
  isUnanswerable,
  isUnspecified,
  parseIp,
  type Address,
} from './address.ts';
import { present } from './assert.ts';

/** Any function of a prefix will do. */
const disguise = new AddressDisguise((prefix) => /[01]*1[01]{0,2}$/.test(prefix));

test('equal addresses stay equal, and others share exactly as many first bits as before', () => {
  fc.assert(
    fc.property(addresses, addresses, fc.nat(128), (one, seed, shared) => {
      const other = withPrefixOf(one, seed, shared);
      const [first, second] = [disguise.address(one), disguise.address(other)];
      expect(sharedBits(first, second)).toBe(sharedBits(one, other));
      expect([first.port, first.scope, first.family]).toEqual([one.port, one.scope, one.family]);
    }),
    { numRuns: 2_000 },
  );
});

test('what an address means stays', () => {
  fc.assert(
    fc.property(addresses, (address) => {
      const moved = disguise.address(address);
      for (const is of [isLoopback, isMapped, isUnanswerable, isUnspecified]) {
        expect(is(moved)).toBe(is(address));
      }
    }),
    { numRuns: 2_000 },
  );
  for (const text of ['127.0.0.1', '0.0.0.0', '224.0.0.1', '255.255.255.255', '::', '::1']) {
    expect(formatIp(disguise.address(ip(text)))).toBe(text);
  }
});

test('an address is another, a mapped one that of its IPv4, and a block that of its members', () => {
  const moved = disguise.address(ip('10.1.2.3'));
  expect(formatIp(moved)).not.toBe('10.1.2.3');
  expect(formatIp(disguise.address(ip('::ffff:10.1.2.3')))).toBe(`::ffff:${formatIp(moved)}`);
  expect(formatIp(disguise.address(ip('2001:db8::1')))).not.toMatch(/^2001:db8/);
  const block = disguise.block(ip('10.1.0.0'), 16);
  expect(sharedBits(block, moved)).toBeGreaterThanOrEqual(16);
  expect(block.a & 0xffff).toBe(0);
});

function ip(text: string): Address {
  return present(parseIp(text, 53), 'it is an address');
}

function words({ family, a, b, c, d }: Address): number[] {
  return family === 4 ? [a] : [a, b, c, d];
}

/** First bits that two addresses of one family have in common. */
function sharedBits(one: Address, other: Address): number {
  let bits = 0;
  for (const [at, word] of words(one).entries()) {
    const same = Math.clz32(word ^ (words(other)[at] ?? 0));
    bits += same;
    if (same < 32) break;
  }
  return bits;
}

/** `one` up to so many bits, and `other` from there on. */
function withPrefixOf(one: Address, other: Address, shared: number): Address {
  const mix = (word: number, rest: number, at: number): number => {
    const bits = Math.min(32, Math.max(0, shared - 32 * at));
    const mask = bits === 0 ? 0 : -1 << (32 - bits);
    return (word & mask) | (rest & ~mask);
  };
  const { a, b, c, d } = one;
  if (one.family === 4) return { ...one, a: mix(a, other.a, 0) };
  return {
    ...one,
    a: mix(a, other.a, 0),
    b: mix(b, other.b, 1),
    c: mix(c, other.c, 2),
    d: mix(d, other.d, 3),
  };
}
