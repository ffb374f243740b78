/** What oracles call the things that pass a plane: lines are flows on a socket, parcels are datagrams on their way out. */
import type { Address } from '../../../core/address.ts';
import type { SocketId } from '../../../core/brand.ts';
import type { ClusterSettings } from '../../../core/config.ts';
import type { ListenerCounters } from '../../../core/metrics.ts';
import type { ProcessNumber } from '../facts.ts';
import type { AddressKey } from '../packet.ts';
import type { ToldCluster, ToldListener } from './told-plane.ts';

/** A flow on one upstream socket: a flow that gets another socket goes on in a new line. */
export interface Line {
  readonly process: ProcessNumber;
  readonly plane: number;
  readonly socket: SocketId;
  readonly listener: ToldListener;
  readonly key: AddressKey;
  readonly client: Address;
  /** Where the client sent to, on a wildcard listener. */
  readonly local: Address | undefined;
  readonly backend: Address;
  /** As they were when the flow was admitted. */
  readonly terms: ClusterSettings;
  readonly cluster: ToldCluster;
  /** Client datagrams that were not dropped, of all lines of the flow. */
  requests: number;
  replies: number;
  /** Bytes of the first datagram, and of the replies until the second came. */
  firstBytes: number;
  repliedBytes: number;
  /** The next datagram has to bear a PROXY header. */
  headerDue: boolean;
  isOpen: boolean;
  /** It takes no requests any more. */
  isSpent: boolean;
  /** What waits for room. */
  queue: Parcel[] | undefined;
}

/** A datagram that a plane took for a client or a backend. */
export interface Parcel {
  readonly line: Line;
  readonly toBackend: boolean;
  readonly bytes: number;
  readonly hash: number;
  readonly hasHeader: boolean;
  readonly headerBytes: number;
  /** In a queue, and with the kernel until the flush. */
  isOffered: boolean;
  /** Whether it was taken at all cannot be told: a rate may have dropped it. */
  readonly isDoubtful: boolean;
}

/** Counters of datagrams that end in a plane. */
export type DropCounter = Extract<keyof ListenerCounters, `dropped${string}`>;

/** A number that follows from the bytes. */
export function hashOf(payload: Uint8Array): number {
  let hash = payload.length;
  for (const byte of payload) hash = (Math.imul(hash, 0x01000193) ^ byte) | 0;
  return hash;
}
