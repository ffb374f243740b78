/**
 * What can be done to a flow machine, as data. A replay is a list of these: it needs no seed and no chance. References that
 * may dangle (a remembered flow) are indexes modulo what there is, so that removing one action never invalidates another.
 */
import type { LoadBalancing, OnBackendLoss } from '../../core/config.ts';
import type { Refusal } from '../../core/contract.ts';

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
  /** Missing: the cluster asks for none of them. */
  readonly terms?: DrawnTerms | undefined;
}

/** What a cluster may ask for beyond the seeds' table: accounting of requests and replies, limits on each flow. */
export interface DrawnTerms {
  readonly responsesPerRequest: boolean;
  readonly requestsLinger: boolean;
  readonly graceMs: number;
  readonly forwardEmpty: boolean;
  /** Datagrams each second and at once; a rate of 0 = unlimited. */
  readonly rate: number;
  readonly burst: number;
  /** Reply bytes for each byte of the first datagram, and at least; a factor of 0 = unlimited. */
  readonly creditFactor: number;
  readonly creditFloor: number;
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
  | { readonly kind: 'CloseAll' }
  /** Down, or out of the list; `fate` says what its flows meet while it is lost. */
  | {
      readonly kind: 'LoseBackend';
      readonly backend: number;
      readonly removed: boolean;
      readonly fate: OnBackendLoss;
    }
  /** In the list and up again. */
  | { readonly kind: 'RegainBackend'; readonly backend: number }
  /** Every flow on a backend is closed as lost, as a data plane does eagerly. */
  | { readonly kind: 'SweepBackend'; readonly backend: number }
  /** By the serial that is `back` before the latest one. */
  | { readonly kind: 'KillFlow'; readonly back: number }
  /** Bit i of `hosts`: clients of host i are kept out. */
  | { readonly kind: 'Deny'; readonly hosts: number }
  /** New flows are refused for so long. */
  | { readonly kind: 'Refuse'; readonly refusal: Refusal; readonly ms: number };

export type ActionKind = Action['kind'];

/** The kinds that the seeds' table does not know. */
export type GuardActionKind =
  'LoseBackend' | 'RegainBackend' | 'SweepBackend' | 'KillFlow' | 'Deny' | 'Refuse';

export type GuardAction = Extract<Action, { readonly kind: GuardActionKind }>;

/** In the order of the seeds' table; what it does not know comes after it. */
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
  'LoseBackend',
  'RegainBackend',
  'SweepBackend',
  'KillFlow',
  'Deny',
  'Refuse',
];

export const REFUSALS: readonly Refusal[] = [
  'Loop',
  'NewFlowRate',
  'DatagramRate',
  'NoDescriptor',
  'PortExhausted',
];

/** They divide a million microseconds, so that every moment at which a datagram may come again is a whole one. */
export const RATES: readonly number[] = [0, 1, 2, 4, 5, 8, 10];

export const LOSSES: readonly OnBackendLoss[] = ['pin', 'rebind', 'close'];

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
