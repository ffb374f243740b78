/**
 * Everything a data plane does about backends that are lost or given up, in one place: what becomes of their flows, the
 * closing of those that must go, and word of those that are left.
 */
import type { Cluster, Clusters } from './clusters.ts';
import { DrainProgress } from './drain-progress.ts';
import type { Directive, Report } from './directives.ts';
import { Fates } from './fates.ts';
import { Sweep } from './sweep.ts';
import type { Instant } from './time.ts';

export class Losses {
  readonly fates: Fates = new Fates();
  readonly sweep: Sweep;
  readonly drains: DrainProgress;

  constructor(report: (report: Report) => void, closesPerTurn: number | undefined) {
    this.sweep = new Sweep(this.fates, closesPerTurn);
    this.drains = new DrainProgress(report);
  }

  /** What the control plane knows of a backend. */
  learn(
    clusters: Clusters,
    news: Extract<Directive, { kind: 'SetHealth' | 'SetBackendState' | 'SetProbeTime' }>,
    now: Instant,
  ): void {
    if (news.kind === 'SetProbeTime') return clusters.probed(news);
    this.judge(clusters.learn(news), now);
    const backends = clusters.backendsOf(news.cluster);
    if (news.kind === 'SetBackendState' && backends !== undefined) {
      this.drains.stateSet(backends, news);
    }
  }

  /** The backends of this cluster, or what is known of them, have changed, and with it what becomes of its flows. */
  judge(cluster: Cluster | undefined, now: Instant): void {
    if (cluster !== undefined && this.fates.judge(cluster)) this.sweep.begin(now);
  }
}
