/** The commands `shrink` and `replay`: from a failing seed to a small replay file, and what such files do today. */
import { readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { InvalidArgumentError, type Command } from 'commander';
import { DEFAULT } from '../../scenarios/default.ts';
import { SCENARIOS } from '../../scenarios/index.ts';
import { decodeReplay } from '../core-harness/replay-decode.ts';
import { encodeReplay, makeReplay, verifyReplay, type Replay } from '../core-harness/replay.ts';
import type { Scenario } from '../core-harness/scenario.ts';
import { shrinkSeed, type Shrunk } from '../core-harness/shrink.ts';
import { parseSeed, printSeed, type Seed } from '../seed.ts';
import { printable } from './printable.ts';
import { UsageError } from './settings.ts';
import { vitestCase } from './vitest-case.ts';

/** Adds `shrink` to the program. Exit code 1 if the seed holds. */
export function registerShrink(program: Command): void {
  program
    .command('shrink')
    .description('make the run of a failing seed as small as it gets')
    .requiredOption('--seed <seed>', 'decimal or 0x hexadecimal', toSeed)
    .option('--scenario <name>', 'the one it failed in (default: default)', toScenario)
    .option('--steps <count>', 'steps of the run', toCount, 3_000)
    .option('--out <file>', 'write a replay file: replays/NAME.json')
    .option('--test', 'print a vitest case that needs neither file nor seed')
    .action((flags: ShrinkFlags, command: Command) => {
      const options = { ...flags, scenario: flags.scenario ?? DEFAULT };
      const shrunk = shrinkSeed(options.scenario, options.seed, options.steps);
      if (shrunk === undefined) {
        process.exitCode = 1;
        write(command, `${seedOf(options)} holds for ${options.steps} steps\n`);
      } else {
        write(command, keep(shrunk, options));
      }
    });
}

/** Adds `replay` to the program. Exit code 1 unless each file does what it is marked with. */
export function registerReplay(program: Command): void {
  program
    .command('replay <files...>')
    .description('say of each replay file what it does today: fixed, reproduces or stale')
    .option('--accept', 'mark each with what it does today')
    .action((files: readonly string[], options: { accept?: boolean }, command: Command) => {
      for (const file of files) {
        const { told, isAsMarked } = replay(file, options.accept ?? false);
        if (!isAsMarked) process.exitCode = 1;
        write(command, `${file}: ${told}\n`);
      }
    });
}

interface ShrinkFlags {
  readonly seed: Seed;
  readonly scenario?: Scenario;
  readonly steps: number;
  readonly out?: string;
  readonly test?: boolean;
}

interface ShrinkOptions extends ShrinkFlags {
  readonly scenario: Scenario;
}

/** Writes and prints what was asked for. */
function keep(shrunk: Shrunk, options: ShrinkOptions): string {
  const { scenario, out, test = false } = options;
  const told = describe(shrunk);
  if (out === undefined && !test) return told;
  if (scenario.watch !== undefined) {
    return `${told}\nThe property belongs to scenario ${scenario.name}: a replay cannot see it.\n`;
  }
  const name = out === undefined ? `seed-${printSeed(options.seed)}` : basename(out, '.json');
  const kept = makeReplay(name, `Found by ${seedOf(options)}.`, shrunk);
  if (out !== undefined) writeReplay(out, kept);
  const written = out === undefined ? '' : `\nwritten to ${out}: now say there what it shows\n`;
  return test ? vitestCase(kept) : told + written;
}

function describe({ property, actions, runs, isMinimal }: Shrunk): string {
  const size = actions.length === 1 ? 'one action' : `${actions.length} actions`;
  const limit = isMinimal ? '' : '; a limit ended the search, so it may not be the smallest';
  const lines = actions.map(({ kind, ...rest }) => {
    const parameters = JSON.stringify(rest);
    return parameters === '{}' ? `  ${kind}\n` : `  ${kind} ${parameters}\n`;
  });
  return `violated: ${property}\n${size} left after ${runs} runs${limit}\n${lines.join('')}`;
}

interface Replayed {
  readonly told: string;
  readonly isAsMarked: boolean;
}

function replay(file: string, accept: boolean): Replayed {
  const decoding = decodeReplay(attempt('read', file, () => readFileSync(file, 'utf8')));
  if (!decoding.ok) {
    const problems = decoding.problems.map(({ path, problem }) => `${path} ${problem}`);
    return { told: `stale: ${problems.join('; ')}`, isAsMarked: false };
  }
  const { name, shows, outcome } = decoding.replay;
  if (accept) {
    const accepted = makeReplay(name, shows, decoding.replay);
    writeReplay(file, accepted);
    return { told: `marked as ${accepted.outcome}`, isAsMarked: true };
  }
  const verdict = verifyReplay(decoding.replay);
  if (verdict.kind === 'stale') return { told: `stale: ${verdict.reason}`, isAsMarked: false };
  if (verdict.kind === outcome) return { told: outcome, isAsMarked: true };
  return { told: `${verdict.kind}, but it is marked as ${outcome}`, isAsMarked: false };
}

function writeReplay(file: string, kept: Replay): void {
  attempt('write', file, () => writeFileSync(file, encodeReplay(kept)));
}

/** A file that is not there is the caller's mistake, not a bug. */
function attempt<T>(what: 'read' | 'write', file: string, access: () => T): T {
  try {
    return access();
  } catch (error) {
    throw new UsageError(`cannot ${what} ${file}: ${error instanceof Error ? error.message : ''}`);
  }
}

function seedOf({ seed, scenario }: ShrinkOptions): string {
  return `seed ${printSeed(seed)} of scenario ${scenario.name}`;
}

function toSeed(text: string): Seed {
  const parsed = parseSeed(text);
  if (!parsed.ok) throw new InvalidArgumentError(parsed.problem);
  if (parsed.seed === undefined) throw new InvalidArgumentError('a seed is missing');
  return parsed.seed;
}

function toScenario(name: string): Scenario {
  const found = SCENARIOS.find((scenario) => scenario.name === name);
  if (found !== undefined) return found;
  const names = SCENARIOS.map((scenario) => scenario.name).join(', ');
  throw new InvalidArgumentError(`expected one of ${names}`);
}

function toCount(text: string): number {
  if (!/^[1-9][0-9]{0,8}$/.test(text)) throw new InvalidArgumentError('expected a count above 0');
  return Number(text);
}

function write(command: Command, text: string): void {
  command.configureOutput().writeOut?.(printable(text));
}
