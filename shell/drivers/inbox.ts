/**
 * Where datagrams arrive: slots that recvmmsg fills and the core is lent until the turn is over. A slot holds the largest
 * datagram there is, so none is ever truncated; pages of a slot that no datagram reached are not there.
 */
import type { Address } from '../../core/index.ts';
import type { Arena } from './arena.ts';
import { CONTROL_BYTES, IOVEC, MMSGHDR, SOCKADDR_IN6 } from './libc-layout.ts';
import type { Libc } from './libc.ts';

/** Datagrams that one call receives at most. */
export const BATCH = 64;

/** Datagrams of one turn. */
const SLOTS = 256;

/** A little more than 64 KiB: slots that begin in different sets of the processor's cache do not throw each other out. */
const SLOT_BYTES = 65_536 + 192;

/** Each struct begins a cache line, or two. */
const NAME_BYTES = 64;
const CONTROL_STRIDE = 64;

export const INBOX_BYTES: number =
  SLOTS * (SLOT_BYTES + 2 * MMSGHDR.size + IOVEC.size + NAME_BYTES + CONTROL_STRIDE) + 4_096;

export class Inbox {
  private readonly libc: Libc;
  private readonly arena: Arena;
  private readonly payloads: number;
  private readonly names: number;
  private readonly controls: number;
  /** Headers that ask for source and local address, and headers for connected sockets. */
  private readonly full: number;
  private readonly bare: number;
  private readonly views: Uint8Array[];
  private used = 0;
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
    this.views = Array.from({ length: SLOTS }, () => new Uint8Array(0));
    const vectors = arena.reserve(SLOTS * IOVEC.size);
    for (let slot = 0; slot < SLOTS; slot += 1) this.layOut(slot, vectors + slot * IOVEC.size);
  }

  get isFull(): boolean {
    return this.used === SLOTS;
  }

  /** The turn is over: every slot may be filled again. */
  clear(): void {
    this.used = 0;
  }

  /** The slot that the next datagram received goes to. */
  get next(): number {
    return this.used;
  }

  /** Receives on a connected socket; how many datagrams, from slot `next` on, or a negative errno. */
  receiveConnected(fd: number): number {
    return this.receive(fd, this.bare);
  }

  /** The same on a socket that anybody may send to. */
  receiveFromAny(fd: number): number {
    const first = this.used;
    const count = this.receive(fd, this.full);
    return count < 0 ? count : this.note(first, count);
  }

  /** The bytes in a slot. */
  payload(slot: number, isConnected: boolean): Uint8Array {
    const headers = isConnected ? this.bare : this.full;
    const length = this.arena.getInt32(headers + slot * MMSGHDR.size + MMSGHDR.length);
    const known = this.views[slot];
    // Nobody looks at it any more, and most datagrams are as long as those before them.
    if (known?.length === length && length > 0) return known;
    const view = new Uint8Array(this.arena.buffer, this.payloads + slot * SLOT_BYTES, length);
    this.views[slot] = view;
    return view;
  }

  source(slot: number): Address {
    this.lastSource = this.arena.readAddress(this.names + slot * NAME_BYTES, this.lastSource);
    return this.lastSource;
  }

  /** Where a datagram was sent to, on a socket that asks for it, which is bound to `port`. */
  local(slot: number, port: number): Address | undefined {
    const at = this.controls + slot * CONTROL_STRIDE;
    // The kernel's length, put aside by `note`.
    const length = this.arena.getInt32(at + CONTROL_BYTES);
    this.lastLocal = this.arena.readLocal(at, length, port, this.lastLocal);
    return this.lastLocal;
  }

  private receive(fd: number, headers: number): number {
    const at = this.arena.address + headers + this.used * MMSGHDR.size;
    const count = this.libc.recvmmsg(fd, at, Math.min(BATCH, SLOTS - this.used));
    if (count > 0) this.used += count;
    return count;
  }

  /** Puts right for the next call what the kernel overwrote with lengths of its own. */
  private note(first: number, count: number): number {
    const { arena } = this;
    for (let slot = first; slot < first + count; slot += 1) {
      const header = this.full + slot * MMSGHDR.size;
      const control = arena.getInt32(header + MMSGHDR.controlLength);
      arena.setInt32(this.controls + slot * CONTROL_STRIDE + CONTROL_BYTES, control);
      this.offerRoom(header);
    }
    return count;
  }

  private layOut(slot: number, vector: number): void {
    const { arena } = this;
    arena.setWord(vector + IOVEC.base, arena.address + this.payloads + slot * SLOT_BYTES);
    arena.setWord(vector + IOVEC.length, SLOT_BYTES);
    for (const headers of [this.full, this.bare]) {
      const header = headers + slot * MMSGHDR.size;
      arena.setWord(header + MMSGHDR.vectors, arena.address + vector);
      arena.setWord(header + MMSGHDR.vectorCount, 1);
    }
    const header = this.full + slot * MMSGHDR.size;
    arena.setWord(header + MMSGHDR.name, arena.address + this.names + slot * NAME_BYTES);
    arena.setWord(header + MMSGHDR.control, arena.address + this.controls + slot * CONTROL_STRIDE);
    this.offerRoom(header);
  }

  private offerRoom(header: number): void {
    this.arena.setInt32(header + MMSGHDR.nameLength, SOCKADDR_IN6.size);
    this.arena.setWord(header + MMSGHDR.controlLength, CONTROL_BYTES);
  }
}
