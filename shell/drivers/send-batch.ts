/**
 * The messages of one sendmmsg. A message is a datagram, or a train: datagrams of one size for one peer, of which the last may
 * be shorter, that the kernel takes in one piece and cuts apart again (UDP_SEGMENT). Bytes that lie in the arena leave from
 * where they are; headers, and what had waited in a queue of the core, are copied into it.
 */
import type { Address } from '../../core/index.ts';
import type { Arena } from './arena.ts';
import type { Channel } from './channel.ts';
import { IOVEC, MMSGHDR } from './libc-layout.ts';

/** Messages of one call. */
export const MESSAGES = 64;

/** Datagrams that a train carries at most (UDP_MAX_SEGMENTS of older kernels), and bytes. */
const SEGMENTS = 64;
const TRAIN_BYTES = 65_000;

/** Copies of one call: three of the largest datagrams at least. */
const COPIES_BYTES = 262_144;

/** One for the header and one for the payload of each datagram; what is waiting in an outbox has room. */
const VECTORS = 1_024;

const NAME_BYTES = 64;
/** Room for two control messages: where it leaves from, and how long a segment is. */
const CONTROL_BYTES = 64;

export const SEND_BATCH_BYTES: number =
  COPIES_BYTES +
  MESSAGES * (MMSGHDR.size + NAME_BYTES + CONTROL_BYTES) +
  VECTORS * IOVEC.size +
  5 * 64;

export class SendBatch {
  /** Messages that are laid out. */
  count = 0;
  /** Of each message, the datagrams it carries. */
  readonly segments: Int32Array = new Int32Array(MESSAGES);
  private readonly arena: Arena;
  private readonly messages: number;
  private readonly vectors: number;
  private readonly names: number;
  private readonly controls: number;
  private readonly copies: number;
  private copied = 0;
  private vector = 0;
  /** Of the message that is being laid out: where its vectors begin, its bytes, and the size of its first datagram. */
  private firstVector = 0;
  private bytes = 0;
  private segmentBytes = 0;
  private controlBytes = 0;
  private isClosed = true;
  /** Where the bytes end that were put last. */
  private end = 0;

  constructor(arena: Arena) {
    this.arena = arena;
    this.messages = arena.reserve(MESSAGES * MMSGHDR.size);
    this.vectors = arena.reserve(VECTORS * IOVEC.size);
    this.names = arena.reserve(MESSAGES * NAME_BYTES);
    this.controls = arena.reserve(MESSAGES * CONTROL_BYTES);
    this.copies = arena.reserve(COPIES_BYTES);
    for (let at = 0; at < MESSAGES; at += 1) {
      const message = this.messages + at * MMSGHDR.size;
      arena.setWord(message + MMSGHDR.name, arena.address + this.names + at * NAME_BYTES);
      arena.setWord(message + MMSGHDR.control, arena.address + this.controls + at * CONTROL_BYTES);
    }
  }
  clear(): void {
    this.count = 0;
    this.copied = 0;
    this.vector = 0;
    this.isClosed = true;
  }

  /** Whether a message of its own for so many bytes finds room. */
  hasRoom(bytes: number): boolean {
    return (
      this.count < MESSAGES && this.vector + 2 <= VECTORS && this.copied + bytes <= COPIES_BYTES
    );
  }

  /**
   * A message that will begin with a datagram of so many bytes, to `dst` and from `from` where they are given. It may become a
   * train unless the datagram is larger than what its socket may cut.
   */
  begin(line: Channel, bytes: number, dst: Address | undefined, from: Address | undefined): void {
    this.finish();
    const { arena, count } = this;
    const message = this.messages + count * MMSGHDR.size;
    const name = this.names + count * NAME_BYTES;
    const nameBytes = dst === undefined ? 0 : arena.writeAddress(name, line.family, dst);
    arena.setInt32(message + MMSGHDR.nameLength, nameBytes);
    const control = this.controls + count * CONTROL_BYTES;
    this.controlBytes = from === undefined ? 0 : arena.writeSource(control, line.family, from);
    this.firstVector = this.vector;
    this.bytes = 0;
    this.segmentBytes = bytes;
    this.isClosed = bytes > line.largestSegment || bytes === 0;
    this.segments[count] = 0;
    this.count = count + 1;
  }

  /** Whether one more datagram, for the same peer, goes along with those of the message that was begun last. */
  takes(bytes: number): boolean {
    return (
      !this.isClosed &&
      bytes <= this.segmentBytes &&
      bytes > 0 &&
      (this.segments[this.count - 1] ?? 0) < SEGMENTS &&
      this.bytes + bytes <= TRAIN_BYTES &&
      this.vector + 2 <= VECTORS &&
      this.copied + bytes <= COPIES_BYTES
    );
  }

  /** A datagram of the message that was begun last. */
  put(bytes: number, header: Uint8Array | undefined, payload: Uint8Array): void {
    if (header !== undefined) this.point(header);
    this.point(payload);
    this.bytes += bytes;
    const message = this.count - 1;
    this.segments[message] = (this.segments[message] ?? 0) + 1;
    if (bytes < this.segmentBytes) this.isClosed = true;
  }

  /** No more comes. */
  finish(): void {
    const at = this.count - 1;
    if (at < 0) return;
    const { arena } = this;
    const message = this.messages + at * MMSGHDR.size;
    const vectors = arena.address + this.vectors + this.firstVector * IOVEC.size;
    arena.setWord(message + MMSGHDR.vectors, vectors);
    arena.setInt32(message + MMSGHDR.vectorCount, this.vector - this.firstVector);
    if ((this.segments[at] ?? 0) > 1) {
      const control = this.controls + at * CONTROL_BYTES + this.controlBytes;
      this.controlBytes += arena.writeSegment(control, this.segmentBytes);
    }
    arena.setInt32(message + MMSGHDR.controlLength, this.controlBytes);
  }

  /** Where the kernel finds a message and those after it. */
  addressOf(message: number): number {
    return this.arena.address + this.messages + message * MMSGHDR.size;
  }

  /** Where the kernel finds `bytes`: where they are, if that is in the arena, and else in a copy. */
  private point(bytes: Uint8Array): void {
    const { arena } = this;
    let at = bytes.byteOffset;
    if (bytes.buffer !== arena.buffer) {
      at = this.copies + this.copied;
      arena.bytes.set(bytes, at);
      this.copied += bytes.length;
    }
    let vector = this.vectors + this.vector * IOVEC.size;
    if (at === this.end && this.vector > this.firstVector) {
      // Of a train that arrived as one: it leaves as one piece.
      vector -= IOVEC.size;
      arena.setInt32(vector + IOVEC.length, arena.getInt32(vector + IOVEC.length) + bytes.length);
    } else {
      arena.setWord(vector + IOVEC.base, arena.address + at);
      arena.setInt32(vector + IOVEC.length, bytes.length);
      this.vector += 1;
    }
    this.end = at + bytes.length;
  }
}
