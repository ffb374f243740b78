/** Tries one mutant: builds it, sweeps it, and says what became of it. */
import { rmSync } from 'node:fs';
import { buildMutant, type Places } from './build.ts';
import type { Mutant } from './mutant.ts';
import { runJob, type JobResult } from './runner.ts';
import type { Detection, Shrinking, SweepLimits } from './sweep.ts';
import type { WorldLimits } from './sweep-worlds.ts';

/** `world` and `drawn-world` are about what only a whole proxy has, and are swept in worlds. */
export const ORIGINS = ['hand-made', 'world', 'blind', 'drawn', 'drawn-world'] as const;
export type Origin = (typeof ORIGINS)[number];

export interface TrialLimits {
  readonly core: SweepLimits;
  readonly worlds: WorldLimits;
}

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
  limits: TrialLimits,
): Promise<Trial> {
  const build = await buildMutant(suspect.mutant, places);
  if (build.kind === 'broken') return broken(suspect, build.problem);
  const { directory } = build;
  const done = await sweepIt(suspect, directory, limits);
  rmSync(directory, { recursive: true });
  if (done.kind === 'unloadable') return broken(suspect, done.problem);
  const { result, marks } = done;
  const survived = marks.reached ? 'survived-reached' : 'survived-unreached';
  const verdict = result.detection === undefined ? survived : 'killed';
  return { ...suspect, ...result, verdict, problem: undefined };
}

/** What the core harness misses goes on into the worlds. */
async function sweepIt(
  { origin }: Suspect,
  directory: string,
  { core, worlds }: TrialLimits,
): Promise<JobResult> {
  if (isOfWorlds(origin)) return runJob({ directory, limits: core, worlds });
  const done = await runJob({ directory, limits: core });
  if (done.kind === 'unloadable' || done.result.detection !== undefined) return done;
  const more = await runJob({ directory, limits: core, worlds });
  if (more.kind === 'unloadable') return more;
  const reached = done.marks.reached || more.marks.reached;
  return { ...more, marks: { ...more.marks, reached } };
}

export function isOfWorlds(origin: Origin): boolean {
  return origin === 'world' || origin === 'drawn-world';
}

function broken(suspect: Suspect, problem: string): Trial {
  const nothing = { detection: undefined, violated: [], shrunk: undefined };
  return { ...suspect, ...nothing, verdict: 'build-broken', problem };
}
