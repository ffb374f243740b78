/**
 * Words for scenarios: worlds are mostly alike, so a scenario says what is different in its own. Addresses have a plan:
 * proxies are 10.0.0.N and fd00::N, backends 10.0.1.N and fd00:1::N, hosts of clients 10.1.0.N and fd00:2::N, those behind a
 * NAT 192.168.N.x, and the NATs themselves 203.0.113.N.
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
import type { NatSettings } from './nat.ts';
import {
  ECHO,
  type BackendManner,
  type BackendSpec,
  type PhaseTimes,
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

export function backendAddress6(number: number): Address {
  return ipv6([0xfd000001, 0, 0, 1 + number], BACKEND_PORT);
}

export function clientAddress6(host: number, port = 4_000): Address {
  return ipv6([0xfd000002, 0, 0, 1 + host], port);
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
  const {
    frontTimeout: _front,
    backTimeout: _back,
    datagramsPerSecond: _rate,
    datagramsBurst: _burst,
    ...knobs
  } = NO_CLUSTER;
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
    workers: undefined,
    ...rest,
  };
}

/** A link that takes about a millisecond and loses nothing. */
export const QUIET_LINK: LinkFaults = {
  ...FAULTLESS,
  latency: { kind: 'uniform', low: milliseconds(0.2), high: milliseconds(1) },
};

/** A backend that answers what it hears, within a moment. */
export const ECHO_SOON: BackendManner = { ...ECHO, delay: milliseconds(0.3) };

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
      manner: { ...ECHO_SOON, ...manner },
    })),
  };
}

/** Clients of private addresses, some on each of their hosts, behind NATs of these kinds. */
export function nattedOf(
  kinds: readonly Omit<NatSettings, 'ip'>[],
  { hosts, clientsPerHost }: { readonly hosts: number; readonly clientsPerHost: number },
): Pick<WorldSpec, 'nats' | 'clientHosts' | 'clients'> {
  const places = kinds.flatMap((_, nat) =>
    Array.from({ length: hosts }, (__, host) => ({ nat, host })),
  );
  return {
    nats: kinds.map((kind, nat) => ({ ...kind, ip: natAddress(nat) })),
    clientHosts: places.map(({ nat, host }) => ({ ips: [privateAddress(nat, host)], nat })),
    clients: places.flatMap(({ nat, host: own }, host) =>
      Array.from({ length: clientsPerHost }, (_, number) => ({
        host,
        address: privateAddress(nat, own, 4_000 + number),
      })),
    ),
  };
}

/** A quiet world with what is given: at least its proxies. */
export function worldOf(
  population: Population,
  given: Pick<WorldSpec, 'proxies'> & Partial<WorldSpec>,
): WorldSpec {
  return {
    phases: SHORT_PHASES,
    link: QUIET_LINK,
    withinTolerance: true,
    ...populationOf(population),
    ...given,
  };
}

/** Phases of so many milliseconds. */
export function phasesOf(calm: number, chaos: number, heal: number, drain: number): PhaseTimes {
  return {
    calm: milliseconds(calm),
    chaos: milliseconds(chaos),
    heal: milliseconds(heal),
    drain: milliseconds(drain),
  };
}

/** The phases of most worlds: some seconds in all. */
export const SHORT_PHASES: PhaseTimes = phasesOf(400, 1_500, 800, 4_500);
