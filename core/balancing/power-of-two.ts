/** POWER_OF_TWO: two distinct candidates by chance, the lighter of them (Mitzenmacher 2001). Ties keep list order. */
import type { Backend } from '../contract.ts';
import type { Hash64 } from '../hash.ts';
import type { Random } from '../random.ts';
import type { Instant } from '../time.ts';
import type { BalancingPolicy, Choice, LoadOrder } from './policy.ts';

export class PowerOfTwo implements BalancingPolicy {
  private readonly random: Random;
  private readonly loads: LoadOrder;

  constructor(random: Random, loads: LoadOrder) {
    this.random = random;
    this.loads = loads;
  }

  select(
    candidates: readonly Backend[],
    _key: Hash64 | undefined,
    now: Instant,
  ): Backend | undefined {
    const count = candidates.length;
    if (count < 2) return candidates[0];
    const one = this.random.below(count);
    // The second draw skips the first: distinct candidates without a loop, so always two draws.
    const drawn = this.random.below(count - 1);
    const other = drawn < one ? drawn : drawn + 1;
    const earlier = candidates[Math.min(one, other)];
    const later = candidates[Math.max(one, other)];
    if (earlier === undefined || later === undefined) return undefined;
    return this.loads.isLighter(later, earlier, now) ? later : earlier;
  }

  explain(candidates: readonly Backend[], key: Hash64 | undefined, now: Instant): Choice {
    const drawn: Backend[] = [];
    const isLighter: LoadOrder['isLighter'] = (later, earlier) => {
      drawn.push(earlier, later);
      return this.loads.isLighter(later, earlier, now);
    };
    const chosen = new PowerOfTwo(this.random.fork(), { isLighter }).select(candidates, key, now);
    return { chosen, reason: { kind: 'Draw', drawn } };
  }
}
