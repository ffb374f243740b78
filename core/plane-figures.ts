/**
 * What readers are shown of data planes: plain data, so that it can cross threads, and sums of it, so that several planes are
 * read as one. Whoever shows metrics, status or readiness reads these and never a plane.
 */
import { formatAddress, type Address } from './address.ts';
import { present } from './assert.ts';
import type { OperatorState, Tier } from './balancing/candidates.ts';
import type { ListenerId } from './brand.ts';
import type { Cluster } from './clusters.ts';
import type { ListenerConfig } from './config.ts';
import type { Backend } from './contract.ts';
import type { DataPlane } from './data-plane.ts';
import { addCounters, newCounters, type ListenerCounters } from './metrics.ts';

export interface BackendFigures {
  readonly backend: Backend;
  readonly healthy: boolean;
  readonly state: OperatorState;
  /** Live flows on it, whichever of its configurations they were opened under. */
  readonly flows: number;
}

export interface ClusterFigures {
  readonly cluster: string;
  readonly tier: Tier;
  /** In configuration order. */
  readonly backends: readonly BackendFigures[];
}

/** All counters are cumulative, `flows` and `waiting` are gauges. */
export interface PlaneFigures {
  /** What all listeners counted, those included that are no more. */
  readonly totals: Readonly<ListenerCounters>;
  /** The same by address, those beyond a bound under the name `OTHER_NAMES`. */
  readonly totalsByAddress: ReadonlyMap<string, Readonly<ListenerCounters>>;
  readonly addressesBeyondBound: number;
  /** Of listeners that are there. */
  readonly counters: ReadonlyMap<ListenerId, Readonly<ListenerCounters>>;
  /** Listeners that stay. */
  readonly listeners: readonly Pick<ListenerConfig, 'address' | 'cluster'>[];
  readonly clusters: readonly ClusterFigures[];
  /** Selections made although no backend was available, by cluster, those included that are no more. */
  readonly failOpenSelections: ReadonlyMap<string, number>;
  readonly flows: number;
  /** Datagrams that wait for a socket. */
  readonly waiting: number;
}

/** The figures of one plane as they are now. Counters are the plane's own: to be read, or copied, before its next input. */
export function figuresOf(plane: DataPlane): PlaneFigures {
  const { listeners, clusters } = plane;
  const failOpen = [...clusters.failOpenSelections];
  return {
    totals: listeners.totals,
    totalsByAddress: listeners.totalsByAddress,
    addressesBeyondBound: listeners.addressesBeyondBound,
    counters: new Map(listeners.all.map(({ id, counters }) => [id, counters])),
    listeners: listeners.configs.map(({ address, cluster }) => ({ address, cluster })),
    clusters: clusters.all.map(clusterFigures),
    failOpenSelections: new Map(failOpen.map(([name, { selections }]) => [name, selections])),
    flows: plane.flowCount,
    waiting: plane.waiting,
  };
}

/**
 * Several planes that obey the same directives, as one; at least one. They know the same of backends, each perhaps a message
 * later than another: what is said of those is the first plane's.
 */
export function sumFigures(planes: readonly PlaneFigures[]): PlaneFigures {
  const first = present(planes[0], 'there is at least one plane');
  if (planes.length === 1) return first;
  const sum = (of: (plane: PlaneFigures) => number): number =>
    planes.reduce((total, plane) => total + of(plane), 0);
  return {
    totals: addAll(planes.map(({ totals }) => totals)),
    totalsByAddress: byKey(planes.map(({ totalsByAddress }) => totalsByAddress)),
    // Each plane has seen the same names.
    addressesBeyondBound: first.addressesBeyondBound,
    counters: byKey(planes.map(({ counters }) => counters)),
    listeners: first.listeners,
    clusters: sumClusters(first, planes),
    failOpenSelections: sumNumbers(planes.map(({ failOpenSelections }) => failOpenSelections)),
    flows: sum(({ flows }) => flows),
    waiting: sum(({ waiting }) => waiting),
  };
}

/** Live flows by backend: of a cluster, to an address; 0 for what is not known. */
export function flowsByBackend({
  clusters,
}: PlaneFigures): (cluster: string, address: Address) => number {
  const sums = new Map<string, number>();
  for (const { cluster, backends } of clusters) {
    for (const { backend, flows } of backends) {
      const key = keyOf(cluster, backend.address);
      sums.set(key, flows + (sums.get(key) ?? 0));
    }
  }
  return (cluster, address) => sums.get(keyOf(cluster, address)) ?? 0;
}

function clusterFigures({ settings, backends }: Cluster): ClusterFigures {
  return {
    cluster: settings.cluster,
    tier: backends.tier,
    backends: backends.known.map(({ backend, healthy, state }) => ({
      backend,
      healthy,
      state,
      flows: backends.flowsOn(backend),
    })),
  };
}

function addAll(all: Iterable<Readonly<ListenerCounters>>): ListenerCounters {
  const sum = newCounters();
  for (const counters of all) addCounters(sum, counters);
  return sum;
}

function byKey<Key>(
  maps: readonly ReadonlyMap<Key, Readonly<ListenerCounters>>[],
): Map<Key, Readonly<ListenerCounters>> {
  const sums = new Map<Key, ListenerCounters>();
  for (const [key, counters] of maps.flatMap((map) => [...map])) {
    const sum = sums.get(key) ?? newCounters();
    addCounters(sum, counters);
    sums.set(key, sum);
  }
  return sums;
}

function sumNumbers(maps: readonly ReadonlyMap<string, number>[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const [name, value] of maps.flatMap((map) => [...map])) {
    sums.set(name, value + (sums.get(name) ?? 0));
  }
  return sums;
}

/** A plane that is a message late may have others in its list. */
function sumClusters(first: PlaneFigures, planes: readonly PlaneFigures[]): ClusterFigures[] {
  const flowsIn = planes.map(flowsByBackend);
  return first.clusters.map(({ cluster, tier, backends }) => ({
    cluster,
    tier,
    backends: backends.map((one) => ({
      ...one,
      flows: flowsIn.reduce((sum, flowsAt) => sum + flowsAt(cluster, one.backend.address), 0),
    })),
  }));
}

function keyOf(cluster: string, address: Address): string {
  return `${cluster} ${formatAddress(address)}`;
}
