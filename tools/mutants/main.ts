/** `npm run mutants`: is the sweep able to find bugs? See README.md beside this file. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import type { Places } from './build.ts';
import { compareToRatchet, toRatchet, type RatchetEntry } from './ratchet.ts';
import {
  detectionLine,
  shrinkingLine,
  shrinkingOf,
  matrixLines,
  propertyMatrix,
  scoreLine,
  scoreOf,
  trialLine,
} from './report.ts';
import { inParallel } from './runner.ts';
import { blind, CONTROL, drawn, handMade } from './suspects.ts';
import { loadBuild, type SweepLimits } from './sweep.ts';
import { readSurvivors, type Reason } from './survivors.ts';
import { tryMutant, type Suspect, type Trial } from './trial.ts';

const ORIGINS = ['hand-made', 'blind', 'drawn'] as const;
/** What a property must find with all others off. */
const KILLS_ALONE = 3;
const SHARE_KILLED = 0.9;
const MEDIAN_ACTIONS = 12;
const SHRINK_SECONDS = 30;

interface Options {
  readonly ci?: boolean;
  readonly only?: readonly string[];
  readonly origin?: string;
  readonly matrix?: boolean;
  readonly shrink?: boolean;
  readonly update?: boolean;
  readonly list?: boolean;
  readonly json?: string;
  readonly seeds: number;
  readonly steps: number;
  readonly jobs: number;
}

const root = fileURLToPath(new URL('../../../', import.meta.url));
const places: Places = { root, dist: `${root}dist`, cache: `${root}.cache/mutants` };
const RATCHET = `${root}tools/mutants/ratchet.json`;
const SURVIVORS = `${root}tools/mutants/survivors.md`;

const program = new Command('mutants')
  .description('puts bugs into copies of core/ and sweeps them until a property is violated')
  .option('--ci', 'the hand-made mutants only, held against the ratchet file')
  .option('--only <id...>', 'these mutants only')
  .option('--origin <origin>', `${ORIGINS.join(', ')}: mutants of this origin only`)
  .option('--matrix', 'go on after the first violation: which property finds what alone')
  .option('--shrink', 'shrink the failing seed that found each mutant')
  .option('--update', 'write the verdicts to the ratchet file')
  .option('--list', 'print the mutants and try none')
  .option('--json <file>', 'write all results there')
  .option('--seeds <count>', 'seeds of default; fewer of the others', natural, 64)
  .option('--steps <count>', 'steps of a seed', natural, 2_000)
  .option('--jobs <count>', 'mutants at a time', natural, 2)
  .action(run);
await program.parseAsync();

async function run(options: Options): Promise<void> {
  const suspects = await chosen(options);
  if (suspects.length === 0) throw new Error('no such mutant');
  if (options.list === true) return say(suspects.map(describe).join('\n'));
  const { seeds, steps } = options;
  const limits = {
    seeds,
    steps,
    exhaustive: options.matrix === true,
    shrink: options.shrink === true,
  };
  await tryControl(limits);
  let tried = 0;
  const trials = await inParallel(suspects, options.jobs, async (suspect) => {
    const trial = await tryMutant(suspect, places, limits);
    tried += 1;
    say(`${String(tried).padStart(4)}/${suspects.length} ${trialLine(trial)}`);
    return trial;
  });
  if (options.json !== undefined)
    writeFileSync(options.json, `${JSON.stringify(trials, null, 2)}\n`);
  const errors = await judge(trials, options);
  for (const error of errors) say(`error: ${error}`);
  process.exitCode = errors.length > 0 ? 1 : 0;
}

/** A sweep that fails by itself proves nothing. */
async function tryControl(limits: SweepLimits): Promise<void> {
  const { verdict, detection, problem } = await tryMutant(CONTROL, places, limits);
  if (verdict === 'survived-reached') return;
  throw new Error(`the program without a mutant: ${verdict}, ${detection?.property ?? problem}`);
}

async function chosen({ ci, only, origin }: Options): Promise<Suspect[]> {
  if (ci === true) return handMade();
  const all = [...handMade(), ...blind(), ...(await drawn(places))];
  return all.filter(
    (suspect) =>
      (only === undefined || only.includes(suspect.mutant.id)) &&
      (origin === undefined || suspect.origin === origin),
  );
}

/** Everything that is wrong with the results, after saying what they are. */
async function judge(trials: readonly Trial[], options: Options): Promise<string[]> {
  const reasons = readSurvivors(readFileSync(SURVIVORS, 'utf8'));
  say(`\n${detectionLine(trials)}`);
  const errors: string[] = [];
  for (const origin of ORIGINS.filter((one) => trials.some((trial) => trial.origin === one))) {
    const score = scoreOf(origin, trials, reasons);
    say(scoreLine(score));
    const wanted = origin === 'hand-made' ? 1 : SHARE_KILLED;
    if (options.only === undefined && score.share < wanted)
      errors.push(`${origin}: too few killed`);
  }
  errors.push(...unexplained(trials, reasons));
  if (options.shrink === true) errors.push(...judgeShrinking(trials));
  if (options.matrix === true) return [...errors, ...(await judgeProperties(trials))];
  if (options.update === true) writeRatchet(trials);
  const ids = new Set(options.only);
  const origins = new Set(trials.map(({ origin }) => origin));
  const entries = readRatchet().filter(
    ({ id, origin }) => origins.has(origin) && (options.only === undefined || ids.has(id)),
  );
  const comparison = compareToRatchet(trials, entries);
  for (const warning of comparison.warnings) say(`better or slower: ${warning}`);
  return [...errors, ...comparison.errors];
}

function unexplained(trials: readonly Trial[], reasons: ReadonlyMap<string, Reason>): string[] {
  return trials
    .filter(({ verdict }) => verdict.startsWith('survived'))
    .filter(({ mutant }) => !reasons.has(mutant.id))
    .map(({ mutant }) => `${mutant.id}: survives, and survivors.md does not say why`);
}

function judgeShrinking(trials: readonly Trial[]): string[] {
  const shrinkings = shrinkingOf(trials);
  say(shrinkingLine(shrinkings));
  const errors: string[] = [];
  if (shrinkings.medianActions > MEDIAN_ACTIONS) errors.push('shrunk runs are too long');
  if (shrinkings.mostSeconds > SHRINK_SECONDS) errors.push('shrinking takes too long');
  return errors;
}

async function judgeProperties(trials: readonly Trial[]): Promise<string[]> {
  const { sim } = await loadBuild(places.dist);
  const names = sim.declaredProperties().filter(({ kind }) => kind === 'always');
  const matrix = propertyMatrix(
    names.map(({ name }) => name),
    trials,
  );
  say(`\nmutants that each property finds with all others off:\n${matrixLines(matrix).join('\n')}`);
  return [...matrix]
    .filter(([, ids]) => ids.length < KILLS_ALONE)
    .map(([property, ids]) => `'${property}' finds ${ids.length} mutants alone`);
}

/** Verdicts of origins that were not tried stay. */
function writeRatchet(trials: readonly Trial[]): void {
  const origins = new Set(trials.map(({ origin }) => origin));
  const kept = readRatchet().filter(({ origin }) => !origins.has(origin));
  const entries = [...kept, ...toRatchet(trials)].sort((one, other) =>
    one.id < other.id ? -1 : 1,
  );
  writeFileSync(RATCHET, `${JSON.stringify(entries, null, 2)}\n`);
}

function readRatchet(): RatchetEntry[] {
  const entries: RatchetEntry[] = JSON.parse(readFileSync(RATCHET, 'utf8'));
  return entries;
}

function describe({ origin, mutant }: Suspect): string {
  return `${origin.padEnd(9)} ${mutant.id.padEnd(36)} ${mutant.file}: ${mutant.announces}`;
}

function natural(text: string): number {
  if (!/^[1-9][0-9]{0,8}$/.test(text)) throw new Error(`not a count: ${text}`);
  return Number(text);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
