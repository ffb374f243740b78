/**
 * Where datagrams arrive: slots that recvmmsg fills and the core is lent until the turn is over. A slot holds the largest
 * datagram there is, so none is ever truncated; pages of a slot that no datagram reached are not there. It may hold a train
 * instead: datagrams of one size from one peer, of which the last may be shorter, in one piece (UDP_GRO).
 */
import type { Address } from '../../core/index.ts';
import type { Arena } from './arena.ts';
import { CMSGHDR, IOVEC, MMSGHDR, RECEIVE_CONTROL_BYTES, SOCKADDR_IN6 } from './libc-layout.ts';
import { SOL_SOCKET, SOL_UDP, type Libc } from './libc.ts';

/** Messages that one call receives at most. */
export const BATCH = 64;

/** Messages of one turn. */
const SLOTS = 256;

/** Datagrams after which a turn receives no more, however many a message holds. */
const ENOUGH = 1_024;

/** A little more than 64 KiB: slots that begin in different sets of the processor's cache do not throw each other out. */
const SLOT_BYTES = 65_536 + 192;

/** Each struct begins a cache line, or two. */
const NAME_BYTES = 64;
const CONTROL_STRIDE = 128;

const NONE = -1;

const NOTHING = new Uint8Array(0);

export const INBOX_BYTES: number =
  SLOTS * (SLOT_BYTES + 2 * MMSGHDR.size + IOVEC.size + NAME_BYTES + CONTROL_STRIDE) + 4_096;

export class Inbox {
  /** What the last receive said of datagrams that found no room in the socket, since it was opened; negative: nothing. */
  overflow: number = NONE;
  private readonly libc: Libc;
  private readonly arena: Arena;
  private readonly payloads: number;
  private readonly names: number;
  private readonly controls: number;
  /** Headers that ask who sent it, and headers for connected sockets. */
  private readonly full: number;
  private readonly bare: number;
  /** Of each slot: its bytes, those of a datagram in its train (none: 0), where its local address stands (none: negative). */
  private readonly lengths = new Int32Array(SLOTS);
  private readonly segments = new Int32Array(SLOTS);
  private readonly locals = new Int32Array(SLOTS);
  /** Of each slot: the last datagram that was no part of a train, or was its rest, and where in it that lay. */
  private readonly views: Uint8Array[];
  private readonly offsets = new Int32Array(SLOTS);
  private readonly trains: Uint8Array[][];
  private readonly wholes: (Uint8Array | undefined)[];
  private used = 0;
  private datagrams = 0;
  private lastSource: Address | undefined;
  private lastLocal: Address | undefined;

  constructor(libc: Libc, arena: Arena) {
    this.libc = libc;
    this.arena = arena;
    this.payloads = arena.reserve(SLOTS * SLOT_BYTES);
    this.names = arena.reserve(SLOTS * NAME_BYTES);
    this.controls = arena.reserve(SLOTS * CONTROL_STRIDE);
    this.full = arena.reserve(SLOTS * MMSGHDR.size);
    this.bare = arena.reserve(SLOTS * MMSGHDR.size);
    this.views = Array.from({ length: SLOTS }, () => NOTHING);
    this.trains = Array.from({ length: SLOTS }, () => []);
    this.wholes = Array.from({ length: SLOTS }, () => undefined);
    const vectors = arena.reserve(SLOTS * IOVEC.size);
    for (let slot = 0; slot < SLOTS; slot += 1) this.layOut(slot, vectors + slot * IOVEC.size);
  }

  /** Whether a turn holds no more. */
  get isFull(): boolean {
    return this.used === SLOTS || this.datagrams >= ENOUGH;
  }

  /** The turn is over: every slot may be filled again. */
  clear(): void {
    this.used = 0;
    this.datagrams = 0;
    this.arena.lent = undefined;
  }

  /** The slot that the next message received goes to. */
  get next(): number {
    return this.used;
  }

  /** Receives up to `most` messages on a connected socket; how many, from slot `next` on, or a negative errno. */
  receiveConnected(fd: number, most: number): number {
    return this.receive(fd, this.bare, most);
  }

  /** The same on a socket that anybody may send to. */
  receiveFromAny(fd: number): number {
    return this.receive(fd, this.full, BATCH);
  }

  /** Receives one datagram on a connected socket that takes no trains, into slot `next`: 1, or a negative errno. */
  receiveOne(fd: number): number {
    const { used: slot, arena, payloads } = this;
    const length = this.libc.recv(fd, arena.address + payloads + slot * SLOT_BYTES, SLOT_BYTES);
    if (length < 0) return length;
    this.lengths[slot] = length;
    this.segments[slot] = 0;
    this.used = slot + 1;
    return 1;
  }

  /** What a datagram of a slot's train has, bytes, but for its last one; 0: it holds one datagram. */
  unitOf(slot: number): number {
    const unit = this.segments[slot] ?? 0;
    const length = this.lengths[slot] ?? 0;
    if (unit === 0 || length <= unit) return 0;
    this.datagrams += Math.ceil(length / unit);
    return unit;
  }

  /** A whole train, in one view, which is made anew only where the last one does not fit. */
  train(slot: number): Uint8Array {
    const { arena, wholes } = this;
    const length = this.lengths[slot] ?? 0;
    const known = wholes[slot];
    const whole = known?.length === length ? known : this.view(slot, 0, length);
    wholes[slot] = whole;
    arena.lent = whole;
    arena.lentAt = this.payloads + slot * SLOT_BYTES;
    return whole;
  }

  /** How many datagrams a slot holds, each of which can be had afterwards. */
  countIn(slot: number): number {
    const segment = this.segments[slot] ?? 0;
    if (segment === 0) return 1;
    return this.openTrain(slot, segment);
  }

  /** One of them. */
  datagram(slot: number, place: number): Uint8Array {
    const { arena } = this;
    const segment = this.segments[slot] ?? 0;
    const offset = place * segment;
    const isWhole = segment > 0 && offset + segment <= (this.lengths[slot] ?? 0);
    // What is left at the end of a train is as a datagram of its own.
    const view = isWhole ? (this.trains[slot]?.[place] ?? NOTHING) : this.rest(slot, offset);
    arena.lent = view;
    arena.lentAt = this.payloads + slot * SLOT_BYTES + offset;
    return view;
  }

  /** Views are made anew only where none fits: most datagrams and trains are like those that lay there before. */
  private openTrain(slot: number, segment: number): number {
    const length = this.lengths[slot] ?? 0;
    const train = this.trains[slot] ?? [];
    if (train[0]?.length !== segment) train.length = 0;
    const whole = Math.floor(length / segment);
    while (train.length < whole) train.push(this.view(slot, train.length * segment, segment));
    return whole * segment < length ? whole + 1 : whole;
  }

  private rest(slot: number, offset: number): Uint8Array {
    const length = (this.lengths[slot] ?? 0) - offset;
    const known = this.views[slot];
    // Nobody looks at it any more.
    const isAsWanted = known?.length === length && length > 0 && this.offsets[slot] === offset;
    if (isAsWanted) return known;
    const view = this.view(slot, offset, length);
    this.views[slot] = view;
    this.offsets[slot] = offset;
    return view;
  }

  source(slot: number): Address {
    this.lastSource = this.arena.readAddress(this.names + slot * NAME_BYTES, this.lastSource);
    return this.lastSource;
  }

  /** Where a datagram was sent to, on a socket that asks for it, which is bound to `port`. */
  local(slot: number, port: number): Address | undefined {
    const at = this.locals[slot] ?? NONE;
    if (at === NONE) return undefined;
    this.lastLocal = this.arena.readLocal(at, port, this.lastLocal);
    return this.lastLocal;
  }

  private view(slot: number, offset: number, length: number): Uint8Array {
    const { arena, payloads } = this;
    return new Uint8Array(arena.buffer, payloads + slot * SLOT_BYTES + offset, length);
  }

  private receive(fd: number, headers: number, most: number): number {
    const { used, arena } = this;
    const at = arena.address + headers + used * MMSGHDR.size;
    const count = this.libc.recvmmsg(fd, at, Math.min(most, SLOTS - used));
    this.overflow = NONE;
    for (let slot = used; slot < used + count; slot += 1) {
      this.note(slot, headers + slot * MMSGHDR.size);
    }
    if (count > 0) this.used = used + count;
    return count;
  }

  /** Keeps what the kernel says of a message, and puts right for the next call what it overwrote in the header. */
  private note(slot: number, header: number): void {
    const { arena } = this;
    this.lengths[slot] = arena.getInt32(header + MMSGHDR.length);
    this.segments[slot] = 0;
    this.locals[slot] = NONE;
    const control = arena.getInt32(header + MMSGHDR.controlLength);
    if (control > 0) this.readControls(slot, this.controls + slot * CONTROL_STRIDE, control);
    this.offerRoom(header);
  }

  private readControls(slot: number, from: number, length: number): void {
    const { arena } = this;
    let at = from;
    while (at + CMSGHDR.data <= from + length) {
      const level = arena.getInt32(at + CMSGHDR.level);
      if (level === SOL_UDP) this.segments[slot] = arena.getInt32(at + CMSGHDR.data);
      else if (level === SOL_SOCKET) this.overflow = arena.getInt32(at + CMSGHDR.data) >>> 0;
      else this.locals[slot] = at;
      at += Math.ceil(arena.getInt32(at + CMSGHDR.length) / 8) * 8;
    }
  }

  private layOut(slot: number, vector: number): void {
    const { arena } = this;
    arena.setWord(vector + IOVEC.base, arena.address + this.payloads + slot * SLOT_BYTES);
    arena.setWord(vector + IOVEC.length, SLOT_BYTES);
    for (const headers of [this.full, this.bare]) {
      const header = headers + slot * MMSGHDR.size;
      arena.setWord(header + MMSGHDR.vectors, arena.address + vector);
      arena.setWord(header + MMSGHDR.vectorCount, 1);
      arena.setWord(
        header + MMSGHDR.control,
        arena.address + this.controls + slot * CONTROL_STRIDE,
      );
      this.offerRoom(header);
    }
    const header = this.full + slot * MMSGHDR.size;
    arena.setWord(header + MMSGHDR.name, arena.address + this.names + slot * NAME_BYTES);
  }

  private offerRoom(header: number): void {
    this.arena.setInt32(header + MMSGHDR.nameLength, SOCKADDR_IN6.size);
    this.arena.setInt32(header + MMSGHDR.controlLength, RECEIVE_CONTROL_BYTES);
  }
}
