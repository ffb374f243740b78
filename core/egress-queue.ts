/**
 * What waits for a socket that had no room: bounded first-in first-out queues of owned copies (spec §6.5), one for each
 * socket in trouble and none for any other.
 *
 * A blocked socket is rare and short, so nothing is laid out for it beforehand: a queue is an array made at its first
 * datagram and forgotten with its last, and the garbage collector has its memory back. An arena for the worst case would
 * have to be there always, and would fragment, because queues empty in any order. Against the worst case stand the bounds.
 *
 * A driver says only at the flush what it could not send, so a datagram that is offered stays at the front until then:
 * `offer` while the socket is writable, `takeBack` for each send that the flush reports as blocked, `settle` after it.
 */
import type { Address } from './address.ts';
import { assert } from './assert.ts';

/** Bounds of one queue. */
export interface EgressBounds {
  readonly datagrams: number;
  /** Headers and payloads. A datagram of the largest size fits into an empty queue. */
  readonly bytes: number;
}

/**
 * To a backend, for each flow. 64 datagrams as spec §6.5 has it: more would be old when they arrive. 2 KiB for each of them,
 * which a full Ethernet frame behind a PROXY header does not use up; of the largest datagrams (65,507 + 52 bytes) it holds one.
 */
export const FLOW_EGRESS: EgressBounds = { datagrams: 64, bytes: 64 * 2_048 };

/** To the clients of a listener, who share one socket: 256 datagrams (spec §6.5), 2 KiB for each of them as above. */
export const LISTENER_EGRESS: EgressBounds = { datagrams: 256, bytes: 256 * 2_048 };

/** All queues of a data plane together, overhead included: 512 flows with full queues, however many flows there are. */
export const EGRESS_MEMORY_MAX: number = 64 * 1_024 * 1_024;

/** Charged for each datagram on top of its bytes: measured 250 to 330 on Node 20 with a payload alone, a header adds 200. */
export const ENTRY_OVERHEAD_BYTES = 512;

/** Which bound refused a datagram; all count as `wq_full`. */
export type EgressRefusal = 'datagrams' | 'bytes' | 'memory';

/** A datagram that waits. Its bytes are the queue's own until it was settled. */
export interface EgressEntry {
  readonly header: Uint8Array | undefined;
  readonly payload: Uint8Array;
  /** Where to, on a socket that serves many clients. */
  readonly dst: Address | undefined;
  /** Where from, on a wildcard listener. */
  readonly from: Address | undefined;
}

/** The memory that all queues of a data plane share. */
export class EgressMemory {
  private readonly max: number;
  private used = 0;

  constructor(max: number = EGRESS_MEMORY_MAX) {
    this.max = max;
  }

  /** Bytes held now, overhead included. */
  get held(): number {
    return this.used;
  }

  /** Whether so much was free; then it is taken. */
  reserve(bytes: number): boolean {
    if (this.used + bytes > this.max) return false;
    this.used += bytes;
    return true;
  }

  release(bytes: number): void {
    assert(bytes <= this.used, 'nothing is released that was not reserved');
    this.used -= bytes;
  }
}

interface Queue {
  readonly entries: EgressEntry[];
  bytes: number;
  /** How many from the front are with the driver until the flush. */
  offered: number;
  /** Whether it was offered from since the last `settle`. */
  open: boolean;
}

/** The queues of one kind of socket. `Key` names a socket and is best never reused, as socket ids are not. */
export class EgressQueues<Key extends number> {
  private readonly bounds: EgressBounds;
  private readonly memory: EgressMemory;
  private readonly queues = new Map<Key, Queue>();
  /** Keys that were offered from since the last `settle`. */
  private readonly open: Key[] = [];
  private total = 0;

  constructor(bounds: EgressBounds, memory: EgressMemory) {
    this.bounds = bounds;
    this.memory = memory;
  }

  /** Sockets with a queue. While it is 0, nothing below needs to be asked. */
  get size(): number {
    return this.queues.size;
  }

  /** Datagrams in all queues that are not with the driver. */
  get waiting(): number {
    return this.total;
  }

  /** Whether a new datagram for this socket must queue behind others. */
  has(key: Key): boolean {
    return this.queues.has(key);
  }

  /** Datagrams in this queue, those with the driver included. */
  lengthOf(key: Key): number {
    return this.queues.get(key)?.entries.length ?? 0;
  }

  /** Appends a copy. When a bound is reached this newest one is dropped, and the bound is named. */
  push(
    key: Key,
    header: Uint8Array | undefined,
    payload: Uint8Array,
    dst?: Address,
    from?: Address,
  ): EgressRefusal | undefined {
    const queue = this.queues.get(key);
    const bytes = (header?.length ?? 0) + payload.length;
    if ((queue?.entries.length ?? 0) >= this.bounds.datagrams) return 'datagrams';
    if ((queue?.bytes ?? 0) + bytes > this.bounds.bytes) return 'bytes';
    if (!this.memory.reserve(bytes + ENTRY_OVERHEAD_BYTES)) return 'memory';
    const target = queue ?? this.create(key);
    target.bytes += bytes;
    // No slice: that of a Buffer, which drivers lend, is a view of what is lent.
    target.entries.push({ header: header?.slice(), payload: new Uint8Array(payload), dst, from });
    this.total += 1;
    return undefined;
  }

  /** The socket may have room: the next datagram to try, until undefined. It stays in the queue until `settle`. */
  offer(key: Key): EgressEntry | undefined {
    const queue = this.queues.get(key);
    const entry = queue?.entries[queue.offered];
    if (queue === undefined || entry === undefined) return undefined;
    if (!queue.open) this.open.push(key);
    queue.open = true;
    queue.offered += 1;
    this.total -= 1;
    return entry;
  }

  /**
   * The flush reports that a send to this socket blocked. One that was offered from the queue keeps its place at the front;
   * any other is appended like a new one. Reports come per socket in send order, as an unbroken tail (law 5), so counting
   * is enough. A send that failed for good is not reported here: it leaves with the next `settle`.
   */
  takeBack(
    key: Key,
    header: Uint8Array | undefined,
    payload: Uint8Array,
    dst?: Address,
    from?: Address,
  ): EgressRefusal | undefined {
    const queue = this.queues.get(key);
    if (queue === undefined || queue.offered === 0) {
      return this.push(key, header, payload, dst, from);
    }
    queue.offered -= 1;
    this.total += 1;
    return undefined;
  }

  /**
   * After a flush: what was offered and not taken back is gone. `left` hears of each socket whose queue goes on: it blocked
   * again, or something arrived behind what was offered.
   */
  settle(left: (key: Key) => void): void {
    for (const key of this.open) {
      const queue = this.queues.get(key);
      if (queue === undefined || !queue.open) continue;
      queue.open = false;
      this.forget(queue, queue.entries.splice(0, queue.offered));
      queue.offered = 0;
      if (queue.entries.length > 0) left(key);
      else this.queues.delete(key);
    }
    this.open.length = 0;
  }

  /**
   * The socket closes: forgets its queue, and says how many datagrams were waiting, for the counters. Those with the driver
   * do not count as waiting; when the flush reports them as blocked, the caller knows that their socket is gone.
   */
  discard(key: Key): number {
    const queue = this.queues.get(key);
    if (queue === undefined) return 0;
    const waiting = queue.entries.length - queue.offered;
    this.forget(queue, queue.entries);
    this.queues.delete(key);
    this.total -= waiting;
    return waiting;
  }

  private create(key: Key): Queue {
    const queue: Queue = { entries: [], bytes: 0, offered: 0, open: false };
    this.queues.set(key, queue);
    return queue;
  }

  private forget(queue: Queue, gone: readonly EgressEntry[]): void {
    for (const { header, payload } of gone) {
      const bytes = (header?.length ?? 0) + payload.length;
      queue.bytes -= bytes;
      this.memory.release(bytes + ENTRY_OVERHEAD_BYTES);
    }
  }
}
