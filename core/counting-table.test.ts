/** The counting table against a Map, crowded so that keys collide and gaps must be closed. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { COUNT_KEY_WORDS, CountingTable } from './counting-table.ts';
import { keyedHash, type TableSeed } from './keyed-hash.ts';

const seeds = fc.record({ first: fc.integer(), second: fc.integer() });

describe('counting table', () => {
  test('counts up and down, and forgets a key at zero', () => {
    const table = new CountingTable(2, { first: 1, second: 2 });
    expect(table.get(key(1))).toBe(0);
    table.add(key(1));
    table.add(key(1));
    expect([table.get(key(1)), table.get(key(2)), table.size]).toEqual([2, 0, 1]);
    table.subtract(key(1));
    table.subtract(key(1));
    expect([table.get(key(1)), table.size]).toEqual([0, 0]);
  });

  test('when all keys have left, every entry is free again', () => {
    const table = new CountingTable(8, { first: 1, second: 2 });
    for (let n = 0; n < 8; n += 1) table.add(key(n));
    for (let n = 0; n < 8; n += 1) table.subtract(key(n));
    expect(table.size).toBe(0);
    expect(Reflect.get(table, 'entries')).toSatisfy(isZero);
  });

  test('every word of a key matters', () => {
    const table = new CountingTable(8, { first: 1, second: 2 });
    table.add(new Int32Array(COUNT_KEY_WORDS));
    for (let word = 0; word < COUNT_KEY_WORDS; word += 1) {
      const other = new Int32Array(COUNT_KEY_WORDS);
      other[word] = 1;
      expect(table.get(other)).toBe(0);
    }
  });

  test('two keys with one hash are told apart', () => {
    const seed = { first: 1, second: 2 };
    const [one, other] = twinsUnder(seed);
    const table = new CountingTable(8, seed);
    table.add(one);
    expect([table.get(one), table.get(other)]).toEqual([1, 0]);
    table.add(other);
    table.add(other);
    table.subtract(one);
    expect([table.get(one), table.get(other), table.size]).toEqual([0, 2, 1]);
  });

  test('subtracting what was never added is a bug of the caller', () => {
    const table = new CountingTable(2, { first: 1, second: 2 });
    expect(() => table.subtract(key(1))).toThrow('added');
  });

  test('more keys than there is room for is a bug of the caller', () => {
    const table = new CountingTable(8, { first: 1, second: 2 });
    for (let n = 0; n < 8; n += 1) table.add(key(n));
    expect(() => table.add(key(8))).toThrow('room');
    expect(() => table.add(key(7))).not.toThrow();
  });
});

test('under additions, subtractions and growth in any order the table is a Map', () => {
  const act = fc.record({ n: fc.nat(11), what: fc.nat(9) });
  fc.assert(
    fc.property(seeds, fc.array(act, { maxLength: 250, size: 'max' }), (seed, acts) => {
      // Eight keys fill half of the sixteen buckets that are the least there is.
      const table = new CountingTable(8, seed);
      const model = new Map<number, number>();
      let capacity = 8;
      for (const { n, what } of acts) {
        if (what === 0 && capacity < 64) table.grow((capacity *= 2));
        const known = model.get(n) ?? 0;
        if (known > 0 && what < 6) {
          table.subtract(key(n));
          if (known === 1) model.delete(n);
          else model.set(n, known - 1);
        } else if (known > 0 || model.size < 8) {
          table.add(key(n));
          model.set(n, known + 1);
        }
        for (let one = 0; one < 12; one += 1) expect(table.get(key(one))).toBe(model.get(one) ?? 0);
        expect(table.size).toBe(model.size);
      }
    }),
    { numRuns: 100 },
  );
});

/** Two keys that the seed gives one hash: among as many as these, some do. */
function twinsUnder(seed: TableSeed): [Int32Array, Int32Array] {
  const byHash = new Map<number, number>();
  for (let n = 0; n < 400_000; n += 1) {
    const hash = keyedHash(seed, key(n), COUNT_KEY_WORDS);
    const earlier = byHash.get(hash);
    if (earlier !== undefined) return [key(earlier), key(n)];
    byHash.set(hash, n);
  }
  throw new Error('no two keys share a hash');
}

function isZero(entries: unknown): boolean {
  return entries instanceof Int32Array && entries.every((word) => word === 0);
}

function key(n: number): Int32Array {
  return Int32Array.of(1, 0x0420, n, 0, 0, -n);
}
