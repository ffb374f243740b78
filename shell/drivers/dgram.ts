/**
 * The portable driver: node:dgram, one socket per listener and one connected socket per flow. It defines what every other
 * driver must do; it decides nothing.
 *
 * node:dgram sends at once and tells failures in a callback of the same turn, or of a later one when libuv had to queue the
 * datagram. A turn ends in `setImmediate`, after every arrival of one poll of the event loop.
 */
import { createSocket, type Socket } from 'node:dgram';
import {
  assert,
  listenerOf,
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
import { AddressTexts, fromRemote, ipText } from './address-text.ts';
import { inodeOf } from './inode.ts';
import { monotonicNow, OneTimer } from './timer.ts';

type Sent = (error: Error | null) => void;

/** One socket and what its sends in flight need to be told apart. */
interface Channel {
  readonly socket: Socket;
  /** Sends whose callback has not come. */
  outstanding: number;
  /** The turn of the latest send. */
  turn: number;
  /** The latest turn in which a send blocked or was refused. What follows it in that turn blocks, or it would overtake. */
  blockedTurn: number;
  /** Who wants to know of room, if anybody does. */
  watch: (() => void) | undefined;
}

interface ListenerChannel extends Channel {
  readonly texts: AddressTexts;
  readonly sent: Sent;
}

/**
 * A datagram to a backend whose send is not confirmed, which is lent again if it was refused. Flights go round among all
 * flows: the few in use stay in the cache, where one for each flow would not.
 */
interface Flight {
  socket: SocketId;
  channel: Channel | undefined;
  header: Uint8Array | undefined;
  payload: Uint8Array | undefined;
  readonly sent: Sent;
}

export class DgramDriver implements Ports {
  readonly capabilities: DriverCapabilities = { name: 'dgram', batch: 1, localAddress: false };
  private arrivals: Arrivals | undefined;
  private readonly listeners = new Map<ListenerId, ListenerChannel>();
  private readonly upstreams = new Map<SocketId, Channel>();
  private readonly idleFlights: Flight[] = [];
  private readonly failures: SendFailed[] = [];
  private readonly timer: OneTimer;
  private readonly endTurn: () => void;
  private turn = 1;
  private turnIsOpen = false;

  constructor() {
    this.timer = new OneTimer(
      () => this.now(),
      () => {
        this.heard().timer();
      },
    );
    this.endTurn = () => {
      this.turnIsOpen = false;
      this.arrivals?.endTurn();
    };
  }

  /** Says who hears of arrivals. Nothing may arrive before. */
  attach(arrivals: Arrivals): void {
    this.arrivals = arrivals;
  }

  /** The bound address of an open listener: the port the kernel chose for port 0. */
  portOf(listener: ListenerId): number | undefined {
    return this.listeners.get(listener)?.socket.address().port;
  }

  /** How the kernel names an open listener's socket; undefined where it does not tell. */
  inodeOf(listener: ListenerId): number | undefined {
    const channel = this.listeners.get(listener);
    return channel && inodeOf(channel.socket);
  }

  /** Open sockets, listeners included. */
  get socketCount(): number {
    return this.listeners.size + this.upstreams.size;
  }

  now(): Instant {
    return monotonicNow();
  }

  openListener(listener: ListenerId, address: Address, wanted: ListenerSocket): Opened {
    const socket = createSocket({
      type: address.family === 4 ? 'udp4' : 'udp6',
      ipv6Only: wanted.ipv6Only,
      lookup: answerAtOnce,
      recvBufferSize: wanted.receiveBuffer,
      sendBufferSize: wanted.sendBuffer,
    });
    const failed = openNow(socket, () => {
      socket.bind({ port: address.port, address: ipText(address), exclusive: true });
      socket.address();
    });
    if (failed !== undefined) return failed;
    const channel: ListenerChannel = {
      socket,
      texts: new AddressTexts(address.family),
      sent: (error) => this.onListenerSent(listener, channel, error),
      outstanding: 0,
      turn: 0,
      blockedTurn: 0,
      watch: undefined,
    };
    this.listeners.set(listener, channel);
    socket.on('error', (error) => this.heard().lateSendFailure(listener, errnoOf(error)));
    socket.on('message', (payload, remote) => {
      const src = fromRemote(remote.address, remote.port);
      if (src !== undefined) this.heard().clientDatagram(listener, src, undefined, payload);
    });
    return undefined;
  }

  closeListener(listener: ListenerId): void {
    close(this.listeners.get(listener));
    this.listeners.delete(listener);
  }

  openUpstream(id: SocketId, backend: Address, source: Address | undefined): Opened {
    const socket = openConnected(backend, source);
    if (typeof socket === 'string') return socket;
    this.upstreams.set(id, {
      socket,
      outstanding: 0,
      turn: 0,
      blockedTurn: 0,
      watch: undefined,
    });
    socket.on('error', () => this.heard().refused(id));
    socket.on('message', (payload) => this.heard().backendDatagram(id, payload));
    return undefined;
  }

  closeUpstream(id: SocketId): void {
    close(this.upstreams.get(id));
    this.upstreams.delete(id);
  }

  sendToBackend(socket: SocketId, header: Uint8Array | undefined, payload: Uint8Array): void {
    const channel = this.upstreams.get(socket);
    if (channel === undefined) {
      this.failures.push({ direction: 'to-backend', cause: 'error', socket, errno: 'EBADF' });
    } else if (this.mustWait(channel)) {
      this.failures.push({ direction: 'to-backend', cause: 'blocked', socket, header, payload });
    } else {
      channel.outstanding += 1;
      channel.turn = this.turn;
      const flight = this.idleFlights.pop() ?? this.newFlight(socket);
      flight.socket = socket;
      flight.channel = channel;
      flight.header = header;
      flight.payload = payload;
      transmit(channel, flight);
    }
  }

  sendToClient(
    listener: ListenerId,
    dst: Address,
    from: Address | undefined,
    payload: Uint8Array,
  ): void {
    const channel = this.listeners.get(listener);
    if (channel === undefined) {
      this.failures.push({ direction: 'to-client', cause: 'error', listener, errno: 'EBADF' });
    } else if (this.mustWait(channel)) {
      const failure = { direction: 'to-client', cause: 'blocked', listener } as const;
      this.failures.push({ ...failure, dst, from, payload });
    } else {
      channel.outstanding += 1;
      channel.turn = this.turn;
      channel.socket.send(payload, dst.port, channel.texts.of(dst), channel.sent);
    }
  }

  watchUpstream(socket: SocketId): void {
    const channel = this.upstreams.get(socket);
    if (channel === undefined) return;
    channel.watch = () => this.heard().upstreamWritable(socket);
    whenWritable(channel);
  }

  watchListener(listener: ListenerId): void {
    const channel = this.listeners.get(listener);
    if (channel === undefined) return;
    channel.watch = () => this.heard().listenerWritable(listener);
    whenWritable(channel);
  }

  flush(report: (failure: SendFailed) => void): void {
    this.turn += 1;
    for (const failure of this.failures) report(failure);
    this.failures.length = 0;
  }

  wakeAt(at: Instant | undefined): void {
    this.timer.wakeAt(at);
  }

  /** Who hears of an arrival; the turn it begins ends when this poll of the event loop is over. */
  private heard(): Arrivals {
    if (!this.turnIsOpen) {
      this.turnIsOpen = true;
      setImmediate(this.endTurn);
    }
    if (this.arrivals === undefined) throw new Error('attach() comes before the first open');
    return this.arrivals;
  }

  /** Whether libuv holds an earlier datagram of this socket, or did when the turn first asked. */
  private mustWait(channel: Channel): boolean {
    if (isBlocked(channel)) channel.blockedTurn = this.turn;
    return channel.blockedTurn === this.turn;
  }

  private onListenerSent(listener: ListenerId, channel: Channel, error: Error | null): void {
    channel.outstanding -= 1;
    whenWritable(channel);
    if (error === null) return;
    const errno = errnoOf(error);
    if (channel.turn === this.turn) {
      this.failures.push({ direction: 'to-client', cause: 'error', listener, errno });
    } else {
      this.heard().lateSendFailure(listener, errno);
    }
  }

  private newFlight(socket: SocketId): Flight {
    const flight: Flight = {
      socket,
      channel: undefined,
      header: undefined,
      payload: undefined,
      sent: (error) => this.onUpstreamSent(flight, error),
    };
    return flight;
  }

  private onUpstreamSent(flight: Flight, error: Error | null): void {
    const { socket, channel, header, payload } = flight;
    assert(channel !== undefined && payload !== undefined, 'a datagram in flight is known');
    channel.outstanding -= 1;
    flight.channel = undefined;
    flight.header = undefined;
    flight.payload = undefined;
    this.idleFlights.push(flight);
    whenWritable(channel);
    if (error === null) return;
    const errno = errnoOf(error);
    const direction = 'to-backend';
    // A failure known before the flush is that flush's to report; a later one is an arrival of its own.
    if (channel.turn !== this.turn) {
      if (errno === 'ECONNREFUSED') this.heard().refused(socket);
      this.heard().lateSendFailure(listenerOf(socket), errno);
    } else if (errno === 'ECONNREFUSED') {
      channel.blockedTurn = this.turn;
      this.failures.push({ direction, cause: 'refused', socket, header, payload });
    } else {
      this.failures.push({ direction, cause: 'error', socket, errno });
    }
  }
}

/** A socket connected to `peer` when the call returns, from `source` if one is given, or why there is none. */
export function openConnected(peer: Address, source?: Address): Socket | Errno {
  const socket = createSocket({
    type: peer.family === 4 ? 'udp4' : 'udp6',
    lookup: answerAtOnce,
  });
  const failed = openNow(socket, () => {
    // Bound in a step of its own: when the bind inside `connect` fails, node queues the close behind it for ever. It costs no
    // ports: `connect` would bind too, and so a port serves one backend only, either way.
    socket.bind({ port: 0, exclusive: true, ...(source && { address: ipText(source) }) });
    socket.address();
    socket.connect(peer.port, ipText(peer));
    socket.remoteAddress();
  });
  return failed ?? socket;
}

/** Whether libuv still holds an earlier datagram of this socket. Asked of it only when one has not been confirmed. */
function isBlocked(channel: Channel): boolean {
  return channel.outstanding > 0 && channel.socket.getSendQueueCount() > 0;
}

/** Tells whoever watches, once and from a turn of its own, when libuv holds nothing of this socket any more. */
function whenWritable(channel: Channel): void {
  if (channel.watch === undefined || isBlocked(channel)) return;
  setImmediate(() => {
    const { watch } = channel;
    if (watch === undefined || isBlocked(channel)) return;
    channel.watch = undefined;
    watch();
  });
}

function close(channel: Channel | undefined): void {
  if (channel === undefined) return;
  channel.watch = undefined;
  channel.socket.close();
}

function transmit(channel: Channel, { header, payload, sent }: Flight): void {
  assert(payload !== undefined, 'a datagram in flight has a payload');
  if (header === undefined) channel.socket.send(payload, sent);
  else channel.socket.send([header, payload], sent);
}

/**
 * Runs `open`, which must finish within the call, and closes the socket if it did not. A failed bind is told by an event
 * inside the call; a failed connect shows only as a socket without a peer, and its event comes too late to be of use.
 */
function openNow(socket: Socket, open: () => void): Opened {
  let errno: Errno | undefined;
  const note = (error: Error): void => {
    errno ??= errnoOf(error);
  };
  socket.on('error', note);
  try {
    open();
  } catch (error) {
    errno ??= noPeer(error);
  }
  if (errno === undefined) {
    socket.off('error', note);
    return undefined;
  }
  socket.close();
  return errno;
}

/** A connect that failed names its reason too late; what is known in time is that there is no peer. */
function noPeer(error: unknown): Errno {
  const errno = error instanceof Error ? errnoOf(error) : 'EUNKNOWN';
  return errno === 'ERR_SOCKET_DGRAM_NOT_CONNECTED' ? 'ENOTCONN' : errno;
}

/** `EMFILE`, `EADDRINUSE` and so on. */
export function errnoOf(error: Error): Errno {
  return 'code' in error && typeof error.code === 'string' ? error.code : 'EUNKNOWN';
}

/** The core deals in IP literals only, so nothing is looked up, and bind and connect complete within the call. */
function answerAtOnce(
  host: string,
  _options: unknown,
  answer: (error: null, address: string, family: number) => void,
): void {
  answer(null, host, host.includes(':') ? 6 : 4);
}
