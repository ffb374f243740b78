import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Digest } from './digest.ts';

type Write = (digest: Digest) => Digest;

const different: readonly [string, Write][] = [
  ['nothing', (digest) => digest],
  ['absent', (digest) => digest.absent()],
  ['0', (digest) => digest.number(0)],
  ['-0', (digest) => digest.number(-0)],
  ['1', (digest) => digest.number(1)],
  ['-1', (digest) => digest.number(-1)],
  ['2^31', (digest) => digest.number(2 ** 31)],
  ['2^32', (digest) => digest.number(2 ** 32)],
  ['2^32 + 1', (digest) => digest.number(2 ** 32 + 1)],
  ['0.5', (digest) => digest.number(0.5)],
  ['infinity', (digest) => digest.number(Number.POSITIVE_INFINITY)],
  ['true', (digest) => digest.boolean(true)],
  ['false', (digest) => digest.boolean(false)],
  ['""', (digest) => digest.string('')],
  ['"1"', (digest) => digest.string('1')],
  ['"ab"', (digest) => digest.string('ab')],
  ['"a", "b"', (digest) => digest.string('a').string('b')],
  ['no bytes', (digest) => digest.bytes(new Uint8Array(0))],
  ['one byte', (digest) => digest.bytes(Uint8Array.of(0))],
  ['two bytes', (digest) => digest.bytes(Uint8Array.of(0, 0))],
  ['four bytes', (digest) => digest.bytes(Uint8Array.of(0, 0, 0, 0))],
  ['five bytes', (digest) => digest.bytes(Uint8Array.of(0, 0, 0, 0, 0))],
  ['byte 49', (digest) => digest.bytes(Uint8Array.of(49))],
];

test('values of different types, lengths and signs have different digests', () => {
  const printed = new Set(different.map(([, write]) => write(new Digest()).print()));
  expect(printed.size).toBe(different.length);
});

test('NaN is refused', () => {
  expect(() => new Digest().number(Number.NaN)).toThrow('NaN');
});

test('equal sequences agree, and a change of any value, or of order, shows', () => {
  const numbers = fc.array(fc.double({ noNaN: true }), { minLength: 1, maxLength: 30 });
  fc.assert(
    fc.property(numbers, fc.nat(), fc.double({ noNaN: true }), (values, place, changed) => {
      const index = place % values.length;
      expect(digestOf(values)).toBe(digestOf([...values]));
      fc.pre(!Object.is(values[index], changed));
      expect(digestOf(values.with(index, changed))).not.toBe(digestOf(values));
    }),
  );
  expect(digestOf([1, 2])).not.toBe(digestOf([2, 1]));
});

test('every byte counts', () => {
  const bytes = Uint8Array.from({ length: 23 }, (_, index) => index * 7);
  const seen = new Set([new Digest().bytes(bytes).print()]);
  for (let index = 0; index < bytes.length; index++) {
    seen.add(new Digest().bytes(bytes.with(index, 255)).print());
  }
  expect(seen.size).toBe(24);
});

test('two hundred thousand small numbers give as many digests, in one word nearly so', () => {
  const count = 200_000;
  const pairs = new Set<number>();
  const highs = new Set<number>();
  for (let value = 0; value < count; value++) {
    const digest = new Digest().number(value);
    highs.add(digest.high);
    pairs.add((digest.high % 2 ** 21) * 2 ** 32 + digest.low);
  }
  expect(pairs.size).toBe(count);
  expect(highs.size).toBeGreaterThan(count * 0.9999);
});

test('the print is the two words, and rolls on', () => {
  const digest = new Digest().string('step').number(1);
  const before = digest.print();
  expect(before).toMatch(/^[0-9a-f]{16}$/);
  expect(Number.parseInt(before.slice(0, 8), 16)).toBe(digest.high);
  expect(Number.parseInt(before.slice(8), 16)).toBe(digest.low);
  expect(digest.print()).toBe(before);
  expect(digest.boolean(true).print()).not.toBe(before);
});

test('the digest of a fixed sequence never changes', () => {
  const all = different.reduce((digest, [, write]) => write(digest), new Digest());
  expect(all.print()).toMatchInlineSnapshot(`"85571eddf0b0865f"`);
});

function digestOf(values: readonly number[]): string {
  return values.reduce((digest, value) => digest.number(value), new Digest()).print();
}
