import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { compareSeeds, hashSeed, parseSeed, printSeed, seedFromNumber, seedPlus } from './seed.ts';
import type { Seed } from './seed.ts';

const word = fc.integer({ min: 0, max: 0xffff_ffff });
const anySeed = fc.record({ high: word, low: word });

test('what is printed parses to the same seed', () => {
  fc.assert(
    fc.property(anySeed, (seed) => {
      expect(parseSeed(printSeed(seed))).toEqual({ ok: true, seed });
    }),
  );
});

test('decimal text of any 64-bit number parses exactly', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (value) => {
      const seed = { high: Number(value >> 32n), low: Number(value & 0xffff_ffffn) };
      expect(parseSeed(value.toString())).toEqual({ ok: true, seed });
    }),
  );
});

test.each([
  ['0', { high: 0, low: 0 }],
  ['  7\n', { high: 0, low: 7 }],
  ['0xdeadbeef', { high: 0, low: 0xdeadbeef }],
  ['0XDEADBEEF', { high: 0, low: 0xdeadbeef }],
  ['18446744073709551615', { high: 0xffff_ffff, low: 0xffff_ffff }],
  ['0xffffffffffffffff', { high: 0xffff_ffff, low: 0xffff_ffff }],
] as const)('%j is a seed', (text, seed) => {
  expect(parseSeed(text)).toEqual({ ok: true, seed });
});

test.each(['', '   ', '\t\n'])('blank text %j is unset, not seed 0', (text) => {
  expect(parseSeed(text)).toEqual({ ok: true, seed: undefined });
});

test.each([
  '18446744073709551616',
  '0x10000000000000000',
  '-1',
  '+1',
  '1.0',
  '1e3',
  '1_000',
  '0x',
  '0b1',
  '0o7',
  'ff',
  '1 2',
  'NaN',
])('%j is an error that says so', (text) => {
  const parsed = parseSeed(text);
  expect(parsed).toMatchObject({ ok: false, problem: expect.stringContaining(text) });
});

test('a sweep counts its seeds across the words, and round at the end', () => {
  const last: Seed = { high: 0xffff_ffff, low: 0xffff_ffff };
  expect(seedPlus(seedFromNumber(0xffff_ffff), 1)).toEqual({ high: 1, low: 0 });
  expect(seedPlus(last, 1)).toEqual(seedFromNumber(0));
  expect(() => seedFromNumber(-1)).toThrow('natural');
});

test('seeds sort by value', () => {
  fc.assert(
    fc.property(anySeed, anySeed, (left, right) => {
      const difference = BigInt(printSeed(left)) - BigInt(printSeed(right));
      expect(Math.sign(compareSeeds(left, right))).toBe(
        Number(difference > 0n) - Number(difference < 0n),
      );
    }),
  );
});

test('a changed bit of the seed, the name or the lane changes about half of the hash', () => {
  let flipped = 0;
  const base = seedFromNumber(12_345);
  const reference = hashSeed(base, 'net', 0);
  const changed = [
    ...Array.from({ length: 32 }, (_, bit) =>
      hashSeed({ ...base, low: (base.low ^ (1 << bit)) >>> 0 }, 'net', 0),
    ),
    ...Array.from({ length: 32 }, (_, bit) =>
      hashSeed({ ...base, high: (1 << bit) >>> 0 }, 'net', 0),
    ),
    hashSeed(base, 'neu', 0),
    hashSeed(base, 'net', 1),
  ];
  for (const hash of changed) flipped += bitCount(hash ^ reference);
  expect(flipped / changed.length).toBeGreaterThan(14);
  expect(flipped / changed.length).toBeLessThan(18);
});

function bitCount(value: number): number {
  return (value >>> 0).toString(2).replaceAll('0', '').length;
}
