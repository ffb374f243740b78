/** The words that pass in and out of a data plane. Data only; a trace is a list of these. */
import type { Address } from './address.ts';
import type { ListenerId, SocketId } from './brand.ts';
import type { Hash64 } from './hash.ts';
import type { TableSeed } from './keyed-hash.ts';
import type { GeneratedDirective, Report } from './directives.ts';
import type { Errno, ListenerSocket, SendFailed } from './ports.ts';
import type { Instant } from './time.ts';

export interface PlaneOptions {
  readonly placementSeed: Hash64;
  /** Secret; see keyed-hash.ts. */
  readonly tableSeed: TableSeed;
  /** For RANDOM and POWER_OF_TWO. */
  readonly randomSeed: Hash64;
  /** Addresses of this machine, ports ignored: a datagram from one of our listeners there is not a client's. */
  readonly hosts?: readonly Address[];
  /** Flows that one turn may close because their backend is lost; 256 unless given. */
  readonly closesPerTurn?: number | undefined;
  /**
   * Listeners that may be started afresh in a minute, each after an assertion of its flow machine failed. None unless given:
   * then whoever drives the machine hears of each failure.
   */
  readonly restartsPerMinute?: number | undefined;
}

export type PlaneInput =
  | {
      readonly kind: 'ClientArrived';
      readonly listener: ListenerId;
      readonly src: Address;
      readonly local: Address | undefined;
      readonly payload: Uint8Array;
    }
  | { readonly kind: 'BackendArrived'; readonly socket: SocketId; readonly payload: Uint8Array }
  | { readonly kind: 'Refused'; readonly socket: SocketId }
  /**
   * An upstream socket did not open. The driver has not seen `unsent` datagrams of its flow: they go out if the same socket
   * is opened again in answer to this, and else they are lost.
   */
  | {
      readonly kind: 'OpenFailed';
      readonly socket: SocketId;
      readonly backend: Address;
      readonly source: Address | undefined;
      readonly errno: Errno;
      readonly unsent: number;
    }
  | {
      readonly kind: 'ListenerAnswer';
      readonly listener: ListenerId;
      readonly errno: Errno | undefined;
    }
  | { readonly kind: 'SendFailed'; readonly failure: SendFailed }
  /** A socket that was watched has room. */
  | { readonly kind: 'UpstreamWritable'; readonly socket: SocketId }
  | { readonly kind: 'ListenerWritable'; readonly listener: ListenerId }
  | { readonly kind: 'LateSendFailure'; readonly listener: ListenerId }
  /** A flush is over and all its failures were told. If that brings more to send, another follows in the same turn. */
  | { readonly kind: 'Flushed' }
  | { readonly kind: 'Directed'; readonly message: GeneratedDirective };

/** Datagrams that came as one piece (train.ts). */
export type PlaneTrain =
  | {
      readonly kind: 'ClientTrain';
      readonly listener: ListenerId;
      readonly src: Address;
      readonly local: Address | undefined;
      readonly payload: Uint8Array;
      readonly unit: number;
    }
  | {
      readonly kind: 'BackendTrain';
      readonly socket: SocketId;
      readonly payload: Uint8Array;
      readonly unit: number;
    };

export type PlaneOutput =
  | {
      readonly kind: 'OpenListener';
      readonly listener: ListenerId;
      readonly address: Address;
      readonly socket: ListenerSocket;
    }
  | { readonly kind: 'CloseListener'; readonly listener: ListenerId }
  | {
      readonly kind: 'OpenUpstream';
      readonly socket: SocketId;
      readonly backend: Address;
      /** The local address, port 0; undefined: the kernel chooses. */
      readonly source: Address | undefined;
    }
  /** In place of an open that is known to fail: answered as if it had been tried. */
  | {
      readonly kind: 'RefuseUpstream';
      readonly socket: SocketId;
      readonly backend: Address;
      readonly source: Address | undefined;
      readonly errno: Errno;
    }
  | { readonly kind: 'CloseUpstream'; readonly socket: SocketId }
  | {
      readonly kind: 'SendToBackend';
      readonly socket: SocketId;
      readonly header: Uint8Array | undefined;
      readonly payload: Uint8Array;
    }
  | {
      readonly kind: 'SendToClient';
      readonly listener: ListenerId;
      readonly dst: Address;
      readonly from: Address | undefined;
      readonly payload: Uint8Array;
    }
  /** Datagrams of `unit` bytes each, the last perhaps fewer. */
  | {
      readonly kind: 'TrainToBackend';
      readonly socket: SocketId;
      readonly payload: Uint8Array;
      readonly unit: number;
    }
  | {
      readonly kind: 'TrainToClient';
      readonly listener: ListenerId;
      readonly dst: Address;
      readonly from: Address | undefined;
      readonly payload: Uint8Array;
      readonly unit: number;
    }
  /** Tell me, once, when this socket has room. */
  | { readonly kind: 'WatchUpstream'; readonly socket: SocketId }
  | { readonly kind: 'WatchListener'; readonly listener: ListenerId }
  | { readonly kind: 'Report'; readonly report: Report };

/** When the machine wants to be woken, and why. */
export interface Wake {
  readonly at: Instant;
  readonly reason:
    'flow-idle' | 'drain-deadline' | 'sweep' | 'maglev-build' | 'bind-retry' | 'socket-blocked';
}

/** A data plane as its pump sees it: the machine itself, or one that also tells somebody what goes in and out. */
export interface DataMachine {
  handleInput(input: PlaneInput, now: Instant): void;
  /**
   * Takes a train at once, with the effect of its datagrams one after the other. False: nothing has happened, and each of
   * them is an input of its own, for they may differ.
   */
  handleTrain(train: PlaneTrain, now: Instant): boolean;
  handleTimeout(now: Instant): void;
  pollOutput(): PlaneOutput | undefined;
  pollTimeout(): Wake | undefined;
}
