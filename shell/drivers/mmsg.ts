/**
 * The batching driver of Linux: recvmmsg, sendmmsg and epoll through libc.ts. It does what the driver of node:dgram does, and
 * answers from the local address that was asked besides; the difference is what a datagram costs.
 *
 * The sockets are watched by an epoll descriptor of our own, and that one by Node's event loop. In each round of the loop in
 * which it is readable, one look takes what has arrived, up to the slots of the inbox, and is a turn. epoll tells the level,
 * so whatever a look leaves shows in the next.
 */
import {
  isUnspecified,
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
import { BATCH, Inbox, INBOX_BYTES } from './inbox.ts';
import { inodeOfDescriptor } from './inode.ts';
import { SOCKADDR_IN6 } from './libc-layout.ts';
import {
  AF_INET,
  AF_INET6,
  EPOLL_CTL_ADD,
  EPOLL_CTL_MOD,
  EPOLLIN,
  EPOLLOUT,
  errnoName,
  IP_PKTINFO,
  IPPROTO_IP,
  IPPROTO_IPV6,
  IPV6_RECVPKTINFO,
  IPV6_V6ONLY,
  SO_RCVBUF,
  SO_SNDBUF,
  SOCK_CLOEXEC,
  SOCK_DGRAM,
  SOCK_NONBLOCK,
  SOL_SOCKET,
  type Libc,
  type Readiness,
} from './libc.ts';
import { Outbox, OUTBOX_BYTES, type Line, type ListenerLine, type UpstreamLine } from './outbox.ts';
import { monotonicNow, OneTimer } from './timer.ts';

/** Sockets that one look asks epoll for. */
const EVENTS = 256;

const SCRATCH_BYTES = 4_096;

/** The epoll descriptor, which is open while a socket is. */
interface Watch {
  readonly epoll: number;
  readonly readiness: Readiness;
}

export class MmsgDriver implements Ports {
  readonly capabilities: DriverCapabilities = { name: 'mmsg', batch: BATCH, localAddress: true };
  private readonly libc: Libc;
  private readonly arena: Arena;
  private readonly inbox: Inbox;
  private readonly outbox: Outbox;
  private readonly timer: OneTimer;
  /** For arguments of one call. */
  private readonly scratch: number;
  private readonly events: number;
  private readonly look: () => void;
  private arrivals: Arrivals | undefined;
  private readonly listeners = new Map<ListenerId, ListenerLine>();
  private readonly upstreams = new Map<SocketId, UpstreamLine>();
  /** By descriptor. */
  private readonly lines: (Line | undefined)[] = [];
  private watch: Watch | undefined;
  private lookIsDue = false;
  /** Events of the last wait, and how many of them were served: those that found no slot are served first in the next look. */
  private eventCount = 0;
  private served = 0;

  constructor(libc: Libc) {
    const arena = new Arena(libc, INBOX_BYTES + OUTBOX_BYTES + EVENTS * 16 + 2 * SCRATCH_BYTES);
    this.libc = libc;
    this.arena = arena;
    this.inbox = new Inbox(libc, arena);
    this.outbox = new Outbox(libc, arena);
    this.scratch = arena.reserve(SCRATCH_BYTES);
    this.events = arena.reserve(EVENTS * libc.layout.epollEvent.size);
    this.timer = new OneTimer(
      () => this.now(),
      () => {
        this.heard().timer();
        this.heard().endTurn();
      },
    );
    this.look = () => this.lookAtAll();
  }

  /** Says who hears of arrivals. Nothing may arrive before. */
  attach(arrivals: Arrivals): void {
    this.arrivals = arrivals;
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
    const { family } = address;
    const isWildcard = isUnspecified(address);
    const fd = this.open(family, (socket) => this.bindListener(socket, address, wanted));
    if (typeof fd === 'string') return fd;
    const port = this.portBound(fd);
    const line: ListenerLine = { kind: 'listener', id, isWildcard, port, ...channel(fd, family) };
    this.listeners.set(id, line);
    this.lines[fd] = line;
    return undefined;
  }

  closeListener(listener: ListenerId): void {
    const line = this.listeners.get(listener);
    this.listeners.delete(listener);
    this.close(line);
  }

  openUpstream(id: SocketId, backend: Address, source: Address | undefined): Opened {
    const { family } = backend;
    const fd = this.open(family, (socket) => this.connect(socket, backend, source));
    if (typeof fd === 'string') return fd;
    const line: UpstreamLine = { kind: 'upstream', id, ...channel(fd, family) };
    this.upstreams.set(id, line);
    this.lines[fd] = line;
    return undefined;
  }

  closeUpstream(socket: SocketId): void {
    const line = this.upstreams.get(socket);
    this.upstreams.delete(socket);
    this.close(line);
  }

  sendToBackend(socket: SocketId, header: Uint8Array | undefined, payload: Uint8Array): void {
    const line = this.upstreams.get(socket);
    if (line !== undefined) return this.outbox.toBackend(line, header, payload);
    return this.outbox.fail({ direction: 'to-backend', cause: 'error', socket, errno: 'EBADF' });
  }

  sendToClient(
    listener: ListenerId,
    dst: Address,
    from: Address | undefined,
    payload: Uint8Array,
  ): void {
    const line = this.listeners.get(listener);
    if (line !== undefined) return this.outbox.toClient(line, dst, from, payload);
    return this.outbox.fail({ direction: 'to-client', cause: 'error', listener, errno: 'EBADF' });
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
    this.timer.wakeAt(at);
  }

  private heard(): Arrivals {
    if (this.arrivals === undefined) throw new Error('attach() comes before the first open');
    return this.arrivals;
  }

  /** A turn with whatever has arrived. */
  private lookAtAll(): void {
    this.lookIsDue = false;
    const { watch, libc, arena, inbox } = this;
    if (watch === undefined) return;
    if (this.served >= this.eventCount) {
      this.served = 0;
      this.eventCount = libc.epollWait(watch.epoll, arena.address + this.events, EVENTS, 0);
    }
    const { size, events, data } = libc.layout.epollEvent;
    let anything = false;
    for (; this.served < this.eventCount && !inbox.isFull; this.served += 1) {
      const event = this.events + this.served * size;
      // A descriptor that was closed since then, or means another socket by now, finds nothing there: no harm is done.
      const line = this.lines[arena.getInt32(event + data)];
      if (line !== undefined && this.serve(line, arena.getInt32(event + events))) anything = true;
    }
    if (anything) this.heard().endTurn();
    inbox.clear();
  }

  /** Whether there was anything to hear. */
  private serve(line: Line, ready: number): boolean {
    const hasRoom = line.isWatched && (ready & EPOLLOUT) !== 0;
    if (hasRoom) {
      line.isWatched = false;
      this.listenFor(line, EPOLLIN);
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
    const arrivals = this.heard();
    for (let slot = first; slot < first + count; slot += 1) {
      const local = line.isWildcard ? inbox.local(slot, line.port) : undefined;
      arrivals.clientDatagram(line.id, inbox.source(slot), local, inbox.payload(slot, false));
    }
    return count > 0;
  }

  private fromBackend(line: UpstreamLine): boolean {
    const { inbox } = this;
    const first = inbox.next;
    const count = inbox.receiveConnected(line.fd);
    const arrivals = this.heard();
    if (count < 0) {
      if (isNothing(errnoName(count))) return false;
      arrivals.refused(line.id);
      return true;
    }
    for (let slot = first; slot < first + count; slot += 1) {
      arrivals.backendDatagram(line.id, inbox.payload(slot, true));
    }
    return count > 0;
  }

  /** A socket of which `prepare` made what is wanted, watched from now on; or why there is none. */
  private open(family: 4 | 6, prepare: (fd: number) => number): number | Errno {
    const { libc } = this;
    const watch = this.watch ?? this.startWatch();
    if (typeof watch === 'string') return watch;
    const domain = family === 4 ? AF_INET : AF_INET6;
    const fd = libc.socket(domain, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    let failed = fd < 0 ? fd : prepare(fd);
    if (failed >= 0) failed = libc.epollCtl(watch.epoll, EPOLL_CTL_ADD, fd, EPOLLIN);
    if (failed >= 0) return fd;
    if (fd >= 0) libc.close(fd);
    this.endWatchIfIdle();
    return errnoName(failed);
  }

  private bindListener(fd: number, address: Address, wanted: ListenerSocket): number {
    const isIpv6 = address.family === 6;
    let failed = this.setOption(fd, SOL_SOCKET, SO_RCVBUF, wanted.receiveBuffer);
    if (failed >= 0) failed = this.setOption(fd, SOL_SOCKET, SO_SNDBUF, wanted.sendBuffer);
    if (failed >= 0 && isIpv6) {
      failed = this.setOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, wanted.ipv6Only ? 1 : 0);
    }
    if (failed >= 0 && isUnspecified(address)) {
      failed = isIpv6
        ? this.setOption(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
        : this.setOption(fd, IPPROTO_IP, IP_PKTINFO, 1);
    }
    return failed < 0 ? failed : this.bind(fd, address);
  }

  private connect(fd: number, backend: Address, source: Address | undefined): number {
    const { libc, arena, scratch } = this;
    const failed = source === undefined ? 0 : this.bind(fd, { ...source, port: 0 });
    if (failed < 0) return failed;
    const length = arena.writeAddress(scratch, backend.family, backend);
    return libc.connect(fd, arena.address + scratch, length);
  }

  private bind(fd: number, address: Address): number {
    const { libc, arena, scratch } = this;
    const length = arena.writeAddress(scratch, address.family, address);
    return libc.bind(fd, arena.address + scratch, length);
  }

  private setOption(fd: number, level: number, option: number, value: number): number {
    const { libc, arena, scratch } = this;
    arena.setInt32(scratch, value);
    return libc.setsockopt(fd, level, option, arena.address + scratch, 4);
  }

  private portBound(fd: number): number {
    const { libc, arena, scratch } = this;
    arena.setInt32(scratch + 64, SOCKADDR_IN6.size);
    libc.getsockname(fd, arena.address + scratch, arena.address + scratch + 64);
    return arena.readAddress(scratch, undefined).port;
  }

  private close(line: Line | undefined): void {
    if (line === undefined) return;
    this.outbox.close(line);
    this.lines[line.fd] = undefined;
    this.libc.close(line.fd);
    this.endWatchIfIdle();
  }

  private watchForRoom(line: Line | undefined): void {
    if (line === undefined || line.isWatched) return;
    line.isWatched = true;
    this.listenFor(line, EPOLLIN | EPOLLOUT);
  }

  private listenFor(line: Line, events: number): void {
    const { watch } = this;
    if (watch !== undefined) this.libc.epollCtl(watch.epoll, EPOLL_CTL_MOD, line.fd, events);
  }

  private startWatch(): Watch | Errno {
    const epoll = this.libc.epollCreate();
    if (epoll < 0) return errnoName(epoll);
    // The look is a callback of Node's own, so that errors and promises in it are treated as anywhere else.
    const readiness = this.libc.whenReadable(epoll, () => {
      if (!this.lookIsDue) setImmediate(this.look);
      this.lookIsDue = true;
    });
    this.watch = { epoll, readiness };
    return this.watch;
  }

  /** Without a socket there is nothing to wait for, and the process may end. */
  private endWatchIfIdle(): void {
    if (this.watch === undefined || this.socketCount > 0) return;
    this.watch.readiness.close();
    this.libc.close(this.watch.epoll);
    this.watch = undefined;
    this.eventCount = 0;
  }
}

function channel(fd: number, family: 4 | 6): Omit<UpstreamLine, 'kind' | 'id'> {
  return { fd, family, first: -1, last: -1, isHeld: false, isWatched: false };
}

function isNothing(errno: Errno): boolean {
  return errno === 'EAGAIN' || errno === 'EINTR';
}
