/**
 * The buckets of the flow table: hash to slot, by open addressing with linear probing and deletion by shifting back. Which
 * key a slot has is for the table to know; it reads `entries` itself, because a look-up is done for each datagram.
 */
import { assert } from './assert.ts';
import { bucketsFor } from './keyed-hash.ts';
import { UsedPart } from './used-part.ts';

export class SlotIndex {
  /** Pairs: slot + 1 (0 = empty), then the hash, so that most probes never touch a record. */
  readonly entries: Int32Array;
  /** Buckets less one. */
  readonly mask: number;
  private readonly used: UsedPart;

  constructor(capacity: number) {
    this.mask = bucketsFor(capacity) - 1;
    this.entries = new Int32Array(2 * (this.mask + 1));
    this.used = new UsedPart(this.entries, 2);
  }

  enter(slot: number, hash: number): void {
    const { entries, mask } = this;
    let bucket = hash & mask;
    while (entries[2 * bucket] !== 0) bucket = (bucket + 1) & mask;
    entries[2 * bucket] = slot + 1;
    entries[2 * bucket + 1] = hash;
    this.used.mark(bucket);
  }

  /** Empties the bucket of `slot`, then moves back every later entry that a look-up would no longer reach. */
  leave(slot: number, hash: number): void {
    const { entries, mask } = this;
    let hole = hash & mask;
    while (entries[2 * hole] !== slot + 1) {
      assert(entries[2 * hole] !== 0, 'a live flow is in the index');
      hole = (hole + 1) & mask;
    }
    for (let bucket = (hole + 1) & mask; entries[2 * bucket] !== 0; bucket = (bucket + 1) & mask) {
      const home = entries[2 * bucket + 1]! & mask;
      if (((bucket - home) & mask) < ((bucket - hole) & mask)) continue;
      entries[2 * hole] = entries[2 * bucket]!;
      entries[2 * hole + 1] = entries[2 * bucket + 1]!;
      hole = bucket;
    }
    entries[2 * hole] = 0;
  }

  /** Whether `slot` has an entry. For whole-state checks. */
  holds(slot: number, hash: number): boolean {
    for (let bucket = hash & this.mask; ; bucket = (bucket + 1) & this.mask) {
      const entry = this.entries[2 * bucket]!;
      if (entry === slot + 1) return true;
      if (entry === 0) return false;
    }
  }
}
