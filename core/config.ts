/**
 * The configuration as the core understands it: checked, complete, in the core's own units. The shell's parser is the only
 * way in; past it nothing re-checks (doc/CONFIGURE.md says what an operator writes).
 */
import type { Address } from './address.ts';
import type { Backend, ClusterConfig } from './contract.ts';
import type { HealthSettings } from './health/settings.ts';
import type { Exchange } from './presets.ts';
import type { Duration } from './time.ts';

export type LoadBalancing =
  'ROUND_ROBIN' | 'RANDOM' | 'LEAST_LOADED' | 'POWER_OF_TWO' | 'HRW' | 'MAGLEV';

/** What LEAST_LOADED and POWER_OF_TWO compare (doc/decisions/0004-balancing.md). */
export type LoadMetric = 'CONNECTIONS' | 'REQUESTS' | 'CONNECTION_TIME';

export interface ListenerConfig {
  readonly address: Address;
  /** Idle time granted by a client datagram, default 30 s. */
  readonly frontTimeout: Duration;
  /** Idle time granted by a backend datagram, default 30 s. */
  readonly backTimeout: Duration;
  /** Largest datagram accepted from a client, bytes. */
  readonly maxRxDatagramSize: number;
  /** Live flows, already resolved from "0 = automatic". */
  readonly maxFlows: number;
  /** Bind `::` without IPv4, because a listener on `0.0.0.0` has the same port. */
  readonly ipv6Only: boolean;
  /** The cluster this listener leads to, by name. */
  readonly cluster: string | undefined;
}

export type ClusterSettings = Omit<ClusterConfig, 'frontTimeout' | 'backTimeout'> & {
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
};

export interface Config {
  readonly listeners: readonly ListenerConfig[];
  readonly clusters: readonly ClusterSettings[];
  /** How long a soft stop lets live flows finish. */
  readonly grace: Duration;
}

/** Defaults of spec §1, and bounds that keep one process in one machine. */
export const LIMITS = {
  frontTimeoutSeconds: 30,
  backTimeoutSeconds: 30,
  maxRxDatagramSize: 1_500,
  bufferSize: 16_393,
  maxConnections: 10_000,
  backendWeight: 100,
  graceSeconds: 5,
  subnetPrefixIpv4: 24,
  subnetPrefixIpv6: 64,
  /** Slots of one flow table: each live flow holds a descriptor, and Linux hands out 1,048,576 at most by default. */
  flowsCeiling: 4_194_304,
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
