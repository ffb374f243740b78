import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { fnv1aSplitMix, multiplyHigh, remainder, sipHash13, type Hash64 } from './hash.ts';

const MASK = (1n << 64n) - 1n;
const words = fc.oneof(
  fc.integer({ min: 0, max: 0xffffffff }),
  fc.constantFrom(0, 1, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff),
);
const hashes = fc.record({ high: words, low: words });
const byteStrings = fc.uint8Array({ maxLength: 70 });

test('SipHash-1-3 agrees with its definition on 64-bit integers, for every length', () => {
  fc.assert(
    fc.property(byteStrings, (bytes) => {
      expect(toBigInt(sipHash13(bytes))).toBe(sipModel(bytes));
    }),
  );
  for (let length = 0; length < 40; length += 1) {
    const bytes = Uint8Array.from({ length }, (_, index) => index * 37);
    expect(toBigInt(sipHash13(bytes))).toBe(sipModel(bytes));
  }
});

test('FNV-1a with the tail of splitmix64 agrees with its definition on 64-bit integers', () => {
  fc.assert(
    fc.property(hashes, byteStrings, (seed, bytes) => {
      expect(toBigInt(fnv1aSplitMix(seed, bytes))).toBe(fnvModel(toBigInt(seed), bytes));
    }),
  );
});

test('the remainder of a 64-bit value is exact up to a modulus of 2^21', () => {
  fc.assert(
    fc.property(hashes, fc.integer({ min: 1, max: 2 ** 21 }), (hash, modulus) => {
      expect(BigInt(remainder(hash, modulus))).toBe(toBigInt(hash) % BigInt(modulus));
    }),
  );
  expect(remainder({ high: 0xffffffff, low: 0xffffffff }, 2 ** 21)).toBe(2 ** 21 - 1);
  expect(() => remainder({ high: 0, low: 0 }, 0)).toThrow('a modulus');
  expect(() => remainder({ high: 0, low: 0 }, 2 ** 21 + 1)).toThrow('a modulus');
});

test('the upper half of a product is exact, with 2^32 as the largest right side', () => {
  fc.assert(
    fc.property(words, fc.oneof(words, fc.constant(2 ** 32)), (left, right) => {
      expect(BigInt(multiplyHigh(left, right))).toBe((BigInt(left) * BigInt(right)) >> 32n);
    }),
  );
});

test('hashes are unsigned halves', () => {
  fc.assert(
    fc.property(hashes, byteStrings, (seed, bytes) => {
      for (const { high, low } of [sipHash13(bytes), fnv1aSplitMix(seed, bytes)]) {
        expect([high, low]).toEqual([high >>> 0, low >>> 0]);
      }
    }),
  );
});

function toBigInt(hash: Hash64): bigint {
  return (BigInt(hash.high) << 32n) | BigInt(hash.low);
}

function fnvModel(seed: bigint, bytes: Uint8Array): bigint {
  let z = 0xcbf29ce484222325n ^ seed;
  for (const byte of bytes) z = ((z ^ BigInt(byte)) * 0x100000001b3n) & MASK;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return z ^ (z >> 31n);
}

/** The paper's pseudo-code with c = 1, d = 3 and both keys zero. */
function sipModel(bytes: Uint8Array): bigint {
  let [v0, v1] = [0x736f6d6570736575n, 0x646f72616e646f6dn];
  let [v2, v3] = [0x6c7967656e657261n, 0x7465646279746573n];
  const rotate = (x: bigint, by: bigint): bigint => ((x << by) | (x >> (64n - by))) & MASK;
  const round = (): void => {
    v0 = (v0 + v1) & MASK;
    v1 = rotate(v1, 13n) ^ v0;
    v0 = rotate(v0, 32n);
    v2 = (v2 + v3) & MASK;
    v3 = rotate(v3, 16n) ^ v2;
    v0 = (v0 + v3) & MASK;
    v3 = rotate(v3, 21n) ^ v0;
    v2 = (v2 + v1) & MASK;
    v1 = rotate(v1, 17n) ^ v2;
    v2 = rotate(v2, 32n);
  };
  const padded = new Uint8Array((Math.floor(bytes.length / 8) + 1) * 8);
  padded.set(bytes);
  padded[padded.length - 1] = bytes.length;
  for (let at = 0; at < padded.length; at += 8) {
    const word = padded
      .subarray(at, at + 8)
      .reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
    v3 ^= word;
    round();
    v0 ^= word;
  }
  v2 ^= 0xffn;
  for (let index = 0; index < 3; index += 1) round();
  return v0 ^ v1 ^ v2 ^ v3;
}
