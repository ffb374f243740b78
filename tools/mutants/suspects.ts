/** All mutants there are to try: made by hand, drawn from the source, and blind ones. Those of worlds are swept in worlds. */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { BLIND_MUTANTS } from './blind.ts';
import { buildSources, type Places } from './build.ts';
import { drawMutants, type ExecutedFile } from './draw.ts';
import { BACKEND_MUTANTS } from './hand-made-backends.ts';
import { FLOW_MUTANTS } from './hand-made-flows.ts';
import { GUARD_MUTANTS } from './hand-made-guards.ts';
import { LIFETIME_MUTANTS } from './hand-made-lifetimes.ts';
import { TERM_MUTANTS } from './hand-made-terms.ts';
import { WORKER_MUTANTS } from './hand-made-workers.ts';
import { WORLD_RELATION_MUTANTS } from './hand-made-world-relations.ts';
import { WORLD_STATE_MUTANTS } from './hand-made-world-state.ts';
import { WORLD_TRAFFIC_MUTANTS } from './hand-made-world-traffic.ts';
import { markFunctions } from './instrument.ts';
import { runJob } from './runner.ts';
import type { Suspect } from './trial.ts';
import type { Job } from './worker.ts';

/** Drawn once; another seed is another hundred. */
const DRAW_SEED = 'sozu-udp 2026';
const DRAWN = 100;
const DRAWN_OF_WORLDS = 60;
/** Enough to run every function that a longer sweep runs. */
const SCOUTING = { seeds: 16, steps: 1_000, exhaustive: true, shrink: false };
const SCOUTING_WORLDS = { seeds: 2, exhaustive: true };

/** No mutant at all, built as they are: it must survive. */
export const CONTROL: Suspect = {
  origin: 'hand-made',
  mutant: {
    id: 'control',
    file: 'core/manager.ts',
    search: 'private begin(',
    replace: 'private begin(',
    announces: 'nothing is wrong',
  },
};

export function handMade(): Suspect[] {
  return [
    ...FLOW_MUTANTS,
    ...LIFETIME_MUTANTS,
    ...BACKEND_MUTANTS,
    ...TERM_MUTANTS,
    ...GUARD_MUTANTS,
  ].map((mutant) => ({ origin: 'hand-made', mutant }));
}

/** Of what only a whole proxy has. */
export function ofWorlds(): Suspect[] {
  return [
    ...WORLD_STATE_MUTANTS,
    ...WORLD_TRAFFIC_MUTANTS,
    ...WORLD_RELATION_MUTANTS,
    ...WORKER_MUTANTS,
  ].map((mutant) => ({ origin: 'world', mutant }));
}

export function blind(): Suspect[] {
  return BLIND_MUTANTS.map((mutant) => ({ origin: 'blind', mutant }));
}

/** In the functions that the core harness runs, and then in those that only worlds do. */
export async function drawn(places: Places): Promise<Suspect[]> {
  const executed = await executedFiles(places);
  const alone = drawMutants(executed.alone, DRAWN, DRAW_SEED);
  const inWorlds = drawMutants(executed.inWorlds, DRAWN_OF_WORLDS, DRAW_SEED);
  return [
    ...alone.map((mutant): Suspect => ({ origin: 'drawn', mutant })),
    ...inWorlds.map((mutant): Suspect => ({ origin: 'drawn-world', mutant })),
  ];
}

interface Executed {
  readonly alone: readonly ExecutedFile[];
  /** What the harness leaves out. */
  readonly inWorlds: readonly ExecutedFile[];
}

/** Sweeps a build in which every function of core/ tells that it ran. */
async function executedFiles({ root, dist, cache }: Places): Promise<Executed> {
  const directory = join(cache, 'scout');
  const sources = new Map(
    coreFiles(root).map((path) => [path, readFileSync(join(root, path), 'utf8')]),
  );
  const marked = [...sources].map(([path, text]): [string, string] => [
    path,
    markFunctions(
      path,
      text,
      (at) => `(globalThis.functionsRun ??= new Set()).add('${path}:${at}')`,
    ),
  ]);
  await buildSources(new Map(marked), directory, dist);
  const alone = await functionsRun({ directory, limits: SCOUTING });
  const inWorlds = await functionsRun({ directory, limits: SCOUTING, worlds: SCOUTING_WORLDS });
  rmSync(directory, { recursive: true });
  const known = new Set(alone);
  return {
    alone: filesOf(sources, alone),
    inWorlds: filesOf(
      sources,
      inWorlds.filter((name) => !known.has(name)),
    ),
  };
}

/** As `path:offset`. */
async function functionsRun(job: Job): Promise<readonly string[]> {
  const scouting = await runJob(job);
  if (scouting.kind === 'unloadable') throw new Error(scouting.problem);
  return scouting.marks.functions;
}

function filesOf(sources: ReadonlyMap<string, string>, names: readonly string[]): ExecutedFile[] {
  return [...sources].map(([path, text]) => {
    const own = names.filter((name) => name.startsWith(`${path}:`));
    const functions = new Set(own.map((name) => Number(name.slice(path.length + 1))));
    return { path, text, functions };
  });
}

/** Without tests, assertions, and the whole-state checks, which are the judge and not the accused. */
function coreFiles(root: string): string[] {
  return readdirSync(join(root, 'core'), { recursive: true, encoding: 'utf8' })
    .map((path) => `core/${path}`)
    .filter((path) => /(?<!\.test|\.laws)\.ts$/.test(path))
    .filter((path) => path !== 'core/verify.ts' && path !== 'core/assert.ts')
    .sort();
}
