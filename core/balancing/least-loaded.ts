/** LEAST_LOADED: the lightest candidate by the load metric; the first wins ties (spec §3.3). */
import type { Backend } from '../contract.ts';
import type { Hash64 } from '../hash.ts';
import type { Instant } from '../time.ts';
import type { BalancingPolicy, Choice, LoadOrder } from './policy.ts';

export class LeastLoaded implements BalancingPolicy {
  private readonly loads: LoadOrder;

  constructor(loads: LoadOrder) {
    this.loads = loads;
  }

  select(
    candidates: readonly Backend[],
    _key: Hash64 | undefined,
    now: Instant,
  ): Backend | undefined {
    let best = candidates[0];
    for (const candidate of candidates) {
      if (best !== undefined && this.loads.isLighter(candidate, best, now)) best = candidate;
    }
    return best;
  }

  explain(candidates: readonly Backend[], key: Hash64 | undefined, now: Instant): Choice {
    return { chosen: this.select(candidates, key, now), reason: { kind: 'Load' } };
  }
}
