/**
 * What the two machines say to each other (law 9): the control plane directs, a data plane reports. Every message carries the
 * generation of the configuration it belongs to. No decision reads the other side's memory.
 */
import type { Address } from './address.ts';
import type { OperatorState } from './balancing/candidates.ts';
import { listenerId, type ListenerId, type RequestId } from './brand.ts';
import type { AccessLogSettings, ClusterSettings, Config, ListenerConfig } from './config.ts';
import type { FlowAnswer, FlowQuery } from './flow-commands.ts';
import type { EndedFlow } from './flow-log.ts';
import { sameValue } from './same-value.ts';
import type { Duration, Instant } from './time.ts';

export type Directive =
  /** A cluster with its backends, new or in place of the one of the same name. Live flows keep what they have. */
  | { readonly kind: 'SetCluster'; readonly settings: ClusterSettings }
  /** Listeners that lead there lead nowhere until there is one of that name again; its backends are gone. */
  | { readonly kind: 'RemoveCluster'; readonly cluster: string }
  | {
      readonly kind: 'AddListener';
      readonly listener: ListenerId;
      readonly config: ListenerConfig;
    }
  /** Other limits, times or cluster for an open listener. Its socket and its live flows stay. */
  | {
      readonly kind: 'UpdateListener';
      readonly listener: ListenerId;
      readonly config: ListenerConfig;
    }
  /** Closes its flows and its socket. What is heard of them later is nobody's. */
  | { readonly kind: 'RemoveListener'; readonly listener: ListenerId }
  /** Whether new flows may go to the backends at `address`. Live flows stay; a cluster that is not known is nobody's. */
  | {
      readonly kind: 'SetHealth';
      readonly cluster: string;
      readonly address: Address;
      readonly healthy: boolean;
    }
  /**
   * What the operator wants of the backends at `address`: active unless said. `change` counts what was said of it, and
   * reports of its flows carry it, so that a late one is known.
   */
  | {
      readonly kind: 'SetBackendState';
      readonly cluster: string;
      readonly address: Address;
      readonly state: OperatorState;
      readonly change: number;
    }
  /** A probe of `address` was answered after `took`: what CONNECTION_TIME compares. */
  | {
      readonly kind: 'SetProbeTime';
      readonly cluster: string;
      readonly address: Address;
      readonly took: Duration;
    }
  /** Which ends of flows are reported from now on; undefined: none. */
  | { readonly kind: 'SetAccessLog'; readonly settings: AccessLogSettings | undefined }
  /** A question of an operator; `Answered` carries the same number. */
  | { readonly kind: 'Query'; readonly request: RequestId; readonly query: FlowQuery }
  /**
   * Soft stop: admit nothing new, let live flows finish until `deadline`, then close. `together`: whoever has none left before
   * that says so, and stays until `Stop`; a socket that leaves a group takes datagrams of the others' flows with it.
   */
  | { readonly kind: 'Drain'; readonly deadline: Instant; readonly together?: boolean }
  /** Hard stop: close everything now. */
  | { readonly kind: 'Stop' };

export interface GeneratedDirective {
  readonly generation: number;
  readonly directive: Directive;
}

export type Report =
  | {
      readonly kind: 'ListenerOpened';
      readonly generation: number;
      readonly listener: ListenerId;
      readonly address: Address;
    }
  | {
      readonly kind: 'ListenerFailed';
      readonly generation: number;
      readonly listener: ListenerId;
      readonly address: Address;
      readonly errno: string;
      /** Tried again this often; `ListenerOpened` says when it worked. Undefined: the failure is final. */
      readonly retry: Duration | undefined;
    }
  /** It was removed, and so many live flows with it. */
  | {
      readonly kind: 'ListenerClosed';
      readonly generation: number;
      readonly listener: ListenerId;
      readonly address: Address;
      readonly flowsClosed: number;
    }
  /** The socket of a live flow heard a refusal. `flow` tells live flows apart. */
  | {
      readonly kind: 'BackendRefused';
      readonly cluster: string;
      readonly address: Address;
      readonly flow: number;
    }
  /**
   * So many client datagrams went to a backend since the last of these, and so many came from it: of clusters whose requests
   * are answered. Of others only that a backend which had refused is heard again.
   */
  | {
      readonly kind: 'BackendTraffic';
      readonly cluster: string;
      readonly address: Address;
      readonly forwarded: number;
      readonly answered: number;
    }
  /** So many flows are left on a draining backend: told at first, when that changed, and when there are none. */
  | {
      readonly kind: 'BackendFlows';
      readonly cluster: string;
      readonly address: Address;
      readonly change: number;
      readonly flows: number;
    }
  /** An assertion of its flow machine failed, a bug of ours: it goes on with another, and without these flows. */
  | {
      readonly kind: 'ListenerRestarted';
      readonly generation: number;
      readonly listener: ListenerId;
      readonly address: Address;
      readonly flowsClosed: number;
      /** What should have been true. */
      readonly claim: string;
    }
  | { readonly kind: 'Answered'; readonly request: RequestId; readonly answer: FlowAnswer }
  /**
   * An upstream socket could not be opened; its flow was aborted, unless another source address served it: that is told only
   * of a source that this machine does not have, and once.
   */
  | {
      readonly kind: 'UpstreamFailed';
      readonly listener: ListenerId;
      readonly errno: string;
      readonly source: Address | undefined;
    }
  /** A flow has ended. Told only while an access log is wanted. */
  | ({ readonly kind: 'FlowEnded' } & EndedFlow)
  /** So many ends were not told since the last `FlowEnded`, and none will follow. */
  | { readonly kind: 'FlowEndsSuppressed'; readonly suppressed: number }
  /** No flow is left, and everything is still open: answers a drain that is to end together with others. */
  | { readonly kind: 'Drained'; readonly generation: number }
  /** Everything is closed, and how many flows the stop cut short. */
  | { readonly kind: 'Stopped'; readonly generation: number; readonly flowsClosed: number };

/** Whoever runs the proxy is told; the control plane does nothing about these. */
type ForPeople = Extract<
  Report,
  {
    kind:
      | 'ListenerClosed'
      | 'ListenerRestarted'
      | 'UpstreamFailed'
      | 'FlowEnded'
      | 'FlowEndsSuppressed';
  }
>;

const FOR_PEOPLE: ReadonlySet<string> = new Set<ForPeople['kind']>([
  'ListenerClosed',
  'ListenerRestarted',
  'UpstreamFailed',
  'FlowEnded',
  'FlowEndsSuppressed',
]);

export function isForPeople(report: Report): report is ForPeople {
  return FOR_PEOPLE.has(report.kind);
}

/** The directives that bring a data plane from nothing to `config`: clusters first, so that no listener opens without. */
export function initialDirectives(config: Config): Directive[] {
  return [
    ...accessLogDirectives(undefined, config.accessLog),
    ...config.clusters.map((settings): Directive => ({ kind: 'SetCluster', settings })),
    ...config.listeners.map((listener, index): Directive => ({
      kind: 'AddListener',
      listener: listenerId(index),
      config: listener,
    })),
  ];
}

/** Nothing where both say the same. */
export function accessLogDirectives(
  old: AccessLogSettings | undefined,
  settings: AccessLogSettings | undefined,
): Directive[] {
  return sameValue(old, settings) ? [] : [{ kind: 'SetAccessLog', settings }];
}
