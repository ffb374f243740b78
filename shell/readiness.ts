/** Whether this process should be sent traffic: what `/ready` answers. */
import {
  formatAddress,
  type ClusterFigures,
  type Condition,
  type PlaneFigures,
} from '../core/index.ts';

export interface Readiness {
  readonly ready: boolean;
  /** Why not, or what a reader should know although it is. */
  readonly reasons: readonly string[];
}

export interface ReadinessSources {
  readonly condition: Condition;
  readonly figures: {
    /** Those that are open, or should be. */
    readonly listeners: PlaneFigures['listeners'];
    readonly clusters: readonly Pick<ClusterFigures, 'cluster' | 'tier'>[];
  };
}

/**
 * Ready while every listener is bound and one of them leads to a backend that may be chosen. Where all are down and any is
 * tried, that is a way to serve, and told. A process that drains is not ready.
 */
export function readinessOf({ condition, figures }: ReadinessSources): Readiness {
  const { listeners, clusters } = figures;
  const faults: string[] = [];
  if (condition.stopping) faults.push('draining');
  for (const [address, errno] of condition.failures) {
    faults.push(`the listener ${address} is not open: ${errno}`);
  }
  if (listeners.length === 0) faults.push('no listener is open');
  const tiers = listeners.map(({ address, cluster }) => {
    const tier = clusters.find((one) => one.cluster === cluster)?.tier;
    return { name: formatAddress(address), tier: tier ?? 'none' };
  });
  if (listeners.length > 0 && tiers.every(({ tier }) => tier === 'none')) {
    faults.push('no listener leads to a backend that may be chosen');
  }
  const notes = tiers.filter(({ tier }) => tier === 'fail-open' || tier === 'none');
  return {
    ready: faults.length === 0,
    reasons: [
      ...faults,
      ...notes.map(({ name, tier }) =>
        tier === 'none'
          ? `the listener ${name} has no backend for new flows`
          : `no backend of the listener ${name} is available: every one is tried`,
      ),
    ],
  };
}
