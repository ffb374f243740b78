/** From flags and environment to what is to run. Flags win; an empty variable is unset; anything unclear is refused. */
import { scenarioNamed, SCENARIOS, WORLD_SCENARIOS, worldNamed } from '../../scenarios/index.ts';
import { parseSeed, seedFromNumber, type Seed } from '../index.ts';
import { checkOf, type Check } from './check.ts';
import { DEFAULT_SEEDS, DEFAULT_STEPS, type Plan, type Shard } from './plan.ts';

/** Flags as they were typed. */
export interface Flags {
  readonly seeds?: string;
  readonly firstSeed?: string;
  readonly steps?: string;
  readonly seed?: string;
  readonly jobs?: string;
  readonly shard?: string;
  readonly scenario?: string;
  readonly all?: boolean;
  readonly json?: string;
  readonly junit?: string;
  /** True without a value. */
  readonly checkDeterminism?: string | true;
  readonly bail?: boolean;
  readonly verbose?: boolean;
}

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Settings {
  readonly plan: Plan;
  /** One seed, told step by step. */
  readonly single: boolean;
  readonly jobs: number;
  readonly bail: boolean;
  readonly verbose: boolean;
  readonly check: Check | undefined;
  readonly json: string | undefined;
  readonly junit: string | undefined;
}

/** What the user got wrong, in words for the user. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Throws UsageError. `cores`: jobs unless they are given. */
export function readSettings(flags: Flags, environment: Environment, cores: number): Settings {
  const seed = readSingleSeed(flags, environment);
  const scenario = readScenario(flags.scenario);
  checkFlags(flags, scenario, seed);
  const plan: Plan = {
    scenario: seed === undefined ? scenario : (scenario ?? 'default'),
    all: flags.all === true,
    firstSeed: seed ?? readSeed('--first-seed', flags.firstSeed) ?? seedFromNumber(0),
    seeds: seed === undefined ? readSeeds(flags, environment) : 1,
    steps: readSteps(flags, environment),
    shard: readShard(flags.shard),
  };
  return {
    plan,
    single: seed !== undefined,
    jobs: seed === undefined ? (readCount('--jobs', flags.jobs, JOBS_MAX) ?? cores) : 1,
    bail: flags.bail === true,
    verbose: flags.verbose === true,
    check: readCheck(flags.checkDeterminism, plan),
    json: flags.json,
    junit: flags.junit,
  };
}

/** What flags make no sense together. */
function checkFlags(
  { all, steps }: Flags,
  scenario: string | undefined,
  seed: Seed | undefined,
): void {
  if (all === true && scenario !== undefined) {
    throw new UsageError('--all runs every scenario: it does not go with --scenario');
  }
  if (all === true && seed !== undefined) {
    throw new UsageError('--all runs every scenario: one seed belongs to one, by --scenario');
  }
  if (steps === undefined || scenario === undefined || worldNamed(scenario) === undefined) return;
  throw new UsageError(`--steps: a seed of ${scenario} lasts as long as its world, not some steps`);
}

const COUNT_MAX = 2 ** 32;
const JOBS_MAX = 1_024;

/** A flag for a sweep takes precedence over a variable for one seed. */
function readSingleSeed(flags: Flags, environment: Environment): Seed | undefined {
  const sweeping = (['seeds', 'firstSeed', 'shard'] as const).find(
    (name) => flags[name] !== undefined,
  );
  if (flags.seed !== undefined) {
    if (sweeping === undefined) return readSeed('--seed', flags.seed);
    throw new UsageError('--seed runs one seed: it does not go with a flag for many');
  }
  const variable = 'SOZU_UDP_SIM_SEED';
  if (sweeping !== undefined || isUnset(environment[variable])) return undefined;
  return readSeed(variable, environment[variable]);
}

function readSeeds(flags: Flags, environment: Environment): number {
  return readEither('--seeds', flags.seeds, 'SOZU_UDP_SIM_SEEDS', environment) ?? DEFAULT_SEEDS;
}

function readSteps(flags: Flags, environment: Environment): number {
  return readEither('--steps', flags.steps, 'SOZU_UDP_SIM_STEPS', environment) ?? DEFAULT_STEPS;
}

function readEither(
  flag: string,
  text: string | undefined,
  variable: string,
  environment: Environment,
): number | undefined {
  const found = environment[variable];
  if (text !== undefined || isUnset(found)) return readCount(flag, text, COUNT_MAX);
  return readCount(variable, found, COUNT_MAX);
}

function isUnset(text: string | undefined): boolean {
  return text === undefined || text.trim() === '';
}

function readSeed(name: string, text: string | undefined): Seed | undefined {
  if (text === undefined) return undefined;
  const parsed = parseSeed(text);
  if (!parsed.ok) throw new UsageError(`${name}: ${parsed.problem}`);
  if (parsed.seed === undefined) throw new UsageError(`${name}: not a seed: an empty text`);
  return parsed.seed;
}

function readCount(name: string, text: string | undefined, most: number): number | undefined {
  if (text === undefined) return undefined;
  const count = /^\d+$/.test(text.trim()) ? Number(text) : 0;
  if (count >= 1 && count <= most) return count;
  throw new UsageError(
    `${name}: not a number: ${JSON.stringify(text)}; expected a whole number from 1 to ${most}`,
  );
}

function readScenario(name: string | undefined): string | undefined {
  if (name === undefined || (scenarioNamed(name) ?? worldNamed(name)) !== undefined) return name;
  const known = [...SCENARIOS, ...WORLD_SCENARIOS].map((scenario) => scenario.name).join(', ');
  throw new UsageError(`--scenario: no scenario ${JSON.stringify(name)}; there are ${known}`);
}

function readShard(text: string | undefined): Shard | undefined {
  if (text === undefined) return undefined;
  const [, left, right] = /^(\d{1,9})\/(\d{1,9})$/.exec(text.trim()) ?? [];
  const index = Number(left);
  const count = Number(right);
  if (index >= 1 && index <= count) return { index, count };
  throw new UsageError(
    `--shard: not a shard: ${JSON.stringify(text)}; expected i/n with i from 1 to n`,
  );
}

function readCheck(text: string | true | undefined, plan: Plan): Check | undefined {
  if (text === undefined) return undefined;
  if (text === true) return checkOf(plan, undefined);
  const percent = Number(/^(\d{1,3})\s*%?$/.exec(text.trim())?.[1]);
  if (percent >= 1 && percent <= 100) return checkOf(plan, percent);
  throw new UsageError(
    `--check-determinism: not a share: ${JSON.stringify(text)}; expected a percentage from 1 to 100`,
  );
}
