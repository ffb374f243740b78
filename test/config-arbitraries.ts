/** Random configurations, small enough that two of them often share listeners, clusters and backends. */
import * as fc from 'fast-check';
import type { ConfigCommand } from '../core/commands.ts';
import type { ClusterSettings, Config, ListenerConfig, LoadBalancing } from '../core/config.ts';
import type { Backend } from '../core/contract.ts';
import { healthSettings } from '../core/health/settings.ts';
import { knobsOf } from '../core/reconcile.ts';
import { seconds } from '../core/time.ts';
import { addressOf, clusterSettings, listenerConfig } from './plane-bench.ts';

export const CLUSTERS = ['c', 'd', 'e'] as const;
const LISTENERS = [1, 2, 3, 4] as const;
const BACKENDS = [1, 2, 3, 4] as const;

function listenerAddress(number: number): ListenerConfig['address'] {
  return addressOf(`10.0.1.${number}:53`);
}

function backendAddress(number: number): Backend['address'] {
  return addressOf(`10.0.0.${number}:53`);
}

/** Two ids at one address, and one id at two, are among them. */
const backends: fc.Arbitrary<Backend> = fc
  .record({
    id: fc.constantFrom('b', 'x'),
    number: fc.constantFrom(...BACKENDS),
    weight: fc.constantFrom(0, 1, 100),
    backup: fc.boolean(),
  })
  .map(({ number, ...rest }) => ({ ...rest, address: backendAddress(number) }));

const listeners: fc.Arbitrary<ListenerConfig> = fc
  .record({
    number: fc.constantFrom(...LISTENERS),
    cluster: fc.constantFrom(...CLUSTERS, undefined),
    maxFlows: fc.constantFrom(2, 4, 16),
    maxRxDatagramSize: fc.constantFrom(8, 1_500),
    frontTimeout: fc.constantFrom(undefined, seconds(5), seconds(30)),
    ipv6Only: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, fc.constant(true)),
    receiveBuffer: fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, fc.constant(9_000)),
  })
  .map(({ number, ...rest }) => listenerConfig({ ...rest, address: listenerAddress(number) }));

const clusters: fc.Arbitrary<ClusterSettings> = fc
  .record({
    cluster: fc.constantFrom(...CLUSTERS),
    loadBalancing: fc.constantFrom<LoadBalancing[]>('ROUND_ROBIN', 'HRW', 'MAGLEV'),
    requests: fc.nat(2),
    health: fc.option(fc.constantFrom(1, 2), { nil: undefined }),
    backends: fc.array(backends, { maxLength: 6 }),
  })
  .map(({ health, ...rest }) =>
    clusterSettings({
      ...rest,
      health: health === undefined ? undefined : healthSettings({ rise: health }),
    }),
  );

const accessLogs = fc.constantFrom(
  undefined,
  { oneIn: 1, linesPerSecond: 10 },
  { oneIn: 7, linesPerSecond: 1 },
);

export const configs: fc.Arbitrary<Config> = fc.record({
  listeners: fc.uniqueArray(listeners, { selector: (one) => one.address.a }),
  clusters: fc.uniqueArray(clusters, { selector: ({ cluster }) => cluster }),
  grace: fc.constantFrom(seconds(1), seconds(5)),
  accessLog: accessLogs,
});

const address = fc.constantFrom(...LISTENERS).map(listenerAddress);
const cluster = fc.constantFrom(...CLUSTERS);
const target = fc.record({
  cluster,
  address: fc.constantFrom(...BACKENDS).map(backendAddress),
});

/** Any change of a configuration, often one that is refused. */
export const anyCommand: fc.Arbitrary<ConfigCommand> = fc.oneof(
  listeners.map((config) => ({ kind: 'AddListener' as const, config })),
  fc.record({
    kind: fc.constant('UpdateListener' as const),
    address,
    patch: listeners,
  }),
  fc.record({
    kind: fc.constantFrom(
      'RemoveListener' as const,
      'ActivateListener' as const,
      'DeactivateListener' as const,
    ),
    address,
  }),
  fc.record({
    kind: fc.constantFrom('AddFrontend' as const, 'RemoveFrontend' as const),
    cluster,
    address,
  }),
  clusters.map((settings) => ({ kind: 'AddCluster' as const, settings: knobsOf(settings) })),
  fc.record({ kind: fc.constant('RemoveCluster' as const), cluster }),
  fc.record({ kind: fc.constant('AddBackend' as const), cluster, backend: backends }),
  target.map((at) => ({ kind: 'RemoveBackend' as const, ...at })),
  fc
    .tuple(target, fc.constantFrom(-1, 0, 7))
    .map(([at, weight]) => ({ kind: 'SetWeight' as const, ...at, weight })),
  fc.record({
    kind: fc.constant('SetBackends' as const),
    cluster,
    backends: fc.array(backends, { maxLength: 4 }),
  }),
  fc.record({
    kind: fc.constant('SetGrace' as const),
    grace: fc.constantFrom(seconds(1), seconds(2)),
  }),
  accessLogs.map((settings) => ({ kind: 'SetAccessLog' as const, settings })),
);
