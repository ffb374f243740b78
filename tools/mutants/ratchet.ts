/**
 * What was achieved once must not be lost: the verdict on every mutant, kept in git. A mutant that was killed and now
 * survives, one that no longer exists or builds, and one that is not in the file are errors; getting better only warns.
 */
import type { Place } from './sweep.ts';
import type { Origin, Trial, Verdict } from './trial.ts';

export interface RatchetEntry {
  readonly id: string;
  readonly origin: Origin;
  readonly verdict: Verdict;
  /** The property that found it first. */
  readonly property?: string;
  /** Seeds to detection at most: the next power of two. */
  readonly seeds?: number;
  /** Where it was found, to be tried first the next time. */
  readonly found?: Place;
}

export interface Comparison {
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

export function toRatchet(trials: readonly Trial[]): RatchetEntry[] {
  return trials
    .map(({ mutant: { id }, origin, verdict, detection }): RatchetEntry => {
      if (detection === undefined) return { id, origin, verdict };
      const { property, seeds, scenario, seed } = detection;
      const found = { scenario, seed };
      return { id, origin, verdict, property, seeds: bucketOf(seeds), found };
    })
    .sort((one, other) => (one.id < other.id ? -1 : 1));
}

/** `entries` are those of the origins that were tried. */
export function compareToRatchet(
  trials: readonly Trial[],
  entries: readonly RatchetEntry[],
): Comparison {
  const errors: string[] = [];
  const warnings: string[] = [];
  const known = new Map(entries.map((entry) => [entry.id, entry]));
  for (const now of toRatchet(trials)) {
    const before = known.get(now.id);
    known.delete(now.id);
    if (now.verdict === 'build-broken') errors.push(`${now.id}: cannot be built`);
    else if (before === undefined) errors.push(`${now.id}: is not in the ratchet file`);
    else if (before.verdict === 'killed' && now.verdict !== 'killed') {
      errors.push(`${now.id}: was killed, ${now.verdict} now`);
    } else if (before.verdict !== 'killed' && now.verdict === 'killed') {
      warnings.push(`${now.id}: ${before.verdict} before, killed now`);
    } else if ((now.seeds ?? 0) > (before.seeds ?? 0)) {
      warnings.push(`${now.id}: took ${before.seeds} seeds at most, now up to ${now.seeds}`);
    }
  }
  for (const id of known.keys()) errors.push(`${id}: is in the ratchet file, but exists no more`);
  return { errors, warnings };
}

function bucketOf(seeds: number): number {
  return 2 ** Math.ceil(Math.log2(seeds));
}
