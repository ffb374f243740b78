/** Is a family of faults good for anything? Mutants swept in worlds as they are, and in worlds that never have it. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildSources, mutate, type Places } from './build.ts';
import { inParallel, runJob } from './runner.ts';
import type { Suspect, TrialLimits } from './trial.ts';

export interface FamilyOptions {
  readonly family: string;
  readonly limits: TrialLimits;
  readonly jobs: number;
}

/** Where chaos draws the families of a seed. */
const CHAOS = 'sim/world/chaos.ts';
const DRAWN = 'return [...new Set([...always, ...drawn])];';

/** Such a mutant speaks for its family. */
const WORTH = 10;

/** Says of each mutant in how many runs it was found, with the family and without. */
export async function printFamilies(
  suspects: readonly Suspect[],
  places: Places,
  { family, limits, jobs }: FamilyOptions,
  say: (line: string) => void,
): Promise<void> {
  let worth = 0;
  await inParallel(suspects, jobs, async (suspect) => {
    const having = await runsToKill(suspect, places, limits, undefined);
    // Without it the search goes on ten times as long, as far as there are seeds.
    const lacking = having && (await runsToKill(suspect, places, limits, family));
    if (having === undefined) return say(`${suspect.mutant.id}: not found`);
    const isWorth = lacking === undefined || lacking >= WORTH * having;
    if (isWorth) worth += 1;
    const times = isWorth ? `, which shows what ${family} is for` : '';
    return say(`${suspect.mutant.id}: ${having} with, ${lacking ?? 'never'} without${times}`);
  });
  say(`${worth} mutants take ${WORTH} times the seeds without ${family}, or are not found`);
}

/** Undefined: not found, or not buildable. */
async function runsToKill(
  { mutant }: Suspect,
  places: Places,
  { core, worlds }: TrialLimits,
  family: string | undefined,
): Promise<number | undefined> {
  const mutated = mutate(mutant, readFileSync(join(places.root, mutant.file), 'utf8'));
  if (mutated.kind === 'broken') return undefined;
  const sources = new Map([[mutant.file, mutated.text]]);
  if (family !== undefined) sources.set(CHAOS, withoutFamily(places, family));
  const directory = join(places.cache, `${mutant.id}-${family === undefined ? 'with' : 'without'}`);
  await buildSources(sources, directory, places.dist);
  const done = await runJob({ directory, limits: core, worlds });
  rmSync(directory, { recursive: true });
  return done.kind === 'done' ? done.result.detection?.seeds : undefined;
}

function withoutFamily({ root }: Places, family: string): string {
  const text = readFileSync(join(root, CHAOS), 'utf8');
  if (text.split(DRAWN).length !== 2) throw new Error(`${CHAOS} draws families otherwise`);
  const others = `(name) => name !== ${JSON.stringify(family)}`;
  return text.replace(DRAWN, () => DRAWN.replace(/;$/, `.filter(${others});`));
}
