/**
 * Where sends wait for the flush. Each socket's are a list of their own, in send order: at the flush a run of one flow, or
 * the replies of many flows on a listener, is one sendmmsg. Bytes that lie in the arena leave from where they are; headers,
 * and what had waited in a queue of the core, are copied into it.
 *
 * sendmmsg tells an error of its first message only. A listener's next call therefore begins at the first unsent one. A
 * connected socket's would lose a refusal by it, so there the cause is found out: without room it blocked, and otherwise the
 * datagram is given back as refused, to be sent once more, which tells if it was something else.
 */
import type { Address, Errno, ListenerId, SendFailed, SocketId } from '../../core/index.ts';
import type { Arena } from './arena.ts';
import { BATCH } from './inbox.ts';
import { IOVEC, MMSGHDR } from './libc-layout.ts';
import { errnoName, type Libc } from './libc.ts';

/** What sends need to know of a socket, and keep there. */
export interface Channel {
  readonly fd: number;
  readonly family: 4 | 6;
  /** Places of its first and its last send that wait; none: negative. */
  first: number;
  last: number;
  /** A send blocked or was refused since the last flush: what follows blocks, or it would overtake. */
  isHeld: boolean;
}

export interface ListenerLine extends Channel {
  readonly kind: 'listener';
  readonly id: ListenerId;
  readonly port: number;
  /** Whether arrivals say which local address they were sent to. */
  readonly isWildcard: boolean;
  isWatched: boolean;
}

export interface UpstreamLine extends Channel {
  readonly kind: 'upstream';
  readonly id: SocketId;
  isWatched: boolean;
}

export type Line = ListenerLine | UpstreamLine;

/** Sends that wait at once; one more, and they go early. */
const PLACES = 512;

/** Copies of one call: three of the largest datagrams at least. */
const COPIES_BYTES = 262_144;

/** The largest payload of UDP over IPv4 and over IPv6. Known here, so that one too many does not end a run. */
const LARGEST = { 4: 65_507, 6: 65_527 } as const;

const NONE = -1;

export const OUTBOX_BYTES: number =
  COPIES_BYTES + BATCH * (MMSGHDR.size + 2 * IOVEC.size + 64 + 64) + 4_096;

export class Outbox {
  private readonly libc: Libc;
  private readonly arena: Arena;
  private readonly messages: number;
  private readonly vectors: number;
  private readonly names: number;
  private readonly controls: number;
  private readonly copies: number;
  private copied = 0;
  private count = 0;
  private readonly next = new Int32Array(PLACES);
  private readonly headers = filled<Uint8Array>();
  private readonly payloads = filled<Uint8Array>();
  private readonly destinations = filled<Address>();
  private readonly sources = filled<Address>();
  /** Places of the messages of the call that is being made. */
  private readonly places = new Int32Array(BATCH);
  private readonly busy: Line[] = [];
  private readonly held: Line[] = [];
  private readonly failures: SendFailed[] = [];

  constructor(libc: Libc, arena: Arena) {
    this.libc = libc;
    this.arena = arena;
    this.messages = arena.reserve(BATCH * MMSGHDR.size);
    this.vectors = arena.reserve(BATCH * 2 * IOVEC.size);
    this.names = arena.reserve(BATCH * 64);
    this.controls = arena.reserve(BATCH * 64);
    this.copies = arena.reserve(COPIES_BYTES);
    for (let at = 0; at < BATCH; at += 1) {
      const message = this.messages + at * MMSGHDR.size;
      const vector = arena.address + this.vectors + at * 2 * IOVEC.size;
      arena.setWord(message + MMSGHDR.vectors, vector);
    }
  }

  toBackend(line: UpstreamLine, header: Uint8Array | undefined, payload: Uint8Array): void {
    this.collect(line, header, payload, undefined, undefined);
  }

  toClient(line: ListenerLine, dst: Address, from: Address | undefined, payload: Uint8Array): void {
    this.collect(line, undefined, payload, dst, from);
  }

  /** A send that failed before it was one, told at the flush like any other. */
  fail(failure: SendFailed): void {
    this.failures.push(failure);
  }

  /** Sends everything and reports what did not go. */
  flush(report: (failure: SendFailed) => void): void {
    this.transmitAll();
    for (const line of this.held) line.isHeld = false;
    this.held.length = 0;
    if (this.failures.length > 0) this.failures.splice(0).forEach(report);
  }

  /** The socket closes: what waits for it goes now. */
  close(line: Line): void {
    this.transmit(line);
  }

  private collect(
    line: Line,
    header: Uint8Array | undefined,
    payload: Uint8Array,
    dst: Address | undefined,
    from: Address | undefined,
  ): void {
    if (this.count === PLACES) this.transmitAll();
    const place = this.count;
    this.count += 1;
    this.headers[place] = header;
    this.payloads[place] = payload;
    this.destinations[place] = dst;
    this.sources[place] = from;
    this.next[place] = NONE;
    if (line.first === NONE) {
      line.first = place;
      this.busy.push(line);
    } else {
      this.next[line.last] = place;
    }
    line.last = place;
  }

  private transmitAll(): void {
    for (const line of this.busy) this.transmit(line);
    this.busy.length = 0;
    for (let place = 0; place < this.count; place += 1) {
      this.headers[place] = undefined;
      this.payloads[place] = undefined;
      this.destinations[place] = undefined;
      this.sources[place] = undefined;
    }
    this.count = 0;
  }

  private transmit(line: Line): void {
    let place = line.first;
    line.first = NONE;
    while (place !== NONE) {
      if (line.isHeld) {
        this.tell(line, place, 'EAGAIN');
        place = this.next[place] ?? NONE;
      } else {
        const { built, rest } = this.build(line, place);
        place = rest;
        this.hand(line, built);
      }
    }
  }

  /** Lays out messages for one call, from `place` on: how many, and the place of the first that is left. */
  private build(line: Line, place: number): { readonly built: number; readonly rest: number } {
    let [built, rest] = [0, place];
    this.copied = 0;
    while (rest !== NONE && built < BATCH) {
      const header = this.headers[rest];
      const payload = this.payloads[rest] ?? NOTHING;
      const bytes = payload.length + (header?.length ?? 0);
      if (bytes > LARGEST[line.family]) {
        // In send order: those before it are handed over first.
        if (built > 0) break;
        this.tell(line, rest, 'EMSGSIZE');
      } else {
        if (this.copied + bytes > COPIES_BYTES) break;
        this.layOut(built, line, rest, header, payload);
        this.places[built] = rest;
        built += 1;
      }
      rest = this.next[rest] ?? NONE;
    }
    return { built, rest };
  }

  private layOut(
    at: number,
    line: Line,
    place: number,
    header: Uint8Array | undefined,
    payload: Uint8Array,
  ): void {
    const { arena } = this;
    const message = this.messages + at * MMSGHDR.size;
    let vector = this.vectors + at * 2 * IOVEC.size;
    arena.setInt32(message + MMSGHDR.vectorCount, header === undefined ? 1 : 2);
    if (header !== undefined) {
      this.point(vector, header);
      vector += IOVEC.size;
    }
    this.point(vector, payload);
    const dst = this.destinations[place];
    const name = this.names + at * 64;
    arena.setWord(message + MMSGHDR.name, dst === undefined ? 0 : arena.address + name);
    const nameLength = dst === undefined ? 0 : arena.writeAddress(name, line.family, dst);
    arena.setInt32(message + MMSGHDR.nameLength, nameLength);
    const from = this.sources[place];
    const control = this.controls + at * 64;
    arena.setWord(message + MMSGHDR.control, from === undefined ? 0 : arena.address + control);
    const length = from === undefined ? 0 : arena.writeSource(control, line.family, from);
    arena.setWord(message + MMSGHDR.controlLength, length);
  }

  /** Where the kernel finds `bytes`: where they are, if that is in the arena, and else in a copy. */
  private point(vector: number, bytes: Uint8Array): void {
    const { arena } = this;
    let at = bytes.byteOffset;
    if (bytes.buffer !== arena.buffer) {
      at = this.copies + this.copied;
      arena.bytes.set(bytes, at);
      this.copied += bytes.length;
    }
    arena.setWord(vector + IOVEC.base, arena.address + at);
    arena.setWord(vector + IOVEC.length, bytes.length);
  }

  private hand(line: Line, built: number): void {
    let sent = 0;
    while (sent < built) {
      const at = this.arena.address + this.messages + sent * MMSGHDR.size;
      const took = this.libc.sendmmsg(line.fd, at, built - sent);
      if (took > 0) {
        sent += took;
        if (sent === built || line.kind === 'listener') continue;
      }
      const errno = took > 0 ? this.whatEnded(line.fd) : errnoName(took);
      if (errno === 'EINTR') continue;
      this.tell(line, this.places[sent] ?? NONE, errno);
      sent += 1;
      while (line.isHeld && sent < built) {
        this.tell(line, this.places[sent] ?? NONE, 'EAGAIN');
        sent += 1;
      }
    }
  }

  /** Why a run on a connected socket ended early. */
  private whatEnded(fd: number): Errno {
    return this.libc.hasRoom(fd) ? 'ECONNREFUSED' : 'EAGAIN';
  }

  private tell(line: Line, place: number, errno: Errno): void {
    const payload = this.payloads[place] ?? NOTHING;
    const isRefused = errno === 'ECONNREFUSED' && line.kind === 'upstream';
    const cause = errno === 'EAGAIN' ? 'blocked' : 'error';
    if ((isRefused || cause === 'blocked') && !line.isHeld) {
      line.isHeld = true;
      this.held.push(line);
    }
    if (line.kind === 'upstream') {
      const about = { direction: 'to-backend', socket: line.id } as const;
      const header = this.headers[place];
      if (isRefused) this.failures.push({ ...about, cause: 'refused', header, payload });
      else if (cause === 'error') this.failures.push({ ...about, cause, errno });
      else this.failures.push({ ...about, cause, header, payload });
      return;
    }
    const about = { direction: 'to-client', listener: line.id } as const;
    const dst = this.destinations[place];
    const from = this.sources[place];
    if (cause === 'error' || dst === undefined) {
      this.failures.push({ ...about, cause: 'error', errno });
    } else {
      this.failures.push({ ...about, cause, dst, from, payload });
    }
  }
}

const NOTHING = new Uint8Array(0);

function filled<T>(): (T | undefined)[] {
  return Array.from({ length: PLACES }, () => undefined);
}
