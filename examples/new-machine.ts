/** How to make a flow machine and the backends it is lent, as core/README.md shows it. */
import {
  BackendSet,
  createRandom,
  ipv4,
  NO_CLUSTER,
  PLACEMENT_SEED,
  UdpManager,
  type Hash64,
  type TableSeed,
} from '../core/index.ts';

/** The flow machine of one listener: 10,000 flows at most, each for one answer. */
export function newMachine(tableSeed: TableSeed): UdpManager {
  return new UdpManager({
    config: { ...NO_CLUSTER, cluster: 'dns', responses: 1 },
    maxFlows: 10_000,
    maxRxDatagramSize: 1_500,
    placementSeed: PLACEMENT_SEED,
    tableSeed,
  });
}

/** The backends of its cluster: the `backends` of each ClientDatagram. */
export function newBackends(randomSeed: Hash64): BackendSet {
  return new BackendSet({
    loadBalancing: 'HRW',
    loadMetric: 'CONNECTIONS',
    random: createRandom(randomSeed),
    placementSeed: PLACEMENT_SEED,
    backends: [
      { id: 'ns1', address: ipv4(0x0a000002, 53), weight: 100, backup: false },
      { id: 'ns2', address: ipv4(0x0a000003, 53), weight: 100, backup: true },
    ],
  });
}
