/**
 * Words for scenarios: worlds are mostly alike, so a scenario says what is different in its own. Addresses have a plan:
 * proxies are 10.0.0.N and fd00::N, backends 10.0.1.N, hosts of clients 10.1.0.N, those behind a NAT 192.168.N.x.
 */
import { ipv4, ipv6, type Address } from '../../core/address.ts';
import {
  CLUSTER_DEFAULTS,
  LIMITS,
  type ClusterSettings,
  type Config,
  type ListenerConfig,
} from '../../core/config.ts';
import { NO_CLUSTER, type Backend } from '../../core/contract.ts';
import { milliseconds, seconds } from '../../core/time.ts';
import { FAULTLESS, type LinkFaults } from './faults.ts';
import {
  ECHO,
  type BackendManner,
  type BackendSpec,
  type ProxySpec,
  type WorldSpec,
} from './spec.ts';

export const LISTENER_PORT = 53;
export const BACKEND_PORT = 5_300;

export function proxyAddress(number: number): Address {
  return ipv4(0x0a000001 + number, 0);
}

export function proxyAddress6(number: number): Address {
  return ipv6([0xfd000000, 0, 0, 1 + number], 0);
}

export function backendAddress(number: number): Address {
  return ipv4(0x0a000101 + number, BACKEND_PORT);
}

export function clientAddress(host: number, port = 4_000): Address {
  return ipv4(0x0a010001 + host, port);
}

export function privateAddress(nat: number, host: number, port = 4_000): Address {
  return ipv4(0xc0a80001 + nat * 256 + host, port);
}

export function natAddress(number: number): Address {
  return ipv4(0xcb007101 + number, 0);
}

/** Backends 0 to `count` − 1 as a cluster has them. */
export function backendList(count: number): Backend[] {
  return Array.from({ length: count }, (_, number) => backendEntry(number));
}

export function backendEntry(number: number, given: Partial<Backend> = {}): Backend {
  return {
    id: `b${number}`,
    address: backendAddress(number),
    weight: 100,
    backup: false,
    ...given,
  };
}

/** A cluster named `cluster`, with the defaults of a file that says nothing more. */
export function clusterOf(given: Partial<ClusterSettings>): ClusterSettings {
  const { frontTimeout: _front, backTimeout: _back, ...knobs } = NO_CLUSTER;
  return {
    ...knobs,
    ...CLUSTER_DEFAULTS,
    cluster: 'cluster',
    loadBalancing: 'ROUND_ROBIN',
    loadMetric: 'CONNECTIONS',
    allowBackendAsClient: false,
    backends: [],
    frontTimeout: seconds(2),
    backTimeout: seconds(2),
    ...given,
  };
}

export function listenerOf(given: Partial<ListenerConfig>): ListenerConfig {
  return {
    address: { ...proxyAddress(0), port: LISTENER_PORT },
    frontTimeout: undefined,
    backTimeout: undefined,
    maxRxDatagramSize: LIMITS.maxRxDatagramSize,
    maxFlows: 256,
    ipv6Only: false,
    cluster: 'cluster',
    ...given,
  };
}

/** One listener and one cluster. */
export function configOf(
  cluster: Partial<ClusterSettings>,
  listener: Partial<ListenerConfig> = {},
): Config {
  return {
    clusters: [clusterOf(cluster)],
    listeners: [listenerOf(listener)],
    grace: seconds(1),
  };
}

/** Proxy `number` on a host of its own, with a configuration. */
export function proxyOf(
  config: Config,
  given: Partial<ProxySpec> & { readonly number?: number } = {},
): ProxySpec {
  const { number = 0, ...rest } = given;
  return {
    shape: {
      name: `proxy${number}`,
      addresses: [proxyAddress(number), proxyAddress6(number)],
    },
    config,
    randomSeed: { high: 7, low: 11 + number },
    planeDelay: undefined,
    ...rest,
  };
}

/** A link that takes about a millisecond and loses nothing. */
export const QUIET_LINK: LinkFaults = {
  ...FAULTLESS,
  latency: { kind: 'uniform', low: milliseconds(0.2), high: milliseconds(1) },
};

export interface Population {
  readonly clients: number;
  /** Clients on one host. */
  readonly clientsPerHost?: number;
  readonly backends: number;
  readonly manner?: Partial<BackendManner>;
}

/** Clients with public addresses, and backends that are all alike. */
export function populationOf({
  clients,
  clientsPerHost = 8,
  backends,
  manner = {},
}: Population): Pick<WorldSpec, 'nats' | 'clientHosts' | 'clients' | 'backends'> {
  const hosts = Math.max(1, Math.ceil(clients / clientsPerHost));
  return {
    nats: [],
    clientHosts: Array.from({ length: hosts }, (_, host) => ({
      ips: [clientAddress(host)],
      nat: undefined,
    })),
    clients: Array.from({ length: clients }, (_, number) => {
      const host = Math.floor(number / clientsPerHost);
      return { host, address: clientAddress(host, 4_000 + (number % clientsPerHost)) };
    }),
    backends: Array.from({ length: backends }, (_, number): BackendSpec => ({
      address: backendAddress(number),
      manner: { ...ECHO, delay: milliseconds(0.3), ...manner },
    })),
  };
}

/** The phases of most worlds: some seconds in all. */
export const SHORT_PHASES: WorldSpec['phases'] = {
  calm: milliseconds(400),
  chaos: milliseconds(1_500),
  heal: milliseconds(800),
  drain: milliseconds(4_500),
};
