/**
 * What waits to be sent, in pieces: a datagram, or the datagrams of a train that arrived as one and lie one behind the other,
 * which need no look at each. Every piece has a place, and a socket's are chained.
 */
import { sameAddress, type Address } from '../../core/index.ts';
import type { Arena } from './arena.ts';
import { NONE, type Channel } from './channel.ts';

/** Pieces that wait at once; one more, and they go early. */
export const PLACES = 512;

/** Datagrams that a train carries at most (UDP_MAX_SEGMENTS of older kernels), and bytes. */
export const SEGMENTS = 64;
export const TRAIN_BYTES = 65_000;

/** Not in the arena: it is copied at the flush. */
const ELSEWHERE = -1;

const NOTHING = new Uint8Array(0);

export class Pieces {
  /** By place: the one after it, or none. */
  readonly next: Int32Array = new Int32Array(PLACES);
  /** Where its payload lies in the arena; negative: elsewhere. */
  readonly ats: Int32Array = new Int32Array(PLACES);
  /** All of its bytes, header and payload together; those of its first datagram; and how many datagrams they are. */
  readonly sizes: Int32Array = new Int32Array(PLACES);
  readonly units: Int32Array = new Int32Array(PLACES);
  readonly counts: Int32Array = new Int32Array(PLACES);
  readonly headers: (Uint8Array | undefined)[] = filled();
  readonly destinations: (Address | undefined)[] = filled();
  readonly sources: (Address | undefined)[] = filled();
  private readonly arena: Arena;
  /** Those that lie elsewhere. */
  private readonly payloads: (Uint8Array | undefined)[] = filled();
  private count = 0;
  private isHolding = false;

  constructor(arena: Arena) {
    this.arena = arena;
  }

  get isFull(): boolean {
    return this.count === PLACES;
  }

  /** Everything was sent, or told. */
  clear(): void {
    // Addresses may be left over: they are small, and others soon take their places.
    if (this.isHolding) {
      this.payloads.fill(undefined, 0, this.count);
      this.headers.fill(undefined, 0, this.count);
      this.isHolding = false;
    }
    this.count = 0;
  }

  /** A piece of one datagram; its place. There is one. */
  add(
    header: Uint8Array | undefined,
    payload: Uint8Array,
    dst: Address | undefined,
    from: Address | undefined,
  ): number {
    const { arena, count: place } = this;
    this.count += 1;
    const bytes = payload.length + (header === undefined ? 0 : header.length);
    this.sizes[place] = bytes;
    this.units[place] = bytes;
    this.counts[place] = 1;
    this.next[place] = NONE;
    const isLent = payload === arena.lent;
    this.ats[place] = isLent ? arena.lentAt : ELSEWHERE;
    if (!isLent || header !== undefined) {
      this.isHolding = true;
      this.payloads[place] = payload;
    }
    this.headers[place] = header;
    this.destinations[place] = dst;
    this.sources[place] = from;
    return place;
  }

  /** Whether a payload is the one that lies in the arena. */
  isLent(payload: Uint8Array): boolean {
    return payload === this.arena.lent;
  }

  /** A piece of a train, of what lies in the arena from `offset` on; its place. There is one. */
  addTrain(
    offset: number,
    length: number,
    unit: number,
    dst: Address | undefined,
    from: Address | undefined,
  ): number {
    const place = this.count;
    this.count += 1;
    this.sizes[place] = length;
    this.units[place] = Math.min(unit, length);
    this.counts[place] = Math.ceil(length / unit);
    this.next[place] = NONE;
    this.ats[place] = this.arena.lentAt + offset;
    this.headers[place] = undefined;
    this.destinations[place] = dst;
    this.sources[place] = from;
    return place;
  }

  /** Whether a datagram became a part of the last piece of `line`: they lie together and are one train. */
  extend(
    line: Channel,
    header: Uint8Array | undefined,
    payload: Uint8Array,
    dst: Address | undefined,
    from: Address | undefined,
  ): boolean {
    const { arena } = this;
    const place = line.last;
    const size = this.sizes[place] ?? 0;
    if ((this.ats[place] ?? 0) + size !== arena.lentAt || payload !== arena.lent) return false;
    if (header !== undefined || !this.isFor(place, dst, from)) return false;
    const bytes = payload.length;
    if (!this.takes(place, bytes)) return false;
    this.sizes[place] = size + bytes;
    this.counts[place] = (this.counts[place] ?? 1) + 1;
    return true;
  }

  /** Whether it is one datagram without a header that lies in the arena, and the only piece of its socket. */
  isPlain(place: number): boolean {
    return (
      this.next[place] === NONE &&
      this.counts[place] === 1 &&
      this.ats[place] !== ELSEWHERE &&
      this.headers[place] === undefined
    );
  }

  /** Whether a piece has the same peer and leaves from the same address as another. */
  isLike(place: number, other: number): boolean {
    return this.isFor(place, this.destinations[other], this.sources[other]);
  }

  /** The payload of one of its datagrams. */
  payload(place: number, part: number): Uint8Array {
    const at = this.ats[place] ?? ELSEWHERE;
    if (at === ELSEWHERE) return this.payloads[place] ?? NOTHING;
    const header = this.headers[place]?.length ?? 0;
    const [size, unit] = [(this.sizes[place] ?? 0) - header, (this.units[place] ?? 0) - header];
    const length = Math.min(unit, size - part * unit);
    return new Uint8Array(this.arena.buffer, at + part * unit, length);
  }

  /** Whether a train that is one piece may go on with so many bytes. */
  private takes(place: number, bytes: number): boolean {
    const [unit, size] = [this.units[place] ?? 0, this.sizes[place] ?? 0];
    const count = this.counts[place] ?? 1;
    if (this.headers[place] !== undefined) return false;
    if (bytes > unit || bytes === 0 || size !== unit * count) return false;
    return count < SEGMENTS && size + bytes <= TRAIN_BYTES;
  }

  private isFor(place: number, dst: Address | undefined, from: Address | undefined): boolean {
    return isSame(dst, this.destinations[place]) && isSame(from, this.sources[place]);
  }
}

function isSame(one: Address | undefined, other: Address | undefined): boolean {
  if (one === other) return true;
  return one !== undefined && other !== undefined && sameAddress(one, other);
}

function filled<T>(): (T | undefined)[] {
  return Array.from({ length: PLACES }, () => undefined);
}
