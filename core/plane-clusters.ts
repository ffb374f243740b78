/** Clusters of a data plane that come, change and go: whoever serves by them hears of it. */
import type { Clusters } from './clusters.ts';
import type { Directive } from './directives.ts';
import type { LoopGuard } from './loop-guard.ts';
import type { Losses } from './losses.ts';
import type { Listeners } from './plane-listeners.ts';
import type { Instant } from './time.ts';

export interface PlaneClustersOptions {
  readonly clusters: Clusters;
  readonly listeners: Listeners;
  readonly losses: Losses;
  readonly loops: LoopGuard;
}

export class PlaneClusters {
  private readonly parts: PlaneClustersOptions;
  /** Addresses are learned once a turn, however many directives it brought. */
  private addressesChanged = false;

  constructor(parts: PlaneClustersOptions) {
    this.parts = parts;
  }

  obey(
    directive: Extract<Directive, { kind: 'SetCluster' | 'RemoveCluster' }>,
    now: Instant,
  ): void {
    const { clusters, listeners, losses } = this.parts;
    this.listenersChanged();
    if (directive.kind === 'RemoveCluster') {
      losses.judge(clusters.remove(directive.cluster), now);
      return listeners.clusterChanged(directive.cluster, now);
    }
    losses.judge(clusters.set(directive.settings), now);
    return listeners.clusterChanged(directive.settings.cluster, now);
  }

  /** Addresses of ours came or went. */
  listenersChanged(): void {
    this.addressesChanged = true;
  }

  /** The turn is over. */
  flushed(): void {
    if (!this.addressesChanged) return;
    this.addressesChanged = false;
    const { loops, listeners, clusters } = this.parts;
    loops.learn(listeners.configs, clusters.all);
  }
}
