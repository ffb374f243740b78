/** What an operator asks of live flows and of selections, and how a data plane answers. Data only. */
import type { Address } from './address.ts';
import type { Explanation } from './balancing/backend-set.ts';
import type { Cidr } from './cidr.ts';
import type { LoadBalancing } from './config.ts';
import type { Backend, Fate } from './contract.ts';
import type { FlowPhase } from './flow.ts';
import type { Duration } from './time.ts';

/** A flow must fit all that is given. */
export interface FlowFilter {
  /** Address of its listener. */
  readonly listener?: Address | undefined;
  /** Name of the cluster it was admitted to. */
  readonly cluster?: string | undefined;
  readonly backend?: Address | undefined;
  /** A block that its client is in. */
  readonly source?: Cidr | undefined;
}

/** Flows in one answer at most. */
export const FLOWS_LISTED_MAX = 10_000;

/** A place in the tables of a data plane: where a list that is asked for in parts goes on. */
export interface FlowCursor {
  /** The number of a listener. */
  readonly listener: number;
  readonly slot: number;
}

export type FlowCommand =
  /**
   * The first `limit` flows that fit, and how many there are. `slots`: looks at so many places of the tables at most, from
   * `from` on, so that a long list never holds the datagrams for long.
   */
  | {
      readonly kind: 'ListFlows';
      readonly filter: FlowFilter;
      readonly limit: number;
      readonly from?: FlowCursor | undefined;
      readonly slots?: number | undefined;
    }
  /** `flow` is a name as `ListFlows` gives it: `3.17` is the flow with number 17 of listener 3. No two flows share one. */
  | { readonly kind: 'ShowFlow'; readonly flow: string }
  | { readonly kind: 'KillFlow'; readonly flow: string }
  /** Where a datagram of this client would go, and why. `local`: where it was sent to, on a wildcard listener. */
  | {
      readonly kind: 'Why';
      readonly listener: Address;
      readonly client: Address;
      readonly local?: Address | undefined;
    };

/** What is asked of a data plane: a command, or what a dry run must know. */
export type FlowQuery = FlowCommand | { readonly kind: 'CountFlows' };

/** A live flow, as an operator sees it. */
export interface FlowLine {
  readonly name: string;
  readonly listener: Address;
  readonly cluster: string;
  readonly client: Address;
  readonly local: Address | undefined;
  readonly backend: Backend;
  readonly phase: Exclude<FlowPhase, 'Closing'>;
  readonly requests: number;
  readonly responses: number;
  readonly age: Duration;
  /** Until it closes, if nothing is heard. */
  readonly idleIn: Duration;
}

export interface FlowCount {
  readonly listener: Address;
  readonly cluster: string;
  readonly backend: Address;
  readonly flows: number;
}

export type FlowAnswer =
  /**
   * `next`: where the list goes on. A flow keeps its place while it lives, so that over all parts each flow that was there
   * all the time is met once.
   */
  | {
      readonly kind: 'Flows';
      readonly flows: readonly FlowLine[];
      readonly matched: number;
      readonly next?: FlowCursor | undefined;
    }
  | { readonly kind: 'Flow'; readonly flow: FlowLine }
  /** As it was before. */
  | { readonly kind: 'Killed'; readonly flow: FlowLine }
  | WhyAnswer
  | { readonly kind: 'FlowCounts'; readonly counts: readonly FlowCount[] }
  | { readonly kind: 'NotFound'; readonly message: string };

export interface WhyAnswer {
  readonly kind: 'Why';
  readonly cluster: string;
  readonly policy: LoadBalancing;
  /** The affinity key, 16 hexadecimal digits (spec §3.2). */
  readonly key: string;
  /** What a client without a flow would be given now. */
  readonly selection: Explanation;
  /** The client has this flow: while its fate is to be kept, that decides and not the selection. */
  readonly pinned: { readonly flow: FlowLine; readonly fate: Fate } | undefined;
  /** Why no datagram of this source is taken, whatever would be chosen. A loop is one only of sources without a flow. */
  readonly dropped: 'Invalid' | 'Denied' | 'Loop' | undefined;
}
