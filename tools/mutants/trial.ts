/** Tries one mutant: builds it, sweeps it, and says what became of it. */
import { rmSync } from 'node:fs';
import { buildMutant, type Places } from './build.ts';
import type { Mutant } from './mutant.ts';
import { runJob } from './runner.ts';
import type { Detection, Shrinking, SweepLimits } from './sweep.ts';

export type Origin = 'hand-made' | 'blind' | 'drawn';

/** A mutant and where it comes from. */
export interface Suspect {
  readonly origin: Origin;
  readonly mutant: Mutant;
}

export type Verdict = 'killed' | 'survived-reached' | 'survived-unreached' | 'build-broken';

export interface Trial extends Suspect {
  readonly verdict: Verdict;
  /** How it was found first; undefined unless killed. */
  readonly detection: Detection | undefined;
  /** Properties that were violated: all of them after an exhaustive sweep. */
  readonly violated: readonly string[];
  readonly shrunk: Shrinking | undefined;
  /** What broke the build. */
  readonly problem: string | undefined;
}

export async function tryMutant(
  suspect: Suspect,
  places: Places,
  limits: SweepLimits,
): Promise<Trial> {
  const build = await buildMutant(suspect.mutant, places);
  if (build.kind === 'broken') return broken(suspect, build.problem);
  const { directory } = build;
  const done = await runJob({ directory, limits });
  rmSync(directory, { recursive: true });
  if (done.kind === 'unloadable') return broken(suspect, done.problem);
  const { result, marks } = done;
  const survived = marks.reached ? 'survived-reached' : 'survived-unreached';
  const verdict = result.detection === undefined ? survived : 'killed';
  return { ...suspect, ...result, verdict, problem: undefined };
}

function broken(suspect: Suspect, problem: string): Trial {
  const nothing = { detection: undefined, violated: [], shrunk: undefined };
  return { ...suspect, ...nothing, verdict: 'build-broken', problem };
}
