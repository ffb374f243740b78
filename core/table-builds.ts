/**
 * When Maglev tables are built: a slice after each flush, until none is left to fill. A slice is bounded by a count of steps,
 * because only that is the same in every replay; a table that is not complete wakes the data plane at once (decision 0017).
 */
import type { Clusters } from './clusters.ts';
import type { Wake } from './plane-contract.ts';
import type { Instant } from './time.ts';

/** Of one turn, for all clusters together: half a millisecond or so. */
export const BUILD_STEPS: number = 1 << 16;

export class TableBuilds {
  private readonly clusters: Clusters;
  private isOver = true;
  private next: Wake | undefined;

  constructor(clusters: Clusters) {
    this.clusters = clusters;
  }

  /** Due at once, while a table waits for its next slice. */
  get wake(): Wake | undefined {
    return this.next;
  }

  /**
   * Something is directed: lists may change. While `nobodyWaits`, what was directed before is finished at once, so that the
   * first listener opens to complete tables.
   */
  begin(nobodyWaits: boolean): void {
    this.isOver = false;
    if (nobodyWaits) this.clusters.build(Infinity);
  }

  /** After the flush, so that no datagram of the turn waits for it. */
  flushed(now: Instant): void {
    if (this.isOver) return;
    this.isOver = !this.clusters.build(BUILD_STEPS);
    this.next = this.isOver ? undefined : { at: now, reason: 'maglev-build' };
  }

  /** Nobody will be chosen any more. */
  stop(): void {
    this.isOver = true;
    this.next = undefined;
  }
}
