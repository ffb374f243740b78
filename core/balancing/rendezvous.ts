/**
 * HRW, rendezvous hashing (Thaler and Ravishankar 1998) with logarithmic weights: every candidate gets a score for the key
 * and the highest wins. One that leaves moves only its own keys, one that joins takes only what it wins (spec §3.4).
 */
import type { Backend } from '../contract.ts';
import type { Hash64 } from '../hash.ts';
import { backendHash } from '../placement.ts';
import { effectiveWeight, type BalancingPolicy, type Choice } from './policy.ts';
import { RoundRobin } from './round-robin.ts';

export class Rendezvous implements BalancingPolicy {
  private readonly seed: Hash64;
  private readonly keyless = new RoundRobin();

  constructor(seed: Hash64) {
    this.seed = seed;
  }

  /** O(candidates). Equal scores, which only equal addresses have, keep the earlier in the list. */
  select(candidates: readonly Backend[], key: Hash64 | undefined): Backend | undefined {
    if (key === undefined) return this.keyless.select(candidates);
    let best: Backend | undefined;
    let bestScore = -Infinity;
    for (const candidate of candidates) {
      const score = this.scoreOf(candidate, key);
      if (score > bestScore) {
        best = candidate;
        bestScore = score;
      }
    }
    return best;
  }

  explain(candidates: readonly Backend[], key: Hash64 | undefined): Choice {
    if (key === undefined) return this.keyless.explain(candidates);
    const scores = candidates.map((candidate) => this.scoreOf(candidate, key));
    return { chosen: this.select(candidates, key), reason: { kind: 'Score', scores } };
  }

  private scoreOf(candidate: Backend, key: Hash64): number {
    const hash = backendHash(key, this.seed, candidate.address);
    return rendezvousScore(hash, effectiveWeight(candidate));
  }
}

const LARGEST_BELOW_ONE = 1 - 2 ** -53;

/**
 * -weight / ln(u), where u is `hash` as a fraction of 2^64: finite and above 0. A hash so close to 2^64 that u would round to
 * 1, whose logarithm is 0, counts as the largest double below 1: it deserves the highest score, not a division by zero.
 */
export function rendezvousScore(hash: Hash64, weight: number): number {
  const fraction = (hash.high * 2 ** 32 + hash.low + 0.5) / 2 ** 64;
  return -weight / Math.log(Math.min(fraction, LARGEST_BELOW_ONE));
}
