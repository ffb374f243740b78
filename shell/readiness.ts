/** Whether this process should be sent traffic: what `/ready` answers. */
import {
  formatAddress,
  type BackendSet,
  type Condition,
  type ListenerConfig,
} from '../core/index.ts';

export interface Readiness {
  readonly ready: boolean;
  /** Why not, or what a reader should know although it is. */
  readonly reasons: readonly string[];
}

export interface ReadinessSources {
  readonly condition: Condition;
  /** Of the listeners that are open, or should be. */
  readonly configs: readonly Pick<ListenerConfig, 'address' | 'cluster'>[];
  readonly clusters: { backendsOf(cluster: string): Pick<BackendSet, 'tier'> | undefined };
}

/**
 * Ready while every listener is bound and one of them leads to a backend that may be chosen. Where all are down and any is
 * tried, that is a way to serve, and told. A process that drains is not ready.
 */
export function readinessOf({ condition, configs, clusters }: ReadinessSources): Readiness {
  const faults: string[] = [];
  if (condition.stopping) faults.push('draining');
  for (const [address, errno] of condition.failures) {
    faults.push(`the listener ${address} is not open: ${errno}`);
  }
  if (configs.length === 0) faults.push('no listener is open');
  const tiers = configs.map(({ address, cluster }) => {
    const tier = cluster === undefined ? undefined : clusters.backendsOf(cluster)?.tier;
    return { name: formatAddress(address), tier: tier ?? 'none' };
  });
  if (configs.length > 0 && tiers.every(({ tier }) => tier === 'none')) {
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
