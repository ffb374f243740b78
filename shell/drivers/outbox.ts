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
import { eachDatagram, type Address, type Errno, type SendFailed } from '../../core/index.ts';
import type { Arena } from './arena.ts';
import { NONE, type Line, type ListenerLine, type UpstreamLine } from './channel.ts';
import { errnoName, type Libc } from './libc.ts';
import { Pieces, SEGMENTS, TRAIN_BYTES } from './pieces.ts';
import { SEND_BATCH_BYTES, SendBatch } from './send-batch.ts';

/** The largest payload of UDP over IPv4 and over IPv6. Known here, so that one too many does not end a run. */
const LARGEST = { 4: 65_507, 6: 65_527 } as const;

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
  private readonly arena: Arena;
  private readonly pieces: Pieces;
  private readonly batch: SendBatch;
  /** Lines with sends that wait. What lies beyond their number is left over: to shorten an array costs more than a send. */
  private readonly busy: Line[] = [];
  private busyCount = 0;
  private readonly held: Line[] = [];
  private readonly failures: SendFailed[] = [];

  constructor(libc: Libc, arena: Arena) {
    this.libc = libc;
    this.arena = arena;
    this.pieces = new Pieces(arena);
    this.batch = new SendBatch(arena, this.pieces);
  }

  toBackend(line: UpstreamLine, header: Uint8Array | undefined, payload: Uint8Array): void {
    this.collect(line, header, payload, undefined, undefined);
  }

  toClient(line: ListenerLine, dst: Address, from: Address | undefined, payload: Uint8Array): void {
    this.collect(line, undefined, payload, dst, from);
  }

  /** Datagrams of `unit` bytes each, the last perhaps fewer, to a backend, or to `dst` where the line is a listener's. */
  train(
    line: Line,
    payload: Uint8Array,
    unit: number,
    dst: Address | undefined,
    from: Address | undefined,
  ): void {
    const { pieces } = this;
    if (!pieces.isLent(payload)) {
      return eachDatagram(payload, unit, (one) => this.collect(line, undefined, one, dst, from));
    }
    // A kernel may gather more than another takes at once.
    const most = unit * Math.max(1, Math.min(SEGMENTS, Math.floor(TRAIN_BYTES / unit)));
    for (let at = 0; at < payload.length; at += most) {
      if (pieces.isFull) this.transmitAll();
      const length = Math.min(most, payload.length - at);
      this.append(line, pieces.addTrain(at, length, unit, dst, from));
    }
    return undefined;
  }

  /** A send that failed before it was one, told at the flush like any other. */
  fail(failure: SendFailed): void {
    this.failures.push(failure);
  }

  /** Sends everything and reports what did not go. */
  flush(report: (failure: SendFailed) => void): void {
    this.transmitAll();
    if (this.held.length > 0) {
      for (const line of this.held) line.isHeld = false;
      this.held.length = 0;
    }
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
    const { pieces } = this;
    if (line.first !== NONE && pieces.extend(line, header, payload, dst, from)) return;
    if (pieces.isFull) this.transmitAll();
    this.append(line, pieces.add(header, payload, dst, from));
  }

  /** Behind all that waits for the socket. */
  private append(line: Line, place: number): void {
    const { pieces } = this;
    if (line.first === NONE) {
      line.first = place;
      this.busy[this.busyCount] = line;
      this.busyCount += 1;
    } else {
      pieces.next[line.last] = place;
    }
    line.last = place;
  }

  private transmitAll(): void {
    for (let at = 0; at < this.busyCount; at += 1) {
      const line = this.busy[at];
      if (line !== undefined) this.transmit(line);
    }
    this.busyCount = 0;
    this.pieces.clear();
  }

  private transmit(line: Line): void {
    let place = line.first;
    line.first = NONE;
    if (place !== NONE && this.pieces.isPlain(place) && line.kind === 'upstream' && !line.isHeld) {
      return this.transmitOne(line, place);
    }
    while (place !== NONE) {
      if (line.isHeld) {
        this.tellPiece(line, place);
        place = this.pieces.next[place] ?? NONE;
      } else {
        place = this.hand(line, this.build(line, place));
      }
    }
  }

  /** The one datagram of a flow in a turn, which needs no message around it. */
  private transmitOne(line: UpstreamLine, place: number): void {
    const { pieces, libc, arena } = this;
    const [at, bytes] = [arena.address + (pieces.ats[place] ?? 0), pieces.sizes[place] ?? 0];
    let result = libc.send(line.fd, at, bytes);
    while (result < 0 && errnoName(result) === 'EINTR') result = libc.send(line.fd, at, bytes);
    // As in `hand`.
    if (result < 0 && errnoName(result) === 'EMSGSIZE') result = libc.send(line.fd, at, bytes);
    if (result < 0) this.tell(line, place, 0, errnoName(result));
  }

  /** Lays out messages for one call, from `place` on; the place of the first piece that is left. */
  private build(line: Line, place: number): number {
    const { batch, pieces } = this;
    let rest = place;
    batch.clear();
    while (rest !== NONE) {
      if ((pieces.units[rest] ?? 0) > LARGEST[line.family]) {
        // In send order: those before it are handed over first.
        if (batch.count > 0) break;
        this.tell(line, rest, 0, 'EMSGSIZE');
      } else if (!batch.add(line, rest)) {
        break;
      }
      rest = pieces.next[rest] ?? NONE;
    }
    batch.finish();
    return rest;
  }

  /** Sends what is laid out; the place to go on from, which is `rest` unless a train was refused as such. */
  private hand(line: Line, rest: number): number {
    const { batch } = this;
    let [sent, tried] = [0, NONE];
    while (sent < batch.count) {
      const took = this.libc.sendmmsg(line.fd, batch.addressOf(sent), batch.count - sent);
      if (took > 0) {
        this.note(sent, took);
        sent += took;
      }
      const errno = took > 0 ? this.whatEnded(line, sent) : errnoName(took);
      if (errno === undefined || errno === 'EINTR') continue;
      if (this.isRefusedAsTrain(line, sent, errno)) return batch.places[sent] ?? NONE;
      // It may be told of an earlier one that a router found too long; once, and this one was not tried.
      if (errno === 'EMSGSIZE' && tried !== sent) {
        tried = sent;
        continue;
      }
      do {
        this.tellMessage(line, sent, errno);
        sent += 1;
      } while (line.isHeld && sent < batch.count);
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
    const { batch, pieces } = this;
    if (batch.segments[message] === 1) return false;
    const isTooLarge = errno === 'EINVAL' || errno === 'EMSGSIZE';
    // By this name of its two Node calls EOPNOTSUPP.
    if (!isTooLarge && errno !== 'EIO' && errno !== 'ENOTSUP') return false;
    const bytes = pieces.units[batch.places[message] ?? 0] ?? 0;
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

  /** Tells of every datagram of a message that did not go. */
  private tellMessage(line: Line, message: number, errno: Errno): void {
    const { batch, pieces } = this;
    let place = batch.places[message] ?? NONE;
    let part = batch.parts[message] ?? 0;
    for (let left = batch.segments[message] ?? 1; left > 0; left -= 1) {
      this.tell(line, place, part, line.isHeld ? 'EAGAIN' : errno);
      part += 1;
      if (part < (pieces.counts[place] ?? 1)) continue;
      place = pieces.next[place] ?? NONE;
      part = 0;
    }
  }

  private tellPiece(line: Line, place: number): void {
    const count = this.pieces.counts[place] ?? 1;
    for (let part = 0; part < count; part += 1) this.tell(line, place, part, 'EAGAIN');
  }

  private tell(line: Line, place: number, part: number, errno: Errno): void {
    const { pieces } = this;
    const payload = pieces.payload(place, part);
    const isRefused = errno === 'ECONNREFUSED' && line.kind === 'upstream';
    const cause = errno === 'EAGAIN' ? 'blocked' : 'error';
    if ((isRefused || cause === 'blocked') && !line.isHeld) {
      line.isHeld = true;
      this.held.push(line);
    }
    if (line.kind === 'upstream') {
      const about = { direction: 'to-backend', socket: line.id } as const;
      const header = pieces.headers[place];
      if (isRefused) this.failures.push({ ...about, cause: 'refused', header, payload });
      else if (cause === 'error') this.failures.push({ ...about, cause, errno });
      else this.failures.push({ ...about, cause, header, payload });
      return;
    }
    const about = { direction: 'to-client', listener: line.id } as const;
    const dst = pieces.destinations[place];
    const from = pieces.sources[place];
    if (cause === 'error' || dst === undefined) {
      this.failures.push({ ...about, cause: 'error', errno });
    } else {
      this.failures.push({ ...about, cause, dst, from, payload });
    }
  }
}
