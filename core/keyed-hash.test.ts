/** The hash of the tables: the right function, and one that no stranger can foresee. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { bucketsFor, keyedHash } from './keyed-hash.ts';

test('the hash is HalfSipHash-1-3: the published vectors of whole words', () => {
  // From the hsiphash self-test of the Linux kernel (32-bit machines): key 00..07, message 00 01 02 …, by length in bytes.
  const vectors = new Map([
    [0, 0x5814c896],
    [4, 0x7e059ea6],
    [8, 0x577999b1],
    [12, 0x6b28096c],
    [16, 0x8b31d501],
    [20, 0x911bb605],
    [24, 0x57150ad7],
    [28, 0x0a4100d0],
    [32, 0xbc6dda8d],
  ]);
  const seed = { first: 0x03020100, second: 0x07060504 };
  const message = new Int32Array(Uint8Array.from({ length: 32 }, (_, at) => at).buffer);
  for (const [length, hash] of vectors) {
    expect(keyedHash(seed, message, length / 4) >>> 0, `${length} bytes`).toBe(hash);
  }
});

test('only the first `count` words take part, and their number does', () => {
  const seed = { first: 1, second: 2 };
  const words = Int32Array.of(1, 2, 3);
  expect(keyedHash(seed, words, 2)).toBe(keyedHash(seed, Int32Array.of(1, 2, 9), 2));
  expect(keyedHash(seed, Int32Array.of(1, 0), 2)).not.toBe(keyedHash(seed, Int32Array.of(1), 1));
});

test('one bit turned in message or key turns about half of the hash', () => {
  const base = { first: 0x01234567, second: 0x89abcdef };
  const words = Int32Array.of(0x0a000001, 0x00040035, 0);
  const plain = keyedHash(base, words, 3);
  for (let bit = 0; bit < 96; bit += 1) {
    const turned = words.map((word, at) => (at === bit >> 5 ? word ^ (1 << (bit & 31)) : word));
    expectHalf(plain ^ keyedHash(base, turned, 3), `message bit ${bit}`);
  }
  for (let bit = 0; bit < 32; bit += 1) {
    const first = { ...base, first: base.first ^ (1 << bit) };
    const second = { ...base, second: base.second ^ (1 << bit) };
    expectHalf(plain ^ keyedHash(first, words, 3), `first key bit ${bit}`);
    expectHalf(plain ^ keyedHash(second, words, 3), `second key bit ${bit}`);
  }
});

test('sources that collide under one seed do not under another', () => {
  const one = { first: 11, second: 12 };
  const bucketOf = (seed: typeof one, n: number): number =>
    keyedHash(seed, Int32Array.of(n, 0x00040035), 2) & 1_023;
  const chosen: number[] = [];
  for (let n = 0; chosen.length < 64; n += 1) if (bucketOf(one, n) === 0) chosen.push(n);
  const spread = new Set(chosen.map((n) => bucketOf({ first: 11, second: 13 }, n)));
  expect(spread.size).toBeGreaterThan(48);
});

test('an index has a power of two of buckets, at least two per entry', () => {
  fc.assert(
    fc.property(fc.nat(1 << 22), (capacity) => {
      const buckets = bucketsFor(capacity);
      expect(Math.log2(buckets) % 1).toBe(0);
      expect(buckets).toBeGreaterThanOrEqual(Math.max(16, 2 * capacity));
      expect(buckets).toBeLessThan(Math.max(17, 4 * capacity));
    }),
  );
});

/** A single difference of 32 bits is 16 give or take; outside 4 to 28 is a broken mixer. */
function expectHalf(difference: number, about: string): void {
  const turned = (difference >>> 0).toString(2).replaceAll('0', '').length;
  expect(turned, about).toBeGreaterThanOrEqual(4);
  expect(turned, about).toBeLessThanOrEqual(28);
}
