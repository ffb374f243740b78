/**
 * Counts by key, for keys that strangers choose: open addressing over typed arrays under the secret seed, with as many
 * entries as there are live flows at most. A count that returns to zero leaves.
 */
import { assert } from './assert.ts';
import { bucketsFor, keyedHash, type TableSeed } from './keyed-hash.ts';
import { UsedPart } from './used-part.ts';

/** Words of a key: what is counted for, then five words of address. */
export const COUNT_KEY_WORDS = 6;
const HASH = 6;
const COUNT = 7;
const STRIDE = 8;

export class CountingTable {
  private readonly seed: TableSeed;
  private entries: Int32Array;
  private written: UsedPart;
  private mask: number;
  private used = 0;

  /** Room for `capacity` different keys. */
  constructor(capacity: number, seed: TableSeed) {
    this.seed = seed;
    this.mask = bucketsFor(capacity) - 1;
    this.entries = new Int32Array((this.mask + 1) * STRIDE);
    this.written = new UsedPart(this.entries, STRIDE);
  }

  /** Keys with a count above zero. */
  get size(): number {
    return this.used;
  }

  grow(capacity: number): void {
    const before = this.entries;
    this.mask = bucketsFor(capacity) - 1;
    this.entries = new Int32Array((this.mask + 1) * STRIDE);
    this.written = new UsedPart(this.entries, STRIDE);
    for (let at = 0; at < before.length; at += STRIDE) {
      if (before[at + COUNT] === 0) continue;
      let bucket = before[at + HASH]! & this.mask;
      while (this.entries[bucket * STRIDE + COUNT] !== 0) bucket = (bucket + 1) & this.mask;
      this.entries.set(before.subarray(at, at + STRIDE), bucket * STRIDE);
      this.written.mark(bucket);
    }
  }

  /** The count of a key of `COUNT_KEY_WORDS` words. */
  get(key: Int32Array): number {
    const bucket = this.bucketOf(key, keyedHash(this.seed, key, COUNT_KEY_WORDS));
    return this.entries[bucket * STRIDE + COUNT]!;
  }

  add(key: Int32Array): void {
    const hash = keyedHash(this.seed, key, COUNT_KEY_WORDS);
    const bucket = this.bucketOf(key, hash);
    const at = bucket * STRIDE;
    if (this.entries[at + COUNT] === 0) {
      assert(this.used <= this.mask >> 1, 'there is room for as many keys as flows');
      for (let word = 0; word < COUNT_KEY_WORDS; word += 1) this.entries[at + word] = key[word]!;
      this.entries[at + HASH] = hash;
      this.written.mark(bucket);
      this.used += 1;
    }
    this.entries[at + COUNT]! += 1;
  }

  subtract(key: Int32Array): void {
    const bucket = this.bucketOf(key, keyedHash(this.seed, key, COUNT_KEY_WORDS));
    const at = bucket * STRIDE;
    assert(this.entries[at + COUNT]! > 0, 'nothing is subtracted that was not added');
    this.entries[at + COUNT]! -= 1;
    if (this.entries[at + COUNT] !== 0) return;
    this.used -= 1;
    this.closeGap(bucket);
  }

  /** The bucket that has this key, or the free one where it would go. */
  private bucketOf(key: Int32Array, hash: number): number {
    let bucket = hash & this.mask;
    for (; ; bucket = (bucket + 1) & this.mask) {
      const at = bucket * STRIDE;
      if (this.entries[at + COUNT] === 0) return bucket;
      if (this.entries[at + HASH] === hash && this.matches(at, key)) return bucket;
    }
  }

  private matches(at: number, key: Int32Array): boolean {
    for (let word = 0; word < COUNT_KEY_WORDS; word += 1) {
      if (this.entries[at + word] !== key[word]) return false;
    }
    return true;
  }

  private closeGap(gap: number): void {
    const { entries, mask } = this;
    let hole = gap;
    for (let bucket = (hole + 1) & mask; entries[bucket * STRIDE + COUNT] !== 0;) {
      const home = entries[bucket * STRIDE + HASH]! & mask;
      if (((bucket - home) & mask) >= ((bucket - hole) & mask)) {
        entries.copyWithin(hole * STRIDE, bucket * STRIDE, (bucket + 1) * STRIDE);
        hole = bucket;
      }
      bucket = (bucket + 1) & mask;
    }
    entries.fill(0, hole * STRIDE, (hole + 1) * STRIDE);
  }
}
