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
import { blind, CONTROL, drawn, handMade, ofWorlds } from './suspects.ts';
import { harnessProperties } from './sweep.ts';
import { loadWorlds } from './sweep-worlds.ts';
import { readSurvivors, type Reason } from './survivors.ts';
import {
  isOfWorlds,
  ORIGINS,
  tryMutant,
  type Origin,
  type Suspect,
  type Trial,
  type TrialLimits,
} from './trial.ts';
import { printFamilies } from './without-family.ts';

/** What a property must find with all others off. */
const KILLS_ALONE = 3;
const SHARE_KILLED = 0.9;
const WORLD_SEEDS_CI = 1;
/** Of no mutant at all: in CI a plain sweep came before. */
const CONTROL_SEEDS_CI = 8;
/** A sweep asks a few of many seeds how their runs relate to others; a matrix has few, and asks many of them. */
const RELATED_ONE_IN = 4;
/** Oracles that count what was seen, or find only what no mutant of one build is: two courses of one run. */
const JUDGE_NOTHING: ReadonlySet<string> = new Set(['coverage', 'replays']);
/** What these show is work to be done: no score is asked for, but each survivor has its reason. */
const NO_BAR: Origin = 'drawn-world';
/** Of those made by hand: all of the flow machine's, and nearly all of worlds. */
const SHARES: Readonly<Record<string, number>> = { 'hand-made': 1, world: 0.95, [NO_BAR]: 0 };
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
  readonly worldSeeds: number;
  readonly withoutFamily?: string;
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
  .option('--world-seeds <count>', 'seeds of each scenario of worlds', natural, 12)
  .option(
    '--without-family <name>',
    'seeds to kill the mutants of worlds with one family of chaos off',
  )
  .option('--jobs <count>', 'mutants at a time', natural, 2)
  .action(run);
await program.parseAsync();

async function run(options: Options): Promise<void> {
  const suspects = await chosen(options);
  if (suspects.length === 0) throw new Error('no such mutant');
  if (options.list === true) return say(suspects.map(describe).join('\n'));
  const { seeds, steps, worldSeeds, withoutFamily, jobs } = options;
  const exhaustive = options.matrix === true;
  const limits: TrialLimits = {
    core: { seeds, steps, exhaustive, shrink: options.shrink === true },
    // CI knows where each was found, and tries little else.
    worlds: {
      seeds: options.ci === true ? WORLD_SEEDS_CI : worldSeeds,
      exhaustive,
      relatedOneIn: RELATED_ONE_IN,
    },
  };
  if (withoutFamily !== undefined) {
    const tried = suspects.filter(({ origin }) => isOfWorlds(origin));
    return printFamilies(tried, places, { family: withoutFamily, limits, jobs }, say);
  }
  const trials = await tryAll(suspects, limits, options);
  if (options.json !== undefined)
    writeFileSync(options.json, `${JSON.stringify(trials, null, 2)}\n`);
  const errors = await judge(trials, options);
  for (const error of errors) say(`error: ${error}`);
  process.exitCode = errors.length > 0 ? 1 : 0;
}

/** The longest first: no mutant at all. A sweep that fails by itself proves nothing. */
async function tryAll(
  suspects: readonly Suspect[],
  limits: TrialLimits,
  { ci, matrix, worldSeeds, jobs }: Options,
): Promise<Trial[]> {
  const hints = new Map(readRatchet().map(({ id, found }) => [id, found]));
  const isOfWorld = suspects.every(({ origin }) => isOfWorlds(origin));
  const control: Suspect = { ...CONTROL, origin: isOfWorld ? 'world' : CONTROL.origin };
  let tried = 0;
  const trials = await inParallel([control, ...suspects], jobs, async (suspect) => {
    // Seeds to detection are counted from the first one; CI is in a hurry, and a matrix counts none.
    const hint = ci === true || matrix === true ? hints.get(suspect.mutant.id) : undefined;
    // One that has moved is looked for everywhere.
    const seeds = hint === undefined ? limits.worlds.seeds : worldSeeds;
    const isShort = ci === true && suspect === control;
    const trial = await tryMutant(suspect, places, {
      core: { ...limits.core, hint, ...(isShort ? { seeds: CONTROL_SEEDS_CI } : {}) },
      worlds: { ...limits.worlds, seeds, hint },
    });
    if (suspect === control) {
      mustSurvive(trial);
      return [];
    }
    tried += 1;
    say(`${String(tried).padStart(4)}/${suspects.length} ${trialLine(trial)}`);
    return [trial];
  });
  return trials.flat();
}

function mustSurvive({ verdict, detection, problem }: Trial): void {
  if (verdict === 'survived-reached') return;
  const where = `${detection?.scenario} ${detection?.seed}: ${detection?.property ?? problem}`;
  throw new Error(`the program without a mutant: ${verdict}, ${where}`);
}

async function chosen({ ci, only, origin }: Options): Promise<Suspect[]> {
  const byHand = [...handMade(), ...ofWorlds()];
  if (ci === true) return byHand;
  const isDrawn = only?.some((id) => id.startsWith('drawn-')) ?? true;
  const all = [...byHand, ...blind(), ...(isDrawn ? await drawn(places) : [])];
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
    const wanted = SHARES[origin] ?? SHARE_KILLED;
    // CI holds each verdict against the ratchet file; how many there should be is asked of a full run.
    const isFull = options.only === undefined && options.ci !== true;
    if (isFull && score.share < wanted) errors.push(`${origin}: too few killed`);
  }
  errors.push(...unexplained(trials, reasons));
  if (options.shrink === true) errors.push(...judgeShrinking(trials));
  if (options.matrix === true) return [...errors, ...(await judgeProperties(trials))];
  if (options.update === true) writeRatchet(trials, options.only);
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
  const isOfWorld = (trial: Trial): boolean => isOfWorlds(trial.origin);
  const names = await harnessProperties(places.dist);
  const { oracles, relations } = await loadWorlds(places.dist);
  const judges = oracles.map(({ name }) => name).filter((name) => !JUDGE_NOTHING.has(name));
  return [
    ...judgeMatrix(
      'property',
      names,
      trials.filter((trial) => !isOfWorld(trial)),
    ),
    ...judgeMatrix('oracle', [...judges, ...relations.keys()], trials.filter(isOfWorld)),
  ];
}

function judgeMatrix(
  what: 'property' | 'oracle',
  names: readonly string[],
  trials: readonly Trial[],
): string[] {
  if (trials.length === 0) return [];
  const matrix = propertyMatrix(names, trials);
  const lines = matrixLines(matrix).join('\n');
  say(`\nmutants that each ${what} finds with all others off:\n${lines}`);
  return [...matrix]
    .filter(([, ids]) => ids.length < KILLS_ALONE)
    .map(([name, ids]) => `'${name}' finds ${ids.length} mutants alone`);
}

/** Verdicts of origins that were not tried stay; with `only`, all others. */
function writeRatchet(trials: readonly Trial[], only: readonly string[] | undefined): void {
  const origins = new Set(trials.map(({ origin }) => origin));
  const kept = readRatchet().filter(({ id, origin }) =>
    only === undefined ? !origins.has(origin) : !only.includes(id),
  );
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
