/**
 * What can be done to a flow machine, as data. A replay is a list of these: it needs no seed and no chance. References that
 * may dangle (a remembered flow) are indexes modulo what there is, so that removing one action never invalidates another.
 */
import type { LoadBalancing } from '../../core/config.ts';

/** In the place of a fill: the signature of a PROXY header, as far as it fits, then zeros. */
export const HEADER_FILL = 256;

/** The twelve bytes that a PROXY header of version 2 begins with. */
export const SIGNATURE: readonly number[] = [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10];

/** Byte `index` of a payload. */
export function byteOf(payload: Payload, index: number): number {
  return payload.fill === HEADER_FILL ? (SIGNATURE[index] ?? 0) : payload.fill;
}

/** A payload of `length` bytes, each `fill`. */
export interface Payload {
  readonly length: number;
  readonly fill: number;
}

/** A cluster configuration as drawn (spec §11.2). `cluster` −1 means none. */
export interface DrawnCluster {
  readonly cluster: number;
  readonly affinityWithPort: boolean;
  readonly responses: number;
  readonly requests: number;
  readonly frontMs: number;
  readonly backMs: number;
  readonly sendProxyProtocol: boolean;
  readonly everyDatagram: boolean;
  /** 0 = unlimited; the seeds' table knows no others. */
  readonly perIp: number;
  readonly perSubnet: number;
}

/** A flow by an id out of the blue, or by its place among the flows seen lately. */
export type FlowReference =
  | { readonly by: 'id'; readonly id: number }
  | { readonly by: 'memory'; readonly index: number; readonly otherwise: number };

export type ViewChange =
  /** Bit i of `members`: backend i is in the list; of `backups`: as a backup. */
  | { readonly kind: 'List'; readonly members: number; readonly backups: number }
  | { readonly kind: 'Health'; readonly backend: number; readonly healthy: boolean }
  | { readonly kind: 'Restore' };

export type Action =
  | { readonly kind: 'ClientDatagram'; readonly source: number; readonly payload: Payload }
  | { readonly kind: 'BackendView'; readonly change: ViewChange }
  | { readonly kind: 'BackendDatagram'; readonly flow: FlowReference; readonly payload: Payload }
  /** Then the timer is delivered. */
  | { readonly kind: 'AdvanceClock'; readonly ms: number }
  /** The timer is delivered `earlyMs` before its deadline, if it is armed. */
  | { readonly kind: 'EarlyTimer'; readonly earlyMs: number }
  | { readonly kind: 'ReconfigCluster'; readonly config: DrawnCluster }
  | { readonly kind: 'SetMaxFlows'; readonly count: number }
  | { readonly kind: 'AbortFlow'; readonly id: number }
  | { readonly kind: 'SetMaxRx'; readonly bytes: number }
  /** A listener's end and the next one's beginning. */
  | {
      readonly kind: 'Drain';
      readonly source: number;
      readonly payload: Payload;
      readonly next: DrawnCluster;
      readonly cap: number;
    }
  | { readonly kind: 'CloseAll' };

export type ActionKind = Action['kind'];

/** In the order of the seeds' table. */
export const ACTION_KINDS: readonly ActionKind[] = [
  'ClientDatagram',
  'BackendView',
  'BackendDatagram',
  'AdvanceClock',
  'ReconfigCluster',
  'SetMaxFlows',
  'AbortFlow',
  'SetMaxRx',
  'Drain',
  'CloseAll',
  'EarlyTimer',
];

/** Where a run begins. */
export interface InitialState {
  readonly config: DrawnCluster;
  readonly cap: number;
  /** 64 bits in two words. */
  readonly hashSeed: { readonly high: number; readonly low: number };
  readonly policy: LoadBalancing;
  /** Whether LEAST_LOADED and POWER_OF_TWO compare datagrams instead of flows. */
  readonly byRequests: boolean;
  /** Weights of the four backends. */
  readonly weights: readonly number[];
}

export const INITIAL_MAX_RX = 1_500;
/** How long a drained listener waits for its flows. */
export const DRAIN_WAIT_MS = 30_000;
