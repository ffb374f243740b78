/**
 * Shows that a seed determines its run: it is run again with everything changed that must not matter, and the digests of
 * all its steps are compared. Says which step is the first to differ, and in which repetition.
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import {
  hashSeed,
  Observer,
  PLAIN_GUISE,
  printSeed,
  runSeed,
  seedPlus,
  type Digest,
  type Guise,
  type HarnessOptions,
  type Scenario,
  type Seed,
} from '../index.ts';

export interface Difference {
  readonly step: number;
  readonly detail: string;
}

/** The digests of a run, step by step; the last one is that of the final drain. */
export class StepLog {
  readonly digests: string[] = [];

  readonly note = (_step: number, digest: Digest): void => {
    this.digests.push(digest.print());
  };
}

/** Runs a seed for its step digests alone. A run that throws ends there, as it does anywhere else. */
export function stepDigests(
  scenario: Scenario,
  seed: Seed,
  steps: number,
  options: Partial<HarnessOptions> = {},
): readonly string[] {
  const log = new StepLog();
  try {
    const observer = new Observer();
    const { digest } = runSeed(scenario, seed, steps, { observer, ...options, onStep: log.note });
    log.digests.push(digest);
  } catch (error) {
    log.digests.push(`threw ${String(error)}`);
  }
  return log.digests;
}

/** Repeats a run whose digests are known. `fresh`: in a new process as well, which costs a tenth of a second. */
export function repeat(
  scenario: Scenario,
  seed: Seed,
  steps: number,
  known: readonly string[],
  fresh: boolean,
): Difference | undefined {
  const guise = anotherGuise(seed);
  stepDigests(scenario, seedPlus(seed, 1), Math.min(steps, STEPS_BETWEEN));
  return (
    firstDifference(known, stepDigests(scenario, seed, steps), 'after another seed') ??
    firstDifference(known, stepDigests(scenario, seed, steps, { guise }), nameOf(guise)) ??
    (fresh
      ? firstDifference(
          known,
          freshDigests([scenario.name, printSeed(seed), String(steps)]),
          'in a fresh process',
        )
      : undefined)
  );
}

/** Steps of another seed between two runs of the same, for what it may leave behind. */
const STEPS_BETWEEN = 200;

/** `unit` is what the digests are of: one each, and the last of the end. */
export function firstDifference(
  known: readonly string[],
  again: readonly string[],
  how: string,
  unit: 'step' | 'action' = 'step',
): Difference | undefined {
  const length = Math.max(known.length, again.length);
  for (let index = 0; index < length; index += 1) {
    if (known[index] === again[index]) continue;
    const values = `${known[index] ?? 'its end'} at first, ${again[index] ?? 'its end'} ${how}`;
    return { step: index + 1, detail: `${unit} ${index + 1} is the first to differ: ${values}` };
  }
  return undefined;
}

/** Ids look like integers in the plain guise, and do not here. */
function anotherGuise(seed: Seed): Guise {
  const drawn = hashSeed(seed, 'poison', 0) & 0xff;
  return {
    poison: drawn === PLAIN_GUISE.poison ? 0 : drawn,
    tableSeed: { first: hashSeed(seed, 'table', 0), second: hashSeed(seed, 'table', 1) },
    prefix: 'id-',
  };
}

function nameOf({ poison, prefix }: Guise): string {
  return `in another guise (poison 0x${poison.toString(16)}, ids "${prefix}…", another table seed)`;
}

/** What fresh.ts prints: with another time zone and language, which must not matter either. */
export function freshDigests(args: readonly string[]): readonly string[] {
  const script = fileURLToPath(new URL('fresh.js', import.meta.url));
  const text = execFileSync(process.execPath, [script, ...args], {
    encoding: 'utf8',
    env: { ...process.env, TZ: 'Asia/Kathmandu', LC_ALL: 'tr_TR.UTF-8' },
    maxBuffer: 2 ** 30,
  });
  return text.trimEnd().split('\n');
}
