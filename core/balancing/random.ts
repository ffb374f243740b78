/**
 * RANDOM: by raw weight, so that weight 0 gets nothing beside weighted peers; uniform when the weights say nothing
 * (spec §3.3).
 */
import type { Backend } from '../contract.ts';
import type { Random } from '../random.ts';
import type { BalancingPolicy, Choice } from './policy.ts';

export class WeightedRandom implements BalancingPolicy {
  private readonly random: Random;

  constructor(random: Random) {
    this.random = random;
  }

  select(candidates: readonly Backend[]): Backend | undefined {
    if (candidates.length === 0) return undefined;
    const total = totalWeight(candidates);
    if (total === 0) return candidates[this.random.below(candidates.length)];
    let ticket = this.random.below(total);
    return candidates.find((candidate) => (ticket -= candidate.weight) < 0);
  }

  explain(candidates: readonly Backend[]): Choice {
    const chosen = new WeightedRandom(this.random.fork()).select(candidates);
    return { chosen, reason: { kind: 'Draw', drawn: chosen === undefined ? [] : [chosen] } };
  }
}

/** Zero when the weights are no distribution: all of them zero, or one negative. */
function totalWeight(candidates: readonly Backend[]): number {
  let total = 0;
  for (const { weight } of candidates) {
    if (weight < 0) return 0;
    total += weight;
  }
  return total;
}
