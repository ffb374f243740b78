/**
 * A cluster's backends added up (spec §3.7): how many are available, and the two moments an operator is told of. An empty
 * cluster is never all down: there is nobody to be down.
 */
import type { Availability } from '../balancing/candidates.ts';
import type { Health } from './hysteresis.ts';

/** What counts of one backend: judged up by its probes, not ejected for its traffic, not closing. */
export interface BackendCondition {
  readonly health: Health;
  readonly ejected: boolean;
  readonly closing: boolean;
}

export function evaluateAvailability(backends: readonly BackendCondition[]): Availability {
  return { available: backends.filter(isAvailable).length, total: backends.length };
}

function isAvailable({ health, ejected, closing }: BackendCondition): boolean {
  return health === 'up' && !ejected && !closing;
}

export type ClusterStatus = 'Available' | 'AllDown';

export type RollUpOutput =
  /** `cluster.available_backends` and `cluster.total_backends`. */
  | {
      readonly kind: 'Gauges';
      readonly cluster: string;
      readonly available: number;
      readonly total: number;
    }
  | { readonly kind: 'NoAvailableBackends'; readonly cluster: string; readonly total: number }
  | { readonly kind: 'ClusterRecovered'; readonly cluster: string; readonly available: number };

interface Known {
  availability: Availability;
  /** The outage was told, and its end was not yet. */
  told: boolean;
}

export class RollUp {
  private readonly clusters = new Map<string, Known>();

  /** A cluster exists from now on, empty until recorded. One that is known stays as it is. */
  add(cluster: string): void {
    if (this.clusters.has(cluster)) return;
    this.clusters.set(cluster, { availability: { available: 0, total: 0 }, told: false });
  }

  /** Forgets the cluster; nothing is told, an outage included. */
  remove(cluster: string): void {
    this.clusters.delete(cluster);
  }

  /**
   * The present count of a cluster: its gauges, then the turn of fortune if this is one. An outage is told once, and its
   * end once, however often it is recorded. A cluster that is not known is nobody's.
   */
  record(cluster: string, availability: Availability): readonly RollUpOutput[] {
    const known = this.clusters.get(cluster);
    if (known === undefined) return [];
    const { available, total } = availability;
    known.availability = { available, total };
    const gauges: RollUpOutput = { kind: 'Gauges', cluster, available, total };
    if (!known.told && isAllDown(availability)) {
      known.told = true;
      return [gauges, { kind: 'NoAvailableBackends', cluster, total }];
    }
    // An outage that ends because the backends were taken away has not ended for anybody who waits for the service.
    if (known.told && available > 0) {
      known.told = false;
      return [gauges, { kind: 'ClusterRecovered', cluster, available }];
    }
    return [gauges];
  }

  statusOf(cluster: string): ClusterStatus {
    const known = this.clusters.get(cluster);
    return known !== undefined && isAllDown(known.availability) ? 'AllDown' : 'Available';
  }

  /** As last recorded; nothing for an unknown cluster. */
  availabilityOf(cluster: string): Availability | undefined {
    return this.clusters.get(cluster)?.availability;
  }
}

function isAllDown({ available, total }: Availability): boolean {
  return total > 0 && available === 0;
}
