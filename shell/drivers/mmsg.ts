/**
 * The batching driver of Linux: recvmmsg, sendmmsg and epoll through libc.ts. It does what the driver of node:dgram does, and
 * answers from the local address that was asked besides; the difference is what a datagram costs.
 *
 * Whoever owns it calls `turn` again and again, which waits for arrivals, the timer and a wake together: it needs no event
 * loop but blocks one. epoll tells the level, so whatever a turn leaves shows in the next.
 */
import {
  eachDatagram,
  isUnspecified,
  until,
  type Address,
  type Arrivals,
  type DriverCapabilities,
  type Errno,
  type Instant,
  type ListenerId,
  type ListenerSocket,
  type Opened,
  type Ports,
  type SendFailed,
  type SocketId,
} from '../../core/index.ts';
import { Arena } from './arena.ts';
import { ListenerLine, UpstreamLine, type Line } from './channel.ts';
import { BATCH, Inbox, INBOX_BYTES } from './inbox.ts';
import { LineTable } from './line-table.ts';
import { inodeOfDescriptor } from './inode.ts';
import { EPOLLOUT, errnoName, type Libc } from './libc.ts';
import { Outbox, OUTBOX_BYTES, type TrainFigures } from './outbox.ts';
import { Sockets, SOCKETS_BYTES, type Sharing } from './sockets.ts';
import { monotonicNow } from './timer.ts';
import { Watch, WATCH_BYTES } from './watch.ts';

export interface DriverFigures extends Readonly<TrainFigures> {
  /** Of each open listener, the datagrams that found no room in its receive buffer, as last told with one that did. */
  readonly kernelDrops: readonly (readonly [ListenerId, number])[];
}

/** Messages of one receive from which on it is worth a call to ask for trains in one piece. */
const MANY_AT_ONCE = 8;

/** Beyond what any path takes whole: one that takes less says so. */
const SEGMENT_BYTES_MAX = 65_535;

export class MmsgDriver implements Ports {
  readonly capabilities: DriverCapabilities = { name: 'mmsg', batch: BATCH, localAddress: true };
  private readonly libc: Libc;
  private readonly inbox: Inbox;
  private readonly outbox: Outbox;
  private readonly sockets: Sockets;
  private readonly watch: Watch;
  /** Of a new socket. */
  private readonly largestSegment: number;
  private arrivals: Arrivals | undefined;
  private onWake = (): void => undefined;
  private dueAt: Instant | undefined;
  private readonly listeners = new Map<ListenerId, ListenerLine>();
  private readonly upstreams = new LineTable();
  /** What was sent on last. */
  private lastUpstream: UpstreamLine | undefined;
  private lastListener: ListenerLine | undefined;
  private turns = 0;
  /** By descriptor. */
  private readonly lines: (Line | undefined)[] = [];

  /** Throws when the process has no descriptor left. */
  constructor(libc: Libc, sharing: Sharing = {}) {
    const arena = new Arena(libc, INBOX_BYTES + OUTBOX_BYTES + SOCKETS_BYTES + WATCH_BYTES);
    this.libc = libc;
    this.inbox = new Inbox(libc, arena);
    this.outbox = new Outbox(libc, arena);
    this.sockets = new Sockets(libc, arena, sharing);
    this.watch = new Watch(libc, arena);
    this.largestSegment = this.sockets.cutsTrains() ? SEGMENT_BYTES_MAX : 0;
  }

  /** What it counts. */
  get figures(): DriverFigures {
    const kernelDrops = [...this.listeners.values()].map(
      ({ id, kernelDrops: count }) => [id, count] as const,
    );
    return { ...this.outbox.figures, kernelDrops };
  }

  /** Says who hears of arrivals, and of wakes. Nothing may arrive before. */
  attach(arrivals: Arrivals, onWake: () => void = () => undefined): void {
    this.arrivals = arrivals;
    this.onWake = onWake;
  }

  /** An eventfd. Whoever writes eight bytes to it, the number 1, ends a wait; `onWake` is called between turns. */
  get wakeFd(): number {
    return this.watch.wakeFd;
  }

  /** The port an open listener is bound to. */
  portOf(listener: ListenerId): number | undefined {
    return this.listeners.get(listener)?.port;
  }

  /** How the kernel names an open listener's socket; undefined where it does not tell. */
  inodeOf(listener: ListenerId): number | undefined {
    const line = this.listeners.get(listener);
    return line && inodeOfDescriptor(line.fd);
  }

  /** Open sockets, listeners included. */
  get socketCount(): number {
    return this.listeners.size + this.upstreams.size;
  }

  now(): Instant {
    return monotonicNow();
  }

  openListener(id: ListenerId, address: Address, wanted: ListenerSocket): Opened {
    const bound = this.sockets.listener(address, wanted);
    const at = { ...address, port: bound < 0 ? 0 : this.sockets.portOf(bound) };
    const fd = this.watched(bound);
    if (fd < 0) {
      if (bound >= 0) this.sockets.closed(at);
      return errnoName(fd);
    }
    const line = new ListenerLine(fd, this.largestSegment, id, at, isUnspecified(address));
    this.listeners.set(id, line);
    this.lines[fd] = line;
    return undefined;
  }

  closeListener(listener: ListenerId): void {
    const line = this.listeners.get(listener);
    this.listeners.delete(listener);
    this.closeLine(line);
    if (line !== undefined) this.sockets.closed(line.address);
  }

  openUpstream(id: SocketId, backend: Address, source: Address | undefined): Opened {
    const fd = this.watched(this.sockets.upstream(backend, source));
    if (fd < 0) return errnoName(fd);
    const line = new UpstreamLine(fd, backend.family, this.largestSegment, id);
    this.upstreams.add(line);
    this.lines[fd] = line;
    return undefined;
  }

  closeUpstream(socket: SocketId): void {
    const line = this.upstreams.take(socket);
    this.closeLine(line);
  }

  sendToBackend(socket: SocketId, header: Uint8Array | undefined, payload: Uint8Array): void {
    // Runs of a flow need no look-up, and neither do the replies of a listener.
    let line = this.lastUpstream;
    if (line?.id !== socket) line = this.upstreams.get(socket);
    this.lastUpstream = line;
    if (line !== undefined) return this.outbox.toBackend(line, header, payload);
    return this.outbox.fail({ direction: 'to-backend', cause: 'error', socket, errno: 'EBADF' });
  }

  sendToClient(
    listener: ListenerId,
    dst: Address,
    from: Address | undefined,
    payload: Uint8Array,
  ): void {
    let line = this.lastListener;
    if (line?.id !== listener) line = this.listeners.get(listener);
    this.lastListener = line;
    if (line !== undefined) return this.outbox.toClient(line, dst, from, payload);
    return this.outbox.fail({ direction: 'to-client', cause: 'error', listener, errno: 'EBADF' });
  }

  trainToBackend(socket: SocketId, payload: Uint8Array, unit: number): void {
    const line = this.upstreams.get(socket);
    if (line !== undefined) return this.outbox.train(line, payload, unit, undefined, undefined);
    return eachDatagram(payload, unit, (one) => this.sendToBackend(socket, undefined, one));
  }

  trainToClient(
    listener: ListenerId,
    dst: Address,
    from: Address | undefined,
    payload: Uint8Array,
    unit: number,
  ): void {
    const line = this.listeners.get(listener);
    if (line !== undefined) return this.outbox.train(line, payload, unit, dst, from);
    return eachDatagram(payload, unit, (one) => this.sendToClient(listener, dst, from, one));
  }

  watchUpstream(socket: SocketId): void {
    this.watchForRoom(this.upstreams.get(socket));
  }

  watchListener(listener: ListenerId): void {
    this.watchForRoom(this.listeners.get(listener));
  }

  flush(report: (failure: SendFailed) => void): void {
    this.outbox.flush(report);
  }

  wakeAt(at: Instant | undefined): void {
    this.dueAt = at;
  }

  /**
   * Waits until something arrives, the time of `wakeAt` comes or `wakeFd` is written to, and no longer than `waitAtMost`
   * milliseconds, or a second; then there is a turn, if there is anything to hear. It holds no more than the slots of the
   * inbox, so a flood keeps neither the timer nor a wake waiting: what it leaves is there at once in the next.
   */
  turn(waitAtMost: number): void {
    const { watch, inbox } = this;
    this.turns += 1;
    if (!watch.hasEvents) watch.wait(this.patience(waitAtMost));
    let [anything, isWoken] = [false, false];
    while (!inbox.isFull) {
      const fd = watch.take();
      if (fd === undefined) break;
      // A descriptor that was closed since then, or means another socket by now, finds nothing there: no harm is done.
      const line = this.lines[fd];
      if (line !== undefined) anything = this.serve(line, watch.happened) || anything;
      else if (fd === watch.wakeFd) isWoken = true;
    }
    if (this.dueAt !== undefined && this.dueAt <= this.now()) {
      this.dueAt = undefined;
      this.heard().timer();
      anything = true;
    }
    if (anything) this.heard().endTurn();
    inbox.clear();
    if (!isWoken) return;
    // In this order, or a write between the two would be lost.
    watch.rest();
    this.onWake();
  }

  /** Ends what it waits with. Sockets are closed before, each by itself. */
  close(): void {
    this.watch.close();
  }

  /** Whole milliseconds, rounded up: a wait that ended before the time would be followed by waits of no length. */
  private patience(waitAtMost: number): number {
    if (this.dueAt === undefined || waitAtMost <= 0) return waitAtMost;
    return Math.min(waitAtMost, Math.ceil(until(this.now(), this.dueAt) / 1_000));
  }

  private heard(): Arrivals {
    if (this.arrivals === undefined) throw new Error('attach() comes before the first open');
    return this.arrivals;
  }

  /** Whether there was anything to hear. */
  private serve(line: Line, ready: number): boolean {
    const hasRoom = line.isWatched && (ready & EPOLLOUT) !== 0;
    if (hasRoom) {
      line.isWatched = false;
      this.watch.watchRoom(line.fd, false);
      if (line.kind === 'upstream') this.heard().upstreamWritable(line.id);
      else this.heard().listenerWritable(line.id);
    }
    if ((ready & ~EPOLLOUT) === 0) return hasRoom;
    const arrived = line.kind === 'upstream' ? this.fromBackend(line) : this.fromClients(line);
    return arrived || hasRoom;
  }

  private fromClients(line: ListenerLine): boolean {
    const { inbox } = this;
    const first = inbox.next;
    const count = inbox.receiveFromAny(line.fd);
    if (count < 0) {
      const errno = errnoName(count);
      if (isNothing(errno)) return false;
      this.heard().lateSendFailure(line.id, errno);
      return true;
    }
    if (inbox.overflow >= 0) line.kernelDrops = inbox.overflow;
    const arrivals = this.heard();
    for (let slot = first; slot < first + count; slot += 1) {
      const local = line.isWildcard ? inbox.local(slot, line.port) : undefined;
      const source = inbox.source(slot);
      const unit = inbox.unitOf(slot);
      if (unit > 0 && arrivals.clientTrain(line.id, source, local, inbox.train(slot), unit))
        continue;
      const datagrams = inbox.countIn(slot);
      for (let place = 0; place < datagrams; place += 1) {
        arrivals.clientDatagram(line.id, source, local, inbox.datagram(slot, place));
      }
    }
    return count > 0;
  }

  private fromBackend(line: UpstreamLine): boolean {
    const { inbox } = this;
    const first = inbox.next;
    // To look for a second datagram where none is costs as much as half of a first; epoll tells again of one that is left.
    const isRare = line.lastCount === 1 && line.lastTurn < this.turns - 1;
    const count = this.receive(line, isRare);
    line.lastCount = count;
    line.lastTurn = this.turns;
    const arrivals = this.heard();
    if (count < 0) {
      const errno = errnoName(count);
      // A router wants shorter datagrams: the kernel has noted it, and the backend has not refused anything.
      if (isNothing(errno) || errno === 'EMSGSIZE') return false;
      arrivals.refused(line.id);
      return true;
    }
    for (let slot = first; slot < first + count; slot += 1) {
      const unit = inbox.unitOf(slot);
      // Where one train is, another may be: it is not rare.
      if (unit > 0) line.lastCount = MANY_AT_ONCE;
      if (unit > 0 && arrivals.backendTrain(line.id, inbox.train(slot), unit)) continue;
      const datagrams = inbox.countIn(slot);
      for (let place = 0; place < datagrams; place += 1) {
        arrivals.backendDatagram(line.id, inbox.datagram(slot, place));
      }
    }
    return count > 0;
  }

  /** A single receive costs less than one that could say whether it is a train. */
  private receive(line: UpstreamLine, isRare: boolean): number {
    const { inbox } = this;
    if (isRare && !line.takesTrains) return inbox.receiveOne(line.fd);
    const count = inbox.receiveConnected(line.fd, isRare ? 1 : BATCH);
    if (count >= MANY_AT_ONCE && !line.takesTrains) {
      line.takesTrains = true;
      this.sockets.takeTrains(line.fd);
    }
    return count;
  }

  /** A socket that was just made is watched from now on; or it is closed again, and says why. */
  private watched(fd: number): number {
    const failed = fd < 0 ? fd : this.watch.add(fd);
    if (failed >= 0) return fd;
    if (fd >= 0) this.libc.close(fd);
    return failed;
  }

  private closeLine(line: Line | undefined): void {
    if (line === undefined) return;
    this.lastUpstream = undefined;
    this.lastListener = undefined;
    this.outbox.close(line);
    this.lines[line.fd] = undefined;
    this.libc.close(line.fd);
  }

  private watchForRoom(line: Line | undefined): void {
    if (line === undefined || line.isWatched) return;
    line.isWatched = true;
    this.watch.watchRoom(line.fd, true);
  }
}

function isNothing(errno: Errno): boolean {
  return errno === 'EAGAIN' || errno === 'EINTR';
}
