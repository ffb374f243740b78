/**
 * What the batching driver knows of an open socket. Classes, so that every line of a kind has its fields in one order: what is
 * called for each datagram finds them without a look at the object's shape.
 */
import type { Address, ListenerId, SocketId } from '../../core/index.ts';

/** No place, in a list of sends that wait. */
export const NONE = -1;

/** What sends need to know of a socket, and keep there. */
export class Channel {
  readonly fd: number;
  readonly family: 4 | 6;
  /** Places of its first and its last send that wait. */
  first: number = NONE;
  last: number = NONE;
  /** Datagrams of so many bytes may leave as a train; none: zero. */
  largestSegment: number;
  /** A send blocked or was refused since the last flush: what follows blocks, or it would overtake. */
  isHeld = false;
  isWatched = false;

  constructor(fd: number, family: 4 | 6, largestSegment: number) {
    this.fd = fd;
    this.family = family;
    this.largestSegment = largestSegment;
  }
}

export class ListenerLine extends Channel {
  readonly kind = 'listener' as const;
  readonly id: ListenerId;
  /** What it is bound to, and the port of that, which is looked at for each datagram. */
  readonly address: Address;
  readonly port: number;
  /** Whether arrivals say which local address they were sent to. */
  readonly isWildcard: boolean;
  /** What the kernel said last of datagrams that found no room in its receive buffer. */
  kernelDrops = 0;

  /** `address` is what it is bound to. */
  constructor(
    fd: number,
    largestSegment: number,
    id: ListenerId,
    address: Address,
    isWildcard: boolean,
  ) {
    super(fd, address.family, largestSegment);
    this.id = id;
    this.address = address;
    this.port = address.port;
    this.isWildcard = isWildcard;
  }
}

export class UpstreamLine extends Channel {
  readonly kind = 'upstream' as const;
  readonly id: SocketId;
  /** How many messages the last receive brought, a train for many, and in which turn. Before the first: one, long ago. */
  lastCount = 1;
  lastTurn = -1;
  /** Whether a message may be a train. */
  takesTrains = false;

  constructor(fd: number, family: 4 | 6, largestSegment: number, id: SocketId) {
    super(fd, family, largestSegment);
    this.id = id;
  }
}

export type Line = ListenerLine | UpstreamLine;
