/** What the control plane counts of each cluster: a fold over its events and the ends of its probes, as metrics.ts is. */
import type { ControlEvent } from './control-contract.ts';
import type { ProbeOutcome } from './health/probe-contract.ts';
import { LastingSums } from './lasting-sums.ts';

/** Plain numbers. The first two are gauges; the others only grow. */
export interface ClusterCounters {
  availableBackends: number;
  totalBackends: number;
  noAvailableBackends: number;
  availableRecovered: number;
  healthTransitions: number;
  ejections: number;
  probesOk: number;
  probesFailed: number;
  probesSilent: number;
  probesNotTried: number;
}

export interface ClusterMetric {
  /** The reference's name where it has one (spec §9). */
  readonly name: string;
  readonly kind: 'gauge' | 'counter';
  readonly unit: 'backends' | 'events' | 'probes' | 'flows';
  readonly origin: 'sozu' | 'ours';
  readonly help: string;
}

/** `failOpen` is the data planes' to count: `BackendSet.failOpenSelections`. */
export const CLUSTER_CATALOGUE: Readonly<
  Record<keyof ClusterCounters | 'failOpen', ClusterMetric>
> = {
  availableBackends: sozu('cluster.available_backends', 'gauge', 'backends', 'may get new flows'),
  totalBackends: sozu('cluster.total_backends', 'gauge', 'backends', 'configured'),
  noAvailableBackends: sozu('cluster.no_available_backends', 'counter', 'events', 'all down'),
  availableRecovered: sozu('cluster.available_recovered', 'counter', 'events', 'one up again'),
  healthTransitions: sozu('udp.backend.health', 'counter', 'events', 'backends gone up or down'),
  ejections: ours('udp.backend.ejected', 'events', 'backends taken out for what traffic showed'),
  failOpen: sozu('backends.fail_open', 'counter', 'flows', 'given a backend though all are down'),
  probesOk: ours('udp.probes.ok', 'probes', 'answered'),
  probesFailed: ours(
    'udp.probes.failed',
    'probes',
    'refused, failed, or without the answer that was due',
  ),
  probesSilent: ours('udp.probes.silent', 'probes', 'without an answer where none was due'),
  probesNotTried: ours(
    'udp.probes.not_tried',
    'probes',
    'for which this host had no descriptor or route',
  ),
};

export class ClusterMetrics {
  private readonly clusters = new Map<string, ClusterCounters>();
  private readonly lasting = new LastingSums(newClusterCounters, addClusterCounters);

  /** Starts at zero; a cluster that is known goes on. */
  add(cluster: string): void {
    if (this.clusters.has(cluster)) return;
    this.clusters.set(cluster, newClusterCounters());
    this.lasting.begin(cluster);
  }

  remove(cluster: string): void {
    const counters = this.clusters.get(cluster);
    if (counters === undefined) return;
    this.clusters.delete(cluster);
    this.lasting.keep(cluster, { ...counters, availableBackends: 0, totalBackends: 0 });
  }

  /** What was counted of every cluster, where one that came back counts on. Those beyond a bound share `OTHER_NAMES`. */
  get sums(): ReadonlyMap<string, Readonly<ClusterCounters>> {
    return this.lasting.including(this.clusters);
  }

  /** How often a name found no sum of its own. */
  get namesBeyondBound(): number {
    return this.lasting.beyondBound;
  }

  of(cluster: string): Readonly<ClusterCounters> | undefined {
    return this.clusters.get(cluster);
  }

  /** Adds one event. A cluster that is not known is nobody's. */
  fold(event: ControlEvent): void {
    const counters = this.clusters.get(event.cluster);
    if (counters === undefined) return;
    switch (event.kind) {
      case 'HealthChanged':
        counters.healthTransitions += 1;
        break;
      case 'BackendEjected':
        counters.ejections += 1;
        break;
      case 'BackendReturned':
      case 'BackendDraining':
      case 'BackendDrained':
        break;
      case 'Availability':
        counters.availableBackends = event.available;
        counters.totalBackends = event.total;
        break;
      case 'NoAvailableBackends':
        counters.noAvailableBackends += 1;
        break;
      case 'ClusterRecovered':
        counters.availableRecovered += 1;
        break;
    }
  }

  probeEnded(cluster: string, outcome: ProbeOutcome): void {
    const counters = this.clusters.get(cluster);
    if (counters === undefined) return;
    if (outcome === 'ok') counters.probesOk += 1;
    else if (outcome === 'silence') counters.probesSilent += 1;
    else if (outcome === 'not-tried') counters.probesNotTried += 1;
    else counters.probesFailed += 1;
  }
}

function newClusterCounters(): ClusterCounters {
  return {
    availableBackends: 0,
    totalBackends: 0,
    noAvailableBackends: 0,
    availableRecovered: 0,
    healthTransitions: 0,
    ejections: 0,
    probesOk: 0,
    probesFailed: 0,
    probesSilent: 0,
    probesNotTried: 0,
  };
}

function addClusterCounters(sum: ClusterCounters, other: Readonly<ClusterCounters>): void {
  for (const key of Object.keys(other)) if (isClusterCounter(key)) sum[key] += other[key];
}

function isClusterCounter(key: string): key is keyof ClusterCounters {
  return key in CLUSTER_CATALOGUE && key !== 'failOpen';
}

function sozu(
  name: string,
  kind: ClusterMetric['kind'],
  unit: ClusterMetric['unit'],
  help: string,
): ClusterMetric {
  return { name, kind, unit, origin: 'sozu', help };
}

function ours(name: string, unit: ClusterMetric['unit'], help: string): ClusterMetric {
  return { name, kind: 'counter', unit, origin: 'ours', help };
}
