/**
 * Which flow an upstream socket belongs to. Socket ids count up and are never reused in a process, so an event that was read
 * before its socket closed finds nothing here, and can never reach the next owner of the slot.
 */
import { assert } from './assert.ts';
import { serialOf, type SocketId } from './brand.ts';
import { bucketsFor } from './keyed-hash.ts';
import { UsedPart } from './used-part.ts';

const FREE = 0;
const STRIDE = 3;
const SLOT = 0;
const CLUSTER = 1;
const BACKEND = 2;

/** 2^32 divided by the golden ratio: the buckets of consecutive serials lie as far apart as can be (Knuth, TAOCP 3, §6.4). */
const GOLDEN = 0x9e3779b1;

/**
 * Open addressing by serial number. Neighbours in time must not be neighbours here: they would form one unbroken run of
 * buckets, and whoever removes the oldest walks to its end, 0.6 ms among 100,000.
 */
export class UpstreamTable {
  private keys: Float64Array;
  private values: Int32Array;
  private keysUsed: UsedPart;
  private valuesUsed: UsedPart;
  private mask: number;
  /** Leaves the upper bits of a product: as many as the mask has. */
  private shift: number;
  private entries = 0;

  constructor(capacity: number) {
    this.mask = bucketsFor(capacity) - 1;
    this.shift = Math.clz32(this.mask);
    this.keys = new Float64Array(this.mask + 1);
    this.values = new Int32Array((this.mask + 1) * STRIDE);
    this.keysUsed = new UsedPart(this.keys, 1);
    this.valuesUsed = new UsedPart(this.values, STRIDE);
  }

  get count(): number {
    return this.entries;
  }

  /** Room for `capacity` sockets. */
  grow(capacity: number): void {
    if (bucketsFor(capacity) - 1 <= this.mask) return;
    const { keys, values } = this;
    this.mask = bucketsFor(capacity) - 1;
    this.shift = Math.clz32(this.mask);
    this.keys = new Float64Array(this.mask + 1);
    this.values = new Int32Array((this.mask + 1) * STRIDE);
    this.keysUsed = new UsedPart(this.keys, 1);
    this.valuesUsed = new UsedPart(this.values, STRIDE);
    this.entries = 0;
    for (const [bucket, key] of keys.entries()) {
      if (key === FREE) continue;
      const at = bucket * STRIDE;
      this.put(key, values[at + SLOT]!, values[at + CLUSTER]!, values[at + BACKEND]!);
    }
  }

  /** A new socket: the slot of its flow, and the numbers of its cluster and backend. */
  add(socket: SocketId, slot: number, cluster: number, backend: number): void {
    assert(this.entries <= this.mask >> 1, 'there are no more sockets than flows');
    this.put(socket, slot, cluster, backend);
  }

  /** The slot, or undefined when the socket has closed. */
  slotOf(socket: SocketId): number | undefined {
    const bucket = this.bucketOf(socket);
    return bucket === undefined ? undefined : this.values[bucket * STRIDE + SLOT];
  }

  /** The numbers of cluster and backend of an open socket. */
  ownersOf(socket: SocketId): { readonly cluster: number; readonly backend: number } {
    const bucket = this.bucketOf(socket);
    assert(bucket !== undefined, 'the socket is open');
    const at = bucket * STRIDE;
    return { cluster: this.values[at + CLUSTER]!, backend: this.values[at + BACKEND]! };
  }

  remove(socket: SocketId): void {
    let hole = this.bucketOf(socket);
    assert(hole !== undefined, 'only an open socket is removed');
    const { keys, values, mask } = this;
    for (let bucket = (hole + 1) & mask; keys[bucket] !== FREE; bucket = (bucket + 1) & mask) {
      const home = this.homeOf(keys[bucket]!);
      if (((bucket - home) & mask) < ((bucket - hole) & mask)) continue;
      keys[hole] = keys[bucket]!;
      values.copyWithin(hole * STRIDE, bucket * STRIDE, (bucket + 1) * STRIDE);
      hole = bucket;
    }
    keys[hole] = FREE;
    this.entries -= 1;
  }

  private put(key: number, slot: number, cluster: number, backend: number): void {
    let bucket = this.homeOf(key);
    while (this.keys[bucket] !== FREE) bucket = (bucket + 1) & this.mask;
    this.keys[bucket] = key;
    this.values[bucket * STRIDE + SLOT] = slot;
    this.values[bucket * STRIDE + CLUSTER] = cluster;
    this.values[bucket * STRIDE + BACKEND] = backend;
    this.keysUsed.mark(bucket);
    this.valuesUsed.mark(bucket);
    this.entries += 1;
  }

  private bucketOf(socket: SocketId): number | undefined {
    for (let bucket = this.homeOf(socket); ; bucket = (bucket + 1) & this.mask) {
      const key = this.keys[bucket];
      if (key === socket) return bucket;
      if (key === FREE) return undefined;
    }
  }

  private homeOf(key: number): number {
    return Math.imul(serialOf(key), GOLDEN) >>> this.shift;
  }
}
