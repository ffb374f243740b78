/**
 * Where sends wait for the flush. Each socket's are a list of their own, in send order: at the flush a run of one flow, or
 * the replies of many flows on a listener, is one sendmmsg. Neighbours of one size for one peer leave as a train. Replies to
 * one client are neighbours, because they come from one socket, which is received from once in a turn.
 *
 * sendmmsg tells an error of its first message only. A listener's next call therefore begins at the first unsent one. A
 * connected socket's would lose a refusal by it, so there the cause is found out: without room it blocked, and otherwise the
 * datagram is given back as refused, to be sent once more, which tells if it was something else. A train is tried again
 * instead: it may have been refused for being one.
 */
import { sameAddress, type Address, type Errno, type SendFailed } from '../../core/index.ts';
import type { Arena } from './arena.ts';
import type { Line, ListenerLine, UpstreamLine } from './channel.ts';
import { errnoName, type Libc } from './libc.ts';
import { MESSAGES, SEND_BATCH_BYTES, SendBatch } from './send-batch.ts';

/** Sends that wait at once; one more, and they go early. */
const PLACES = 512;

/** The largest payload of UDP over IPv4 and over IPv6. Known here, so that one too many does not end a run. */
const LARGEST = { 4: 65_507, 6: 65_527 } as const;

const NONE = -1;

export const OUTBOX_BYTES: number = SEND_BATCH_BYTES;

/** What segmentation offload did. */
export interface TrainFigures {
  /** Sends of more than one datagram in one piece, and the datagrams in them. */
  trains: number;
  datagramsInTrains: number;
  /** How often a path refused a train that it took as single datagrams. */
  trainsRefused: number;
}

export class Outbox {
  readonly figures: TrainFigures = { trains: 0, datagramsInTrains: 0, trainsRefused: 0 };
  private readonly libc: Libc;
  private readonly batch: SendBatch;
  private count = 0;
  private readonly next = new Int32Array(PLACES);
  /** Header and payload together. */
  private readonly sizes = new Int32Array(PLACES);
  private readonly headers = filled<Uint8Array>();
  private readonly payloads = filled<Uint8Array>();
  private readonly destinations = filled<Address>();
  private readonly sources = filled<Address>();
  /** Of each message of the call that is being made, the place of its first datagram. */
  private readonly places = new Int32Array(MESSAGES);
  private readonly busy: Line[] = [];
  private readonly held: Line[] = [];
  private readonly failures: SendFailed[] = [];

  constructor(libc: Libc, arena: Arena) {
    this.libc = libc;
    this.batch = new SendBatch(arena);
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
    this.sizes[place] = payload.length + (header === undefined ? 0 : header.length);
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
        place = this.hand(line, this.build(line, place));
      }
    }
  }

  /** Lays out messages for one call, from `place` on; the place of the first datagram that is left. */
  private build(line: Line, place: number): number {
    const { batch } = this;
    let rest = place;
    batch.clear();
    while (rest !== NONE) {
      const bytes = this.sizes[rest] ?? 0;
      if (bytes > LARGEST[line.family]) {
        // In send order: those before it are handed over first.
        if (batch.count > 0) break;
        this.tell(line, rest, 'EMSGSIZE');
      } else if (this.goesAlong(rest, bytes) || this.goesAlone(line, rest, bytes)) {
        batch.put(bytes, this.headers[rest], this.payloads[rest] ?? NOTHING);
      } else {
        break;
      }
      rest = this.next[rest] ?? NONE;
    }
    batch.finish();
    return rest;
  }

  /** Whether a datagram becomes a part of the message that was begun last. */
  private goesAlong(place: number, bytes: number): boolean {
    if (!this.batch.takes(bytes)) return false;
    const first = this.places[this.batch.count - 1] ?? NONE;
    return (
      isSame(this.destinations[place], this.destinations[first]) &&
      isSame(this.sources[place], this.sources[first])
    );
  }

  /** Whether a message that begins with it finds room. */
  private goesAlone(line: Line, place: number, bytes: number): boolean {
    const { batch } = this;
    if (!batch.hasRoom(bytes)) return false;
    this.places[batch.count] = place;
    batch.begin(line, bytes, this.destinations[place], this.sources[place]);
    return true;
  }

  /** Sends what is laid out; the place to go on from, which is `rest` unless something stopped it. */
  private hand(line: Line, rest: number): number {
    const { batch } = this;
    let sent = 0;
    while (sent < batch.count) {
      const took = this.libc.sendmmsg(line.fd, batch.addressOf(sent), batch.count - sent);
      if (took > 0) {
        this.note(sent, took);
        sent += took;
      }
      const errno = took > 0 ? this.whatEnded(line, sent) : errnoName(took);
      if (errno === undefined || errno === 'EINTR') continue;
      const place = this.places[sent] ?? NONE;
      if (this.isRefusedAsTrain(line, sent, errno)) return place;
      const after = this.tellAll(line, place, batch.segments[sent] ?? 1, errno);
      if (line.isHeld) return after;
      sent += 1;
    }
    return rest;
  }

  private note(first: number, count: number): void {
    for (let message = first; message < first + count; message += 1) {
      const segments = this.batch.segments[message] ?? 1;
      if (segments === 1) continue;
      this.figures.trains += 1;
      this.figures.datagramsInTrains += segments;
    }
  }

  /**
   * Whether it may be that the same datagrams go one by one; then no more trains of such are made for this socket. A segment
   * above the path's MTU is not cut to fragments as a single datagram is, and a device or a kernel may know no trains at all.
   */
  private isRefusedAsTrain(line: Line, message: number, errno: Errno): boolean {
    if (this.batch.segments[message] === 1) return false;
    const isTooLarge = errno === 'EINVAL' || errno === 'EMSGSIZE';
    // By this name of its two Node calls EOPNOTSUPP.
    if (!isTooLarge && errno !== 'EIO' && errno !== 'ENOTSUP') return false;
    const bytes = this.sizes[this.places[message] ?? 0] ?? 0;
    line.largestSegment = isTooLarge ? bytes - 1 : 0;
    this.figures.trainsRefused += 1;
    return true;
  }

  /** Why a run ended before a message; undefined where nothing did, or where another call tells. */
  private whatEnded(line: Line, message: number): Errno | undefined {
    const { batch } = this;
    if (message === batch.count || line.kind === 'listener') return undefined;
    if (batch.segments[message] !== 1) return undefined;
    return this.libc.hasRoom(line.fd) ? 'ECONNREFUSED' : 'EAGAIN';
  }

  /** Tells of so many datagrams that did not go, from `place` on; the place of the one after them. */
  private tellAll(line: Line, place: number, count: number, errno: Errno): number {
    let at = place;
    for (let told = 0; told < count; told += 1) {
      this.tell(line, at, line.isHeld ? 'EAGAIN' : errno);
      at = this.next[at] ?? NONE;
    }
    return at;
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

function isSame(one: Address | undefined, other: Address | undefined): boolean {
  if (one === other) return true;
  return one !== undefined && other !== undefined && sameAddress(one, other);
}

function filled<T>(): (T | undefined)[] {
  return Array.from({ length: PLACES }, () => undefined);
}
