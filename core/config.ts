/**
 * The configuration as the core understands it: checked, complete, in the core's own units. The shell's parser is the only
 * way in; past it nothing re-checks (doc/CONFIGURE.md says what an operator writes).
 */
import type { Address } from './address.ts';
import { NO_CLUSTER, type Backend, type ClusterConfig } from './contract.ts';
import type { HealthSettings } from './health/settings.ts';
import type { Cidr } from './cidr.ts';
import type { Exchange } from './presets.ts';
import type { Duration } from './time.ts';

/** The plainest first. */
export const LOAD_BALANCINGS = [
  'ROUND_ROBIN',
  'RANDOM',
  'LEAST_LOADED',
  'POWER_OF_TWO',
  'HRW',
  'MAGLEV',
] as const;

export type LoadBalancing = (typeof LOAD_BALANCINGS)[number];

/** What LEAST_LOADED and POWER_OF_TWO compare (doc/decisions/0004-balancing.md). */
export type LoadMetric = 'CONNECTIONS' | 'REQUESTS' | 'CONNECTION_TIME';

export interface ListenerConfig {
  readonly address: Address;
  /** Idle time granted by a client datagram. Undefined: the cluster's, else 30 s. */
  readonly frontTimeout: Duration | undefined;
  /** Idle time granted by a backend datagram. */
  readonly backTimeout: Duration | undefined;
  /** Largest datagram accepted from a client, bytes. */
  readonly maxRxDatagramSize: number;
  /** Live flows, already resolved from "0 = automatic". */
  readonly maxFlows: number;
  /** Bind `::` without IPv4, because a listener on `0.0.0.0` has the same port. */
  readonly ipv6Only: boolean;
  /** The cluster this listener leads to, by name. */
  readonly cluster: string | undefined;
  /** Asked of the kernel for the socket, bytes; it grants what it will. Undefined: LIMITS.socketBuffer. */
  readonly receiveBuffer?: number | undefined;
  readonly sendBuffer?: number | undefined;
  /** Keep trying to bind this often, for an address that comes later; without, a failure is final. */
  readonly bindRetry?: Duration | undefined;
}

/** What becomes of live flows whose backend is lost; `close` does not wait for the next datagram. */
export type OnBackendLoss = 'pin' | 'rebind' | 'close';

/** Limits on sources, each off when 0 or empty. Established flows never meet the sketches. */
export interface SourceRates {
  /** Flows that one address may open each second, and at once. */
  readonly newFlowsPerSecond: number;
  readonly newFlowsBurst: number;
  /** Datagrams each second, and at once: of a flow, and of an address for those that have none yet. */
  readonly datagramsPerSecond: number;
  readonly datagramsBurst: number;
  /** Columns of each sketch, a power of two: more for more sources at a time (see token-sketch.ts). */
  readonly columns: number;
  readonly allow: readonly Cidr[];
  readonly deny: readonly Cidr[];
}

export const NO_SOURCE_RATES: SourceRates = {
  newFlowsPerSecond: 0,
  newFlowsBurst: 0,
  datagramsPerSecond: 0,
  datagramsBurst: 0,
  columns: 16_384,
  allow: [],
  deny: [],
};

export type ClusterSettings = Omit<
  ClusterConfig,
  'frontTimeout' | 'backTimeout' | 'datagramsPerSecond' | 'datagramsBurst'
> & {
  readonly loadBalancing: LoadBalancing;
  readonly loadMetric: LoadMetric;
  /** Serve a client whose address is a backend's: an old NTP server asks others from port 123. */
  readonly allowBackendAsClient: boolean;
  readonly backends: readonly Backend[];
  /** Without: nobody probes, and every backend counts as up. */
  readonly health?: HealthSettings | undefined;
  /** Whether a backend answers each request. Undefined: nobody said, and missing answers are no evidence. */
  readonly exchange?: Exchange | undefined;
  /** Whether refusals and missing answers take a backend out for a while; true unless given. */
  readonly passive?: boolean | undefined;
  /** For the flows of listeners that name no times of their own. */
  readonly frontTimeout?: Duration | undefined;
  readonly backTimeout?: Duration | undefined;
  /** Default: `pin`. */
  readonly onBackendDown: OnBackendLoss;
  /** Default: `rebind`. */
  readonly onBackendRemoved: OnBackendLoss;
  /** Local addresses for upstream sockets, port 0, tried in turn; none: the kernel chooses. */
  readonly upstreamSources: readonly Address[];
  readonly rates: SourceRates;
};

/** What a cluster does where its file is silent, as the seeds have it (decisions table). */
export const CLUSTER_DEFAULTS: Pick<
  ClusterSettings,
  | 'onBackendDown'
  | 'onBackendRemoved'
  | 'upstreamSources'
  | 'rates'
  | 'responsesPerRequest'
  | 'requestsLinger'
  | 'lateReplyGrace'
  | 'forwardEmptyDatagrams'
  | 'amplification'
> = {
  responsesPerRequest: NO_CLUSTER.responsesPerRequest,
  requestsLinger: NO_CLUSTER.requestsLinger,
  lateReplyGrace: NO_CLUSTER.lateReplyGrace,
  forwardEmptyDatagrams: NO_CLUSTER.forwardEmptyDatagrams,
  amplification: NO_CLUSTER.amplification,
  onBackendDown: 'pin',
  onBackendRemoved: 'rebind',
  upstreamSources: [],
  rates: NO_SOURCE_RATES,
};

/** Which ends of flows are told. */
export interface AccessLogSettings {
  /** One flow in so many, from 1: the choice is made by the flow's own number. */
  readonly oneIn: number;
  /** Of the others, no more than this in a second; how many were left out is told with the next. From 1. */
  readonly linesPerSecond: number;
}

export interface Config {
  readonly listeners: readonly ListenerConfig[];
  readonly clusters: readonly ClusterSettings[];
  /** How long a soft stop lets live flows finish. */
  readonly grace: Duration;
  /** Undefined: no end of a flow is told. */
  readonly accessLog?: AccessLogSettings | undefined;
}

/** Defaults of spec §1, and bounds that keep one process in one machine. */
export const LIMITS = {
  frontTimeoutSeconds: 30,
  backTimeoutSeconds: 30,
  maxRxDatagramSize: 1_500,
  bufferSize: 16_393,
  maxConnections: 10_000,
  backendWeight: 100,
  backendWeightMax: 255,
  graceSeconds: 5,
  subnetPrefixIpv4: 24,
  subnetPrefixIpv6: 64,
  /** Slots of one flow table: each live flow holds a descriptor, and Linux hands out 1,048,576 at most by default. */
  flowsCeiling: 4_194_304,
  /** Asked of the kernel for listeners, bytes; it grants at most net.core.rmem_max. */
  socketBuffer: 4_194_304,
  /** Sampling and lines a second of an access log. */
  accessLogCount: 1_000_000,
} as const;

/** Live flows that a listener with `max_flows = 0` gets (spec §6.6): 70 % of the descriptors, at most `max_connections`. */
export function automaticMaxFlows(
  descriptorLimit: number | undefined,
  maxConnections: number,
): number {
  const share =
    descriptorLimit === undefined ? 1_024 : Math.max(1, Math.floor((descriptorLimit * 7) / 10));
  return maxConnections === 0 ? share : Math.min(share, Math.max(1, maxConnections));
}

/** `max_flows` as configured, or the automatic value for 0; never above what one table can hold. */
export function effectiveMaxFlows(
  configured: number,
  descriptorLimit: number | undefined,
  maxConnections: number,
): number {
  const wanted = configured === 0 ? automaticMaxFlows(descriptorLimit, maxConnections) : configured;
  return Math.min(wanted, LIMITS.flowsCeiling);
}

/** The receive limit within the global buffer size; `bufferSize` 0 = no clamp (spec §1.2, §12.3). */
export function clampMaxRx(maxRxDatagramSize: number, bufferSize: number): number {
  return bufferSize === 0 ? maxRxDatagramSize : Math.min(maxRxDatagramSize, bufferSize);
}
