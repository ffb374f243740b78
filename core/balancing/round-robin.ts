/** ROUND_ROBIN: each candidate in turn, weights ignored (spec §3.3). The keyed policies fall back to it without a key. */
import type { Backend } from '../contract.ts';
import type { BalancingPolicy, Choice } from './policy.ts';

export class RoundRobin implements BalancingPolicy {
  private cursor = 0;

  /** The cursor indexes the candidates, so a list that shrank since the last turn wraps. */
  select(candidates: readonly Backend[]): Backend | undefined {
    const count = candidates.length;
    if (count === 0) return undefined;
    const chosen = candidates[this.cursor % count];
    this.cursor = (this.cursor + 1) % count;
    return chosen;
  }

  explain(candidates: readonly Backend[]): Choice {
    const place = candidates.length === 0 ? 0 : this.cursor % candidates.length;
    return { chosen: candidates[place], reason: { kind: 'Turn', place } };
  }
}
