/**
 * The messages of one sendmmsg. A message is a datagram, or a train: datagrams of one size for one peer, of which the last may
 * be shorter, that the kernel takes in one piece and cuts apart again (UDP_SEGMENT). Bytes that lie in the arena leave from
 * where they are; headers, and what had waited in a queue of the core, are copied into it.
 */
import type { Arena } from './arena.ts';
import type { Channel } from './channel.ts';
import { IOVEC, MMSGHDR } from './libc-layout.ts';
import { PLACES, SEGMENTS, TRAIN_BYTES, type Pieces } from './pieces.ts';

/** Messages of one call: as many as a train has segments, which are that many if a path takes them one by one only. */
const MESSAGES = SEGMENTS;

/** Copies of one call: three of the largest datagrams at least. */
const COPIES_BYTES = 262_144;

/** One for the header and one for the payload of each piece that waits. */
const VECTORS = 2 * PLACES;

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
  /** Of each message: the datagrams it carries, the place of the piece that is its first, and which part of that begins it. */
  readonly segments: Int32Array = new Int32Array(MESSAGES);
  readonly places: Int32Array = new Int32Array(MESSAGES);
  readonly parts: Int32Array = new Int32Array(MESSAGES);
  private readonly arena: Arena;
  private readonly pieces: Pieces;
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

  constructor(arena: Arena, pieces: Pieces) {
    this.arena = arena;
    this.pieces = pieces;
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

  /** Whether a piece found room, in the last message if it goes along with that, or in one of its own. */
  add(line: Channel, place: number): boolean {
    const { pieces } = this;
    const bytes = pieces.sizes[place] ?? 0;
    if (this.copied + bytes > COPIES_BYTES) return false;
    const count = pieces.counts[place] ?? 1;
    if (count > 1) return this.addTrain(line, place, bytes, count);
    if (!this.takes(place, bytes)) {
      if (this.count === MESSAGES) return false;
      this.begin(line, place, 0, bytes);
    }
    this.put(place, bytes);
    return true;
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

  /** As one message; or as many, alone in a call, where the path takes no such trains. */
  private addTrain(line: Channel, place: number, bytes: number, count: number): boolean {
    const unit = this.pieces.units[place] ?? 0;
    const at = this.pieces.ats[place] ?? 0;
    if (unit <= line.largestSegment) {
      if (this.count === MESSAGES) return false;
      this.begin(line, place, 0, unit);
      this.segments[this.count - 1] = count;
      this.point(at, bytes);
      this.isClosed = true;
      return true;
    }
    if (this.count > 0) return false;
    for (let part = 0; part < count; part += 1) {
      this.begin(line, place, part, unit);
      this.segments[part] = 1;
      this.point(at + part * unit, Math.min(unit, bytes - part * unit));
    }
    this.isClosed = true;
    return true;
  }

  /** A message that begins with a part of a piece, a datagram of so many bytes. */
  private begin(line: Channel, place: number, part: number, bytes: number): void {
    this.finish();
    const { arena, pieces, count } = this;
    const [dst, from] = [pieces.destinations[place], pieces.sources[place]];
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
    this.places[count] = place;
    this.parts[count] = part;
    this.count = count + 1;
  }

  /** Whether a piece of one datagram goes along with those of the message that was begun last. */
  private takes(place: number, bytes: number): boolean {
    if (this.isClosed || bytes > this.segmentBytes || bytes === 0) return false;
    const message = this.count - 1;
    if ((this.segments[message] ?? 0) === SEGMENTS || this.bytes + bytes > TRAIN_BYTES)
      return false;
    return this.pieces.isLike(place, this.places[message] ?? 0);
  }

  /** A datagram of the message that was begun last. */
  private put(place: number, bytes: number): void {
    const { pieces } = this;
    const header = pieces.headers[place];
    if (header !== undefined) this.copy(header);
    const at = pieces.ats[place] ?? 0;
    if (at < 0) this.copy(pieces.payload(place, 0));
    else this.point(at, bytes - (header === undefined ? 0 : header.length));
    this.bytes += bytes;
    const message = this.count - 1;
    this.segments[message] = (this.segments[message] ?? 0) + 1;
    if (bytes < this.segmentBytes) this.isClosed = true;
  }

  private copy(bytes: Uint8Array): void {
    const at = this.copies + this.copied;
    this.arena.bytes.set(bytes, at);
    this.copied += bytes.length;
    this.point(at, bytes.length);
  }

  private point(at: number, length: number): void {
    const { arena } = this;
    const vector = this.vectors + this.vector * IOVEC.size;
    arena.setWord(vector + IOVEC.base, arena.address + at);
    arena.setInt32(vector + IOVEC.length, length);
    this.vector += 1;
  }
}
