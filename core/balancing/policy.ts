/**
 * What a balancing policy is: something that picks one backend of those a new flow may go to. Health, backup tier and
 * fail-open were settled before it is asked (candidates.ts). `policy.laws.ts` says what every policy must keep, and
 * `examples/own-policy.ts` is one of a user's own.
 */
import type { Backend } from '../contract.ts';
import type { Hash64 } from '../hash.ts';
import type { Random } from '../random.ts';
import type { Instant } from '../time.ts';

export interface BalancingPolicy {
  /**
   * One of `candidates`, or undefined when there is none. The list is in configuration order and is the same array until
   * it changes. A policy without affinity ignores `key`; one with affinity must also cope without.
   */
  select(
    candidates: readonly Backend[],
    key: Hash64 | undefined,
    now: Instant,
  ): Backend | undefined;
  /** All backends of the cluster, healthy or not: before the first selection, and when backends come, go or change. */
  backendsChanged?(backends: readonly Backend[]): void;
  /**
   * Goes on with what a change left to do, for about `steps` steps of some ten nanoseconds. Returns the steps it had no use
   * for: 0 when more may be left. Asked only of a policy that was made with `inSlices`.
   */
  build?(steps: number): number;
  /**
   * What `select` with the same arguments would give, and why, for an operator to read. The next selection is as if nobody
   * had asked: no turn is taken, nothing is drawn.
   */
  explain?(candidates: readonly Backend[], key: Hash64 | undefined, now: Instant): Choice;
}

/** A selection that was not made, with the reason that is proper to its policy. */
export interface Choice {
  readonly chosen: Backend | undefined;
  readonly reason: Reason;
}

/** Lists go by the candidates. */
export type Reason =
  /** It is the turn of the candidate at this place. */
  | { readonly kind: 'Turn'; readonly place: number }
  /** These were drawn by chance; of two, the lighter serves. */
  | { readonly kind: 'Draw'; readonly drawn: readonly Backend[] }
  /** The first of the lightest. */
  | { readonly kind: 'Load' }
  /** The highest score for the key. */
  | { readonly kind: 'Score'; readonly scores: readonly number[] }
  /** The key's slot of the table, or the next after it that a candidate holds; and how many slots each holds. */
  | {
      readonly kind: 'Slot';
      readonly slot: number;
      readonly size: number;
      readonly held: readonly number[];
    };

/** Knows what backends carry. An object and no function, so that a policy holds nothing which a snapshot could not. */
export interface LoadOrder {
  /** Whether `candidate` carries strictly less than `best` at `now`, by the cluster's load metric. */
  isLighter(candidate: Backend, best: Backend, now: Instant): boolean;
}

/** What a policy may build on. */
export interface PolicyTools {
  readonly random: Random;
  readonly placementSeed: Hash64;
  readonly loads: LoadOrder;
  /** Whether somebody calls `build` until nothing is left; else a change does all its work at once. */
  readonly inSlices?: boolean;
}

export type PolicyFactory = (tools: PolicyTools) => BalancingPolicy;

/** HRW and MAGLEV know no weight below 1 (spec §1.6). */
export function effectiveWeight(backend: Backend): number {
  return Math.max(1, backend.weight);
}
