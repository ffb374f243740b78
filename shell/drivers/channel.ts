/** What the batching driver knows of an open socket. */
import type { ListenerId, SocketId } from '../../core/index.ts';

/** What sends need to know of a socket, and keep there. */
export interface Channel {
  readonly fd: number;
  readonly family: 4 | 6;
  /** Places of its first and its last send that wait; none: negative. */
  first: number;
  last: number;
  /** Datagrams of so many bytes may leave as a train; none: zero. */
  largestSegment: number;
  /** A send blocked or was refused since the last flush: what follows blocks, or it would overtake. */
  isHeld: boolean;
}

export interface ListenerLine extends Channel {
  readonly kind: 'listener';
  readonly id: ListenerId;
  readonly port: number;
  /** Whether arrivals say which local address they were sent to. */
  readonly isWildcard: boolean;
  /** What the kernel said last of datagrams that found no room in its receive buffer. */
  kernelDrops: number;
  isWatched: boolean;
}

export interface UpstreamLine extends Channel {
  readonly kind: 'upstream';
  readonly id: SocketId;
  isWatched: boolean;
}

export type Line = ListenerLine | UpstreamLine;
