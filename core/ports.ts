/**
 * The seam between the core and the world. node:dgram, batched system calls, the simulated operating system and a recorder
 * all stand behind these calls. `ports.laws.ts` says what every driver must keep.
 */
import type { Address } from './address.ts';
import type { ListenerId, SocketId } from './brand.ts';
import type { Instant } from './time.ts';

/** What a driver can do: data to report, never an `if` in the core. */
export interface DriverCapabilities {
  readonly name: string;
  /** Datagrams that one system call can carry. */
  readonly batch: number;
  /** Whether arrivals say which local address they were sent to. */
  readonly localAddress: boolean;
}

/** Failures by the name the operating system gives them (`EMFILE`, `EADDRNOTAVAIL`, …). */
export type Errno = string;

/** The outcome of an open: undefined when it worked. */
export type Opened = Errno | undefined;

/** What a listener's socket is given before it is bound. */
export interface ListenerSocket {
  /** Keeps IPv4 off a listener on `::`. */
  readonly ipv6Only: boolean;
  /** Asked of the kernel, bytes; it grants what it will. */
  readonly receiveBuffer: number;
  readonly sendBuffer: number;
}

/**
 * A datagram that a flush could not hand to the kernel. `blocked`: its socket had no room (EAGAIN), or a send before it was
 * refused; the bytes are lent again, for the call, so that they can wait. `refused`: it met the refusal of an earlier one
 * (ECONNREFUSED) and was not sent; its bytes are lent until the turn is over. `error`: it is lost.
 */
export type SendFailed =
  | {
      readonly direction: 'to-backend';
      readonly cause: 'blocked';
      readonly socket: SocketId;
      readonly header: Uint8Array | undefined;
      readonly payload: Uint8Array;
    }
  | {
      readonly direction: 'to-client';
      readonly cause: 'blocked';
      readonly listener: ListenerId;
      readonly dst: Address;
      readonly from: Address | undefined;
      readonly payload: Uint8Array;
    }
  | {
      readonly direction: 'to-backend';
      readonly cause: 'refused';
      readonly socket: SocketId;
      readonly header: Uint8Array | undefined;
      readonly payload: Uint8Array;
    }
  | {
      readonly direction: 'to-backend';
      readonly cause: 'error';
      readonly socket: SocketId;
      readonly errno: Errno;
    }
  | {
      readonly direction: 'to-client';
      readonly cause: 'error';
      readonly listener: ListenerId;
      readonly errno: Errno;
    };

/** A send that found no room. */
export type SendBlocked = Extract<SendFailed, { cause: 'blocked' }>;

/** A send that was refused in place of an earlier one. */
export type SendRefused = Extract<SendFailed, { cause: 'refused' }>;

/** What a send that met `errno` comes back as, for a driver that knows of every send by itself. */
export function sendFailureOf(datagram: SendBlocked, errno: Errno): SendFailed {
  if (errno === 'EAGAIN') return datagram;
  if (datagram.direction === 'to-client') {
    const { direction, listener } = datagram;
    return { direction, cause: 'error', listener, errno };
  }
  if (errno === 'ECONNREFUSED') return { ...datagram, cause: 'refused' };
  const { direction, socket } = datagram;
  return { direction, cause: 'error', socket, errno };
}

/**
 * What the outside supplies. Calls are synchronous and return facts; failures that show later come back through
 * `Arrivals`. Payloads and headers are borrowed until the turn is over.
 */
export interface Ports {
  readonly capabilities: DriverCapabilities;
  /** Monotonic. The pump reads it once a turn. */
  now(): Instant;
  openListener(listener: ListenerId, address: Address, socket: ListenerSocket): Opened;
  /** Closing what is not open does nothing, here and below: an open may have failed. */
  closeListener(listener: ListenerId): void;
  /** Opens a socket connected to `backend`, bound to `source` if one is given. A failure leaves nothing open. */
  openUpstream(socket: SocketId, backend: Address, source: Address | undefined): Opened;
  closeUpstream(socket: SocketId): void;
  /** `header` and `payload` leave as one datagram. */
  sendToBackend(socket: SocketId, header: Uint8Array | undefined, payload: Uint8Array): void;
  sendToClient(
    listener: ListenerId,
    dst: Address,
    from: Address | undefined,
    payload: Uint8Array,
  ): void;
  /**
   * For a driver that can do more with a train than with its datagrams one by one: `unit` bytes each, the last perhaps fewer.
   * What fails is reported datagram by datagram.
   */
  trainToBackend?(socket: SocketId, payload: Uint8Array, unit: number): void;
  trainToClient?(
    listener: ListenerId,
    dst: Address,
    from: Address | undefined,
    payload: Uint8Array,
    unit: number,
  ): void;
  /** Asks to be told, once and in a later turn, when a socket has room: it blocked, or more waits for it. */
  watchUpstream(socket: SocketId): void;
  watchListener(listener: ListenerId): void;
  /**
   * Hands everything to the kernel, and reports what did not go. After a send that blocked, or that is known to be refused,
   * every later one of its socket blocks until the flush: per socket the blocked ones are an unbroken tail, reported in send
   * order. A turn ends with one flush, or with a second for what is sent again.
   */
  flush(report: (failure: SendFailed) => void): void;
  /** One timer for everything; undefined disarms it. May fire early: the core looks at the time itself. */
  wakeAt(at: Instant | undefined): void;
}

/** What a driver pushes into the pump. A turn ends with `endTurn`; arrivals begin one by themselves. */
export interface Arrivals {
  /** `payload` is lent until `endTurn` returns; its length is the datagram's true length. `src` is never IPv4-mapped. */
  clientDatagram(
    listener: ListenerId,
    src: Address,
    local: Address | undefined,
    payload: Uint8Array,
  ): void;
  backendDatagram(socket: SocketId, payload: Uint8Array): void;
  /**
   * More than one datagram in one piece (train.ts): each has `unit` bytes, but the last, which may have fewer and has some.
   * False: it was not taken, and they are pushed one by one.
   */
  clientTrain(
    listener: ListenerId,
    src: Address,
    local: Address | undefined,
    payload: Uint8Array,
    unit: number,
  ): boolean;
  backendTrain(socket: SocketId, payload: Uint8Array, unit: number): boolean;
  /** The peer of a connected socket refused an earlier datagram (ICMP port unreachable). A hint, never a reason to close. */
  refused(socket: SocketId): void;
  /** A watched socket has room. */
  upstreamWritable(socket: SocketId): void;
  listenerWritable(listener: ListenerId): void;
  /** A send that an earlier flush had accepted failed after all. */
  lateSendFailure(listener: ListenerId, errno: Errno): void;
  /** The timer fired. */
  timer(): void;
  endTurn(): void;
}
