/** The command `shrink`: from a failing seed to a small replay file. */
import { basename } from 'node:path';
import { InvalidArgumentError, type Command } from 'commander';
import { DEFAULT } from '../../scenarios/default.ts';
import { scenarioNamed, SCENARIOS, WORLD_SCENARIOS, worldNamed } from '../../scenarios/index.ts';
import { encodeReplay, makeReplay } from '../core-harness/replay.ts';
import type { Scenario } from '../core-harness/scenario.ts';
import { shrinkSeed, type Shrunk } from '../core-harness/shrink.ts';
import { parseSeed, printSeed, type Seed } from '../seed.ts';
import { encodeWorldReplay, makeWorldReplay } from '../world/world-replay.ts';
import type { WorldScenario } from '../world/world-scenario.ts';
import { shrinkWorldSeed, type ShrunkWorld } from '../world/world-shrink.ts';
import { isWorld } from './plan.ts';
import { printable } from './printable.ts';
import { writeReplay } from './replay.ts';
import { UsageError } from './settings.ts';
import { vitestCase } from './vitest-case.ts';
import { describeWorldAction } from './world-narrate.ts';

/** Adds `shrink` to the program. Exit code 1 if the seed holds. */
export function registerShrink(program: Command): void {
  program
    .command('shrink')
    .description('make the run of a failing seed as small as it gets')
    .requiredOption('--seed <seed>', 'decimal or 0x hexadecimal', toSeed)
    .option('--scenario <name>', 'the one it failed in (default: default)', toScenario)
    .option('--steps <count>', 'steps of the run, not of a world', toCount, 3_000)
    .option('--out <file>', 'write a replay file: replays/NAME.json')
    .option('--test', 'print a vitest case that needs neither file nor seed; not of a world')
    .action((flags: ShrinkFlags, command: Command) => {
      const { scenario = DEFAULT } = flags;
      if (isWorld(scenario)) return shrinkInWorld(scenario, flags, command);
      return shrinkAlone(scenario, flags, command);
    });
}

interface ShrinkFlags {
  readonly seed: Seed;
  readonly scenario?: Scenario | WorldScenario;
  readonly steps: number;
  readonly out?: string;
  readonly test?: boolean;
}

function shrinkAlone(scenario: Scenario, flags: ShrinkFlags, command: Command): void {
  const { seed, steps } = flags;
  const shrunk = shrinkSeed(scenario, seed, steps);
  if (shrunk === undefined) {
    process.exitCode = 1;
    return write(command, `${seedOf(seed, scenario)} holds for ${steps} steps\n`);
  }
  return write(command, keep(shrunk, scenario, flags));
}

async function shrinkInWorld(
  scenario: WorldScenario,
  { seed, out, test = false }: ShrinkFlags,
  command: Command,
): Promise<void> {
  if (test) throw new UsageError('--test: a world does not fit into a test; keep it by --out');
  const shrunk = await shrinkWorldSeed(scenario, seed);
  if (shrunk === undefined) {
    process.exitCode = 1;
    return write(command, `${seedOf(seed, scenario)} holds\n`);
  }
  write(command, describeWorld(shrunk));
  if (out === undefined) return undefined;
  const kept = makeWorldReplay(nameOf(out), `Found by ${seedOf(seed, scenario)}.`, shrunk);
  writeReplay(out, encodeWorldReplay(kept));
  return write(command, written(out));
}

/** Writes and prints what was asked for. */
function keep(
  shrunk: Shrunk,
  scenario: Scenario,
  { seed, out, test = false }: ShrinkFlags,
): string {
  const told = describe(shrunk);
  if (out === undefined && !test) return told;
  if (scenario.watch !== undefined) {
    return `${told}\nThe property belongs to scenario ${scenario.name}: a replay cannot see it.\n`;
  }
  const name = out === undefined ? `seed-${printSeed(seed)}` : nameOf(out);
  const kept = makeReplay(name, `Found by ${seedOf(seed, scenario)}.`, shrunk);
  if (out !== undefined) writeReplay(out, encodeReplay(kept));
  return test ? vitestCase(kept) : told + (out === undefined ? '' : written(out));
}

function nameOf(file: string): string {
  return basename(file, '.json');
}

function written(file: string): string {
  return `\nwritten to ${file}: now say there what it shows\n`;
}

function describe(shrunk: Shrunk): string {
  const lines = shrunk.actions.map(({ kind, ...rest }) => {
    const parameters = JSON.stringify(rest);
    return parameters === '{}' ? `  ${kind}\n` : `  ${kind} ${parameters}\n`;
  });
  return headline(shrunk, shrunk.actions.length) + lines.join('');
}

function describeWorld(shrunk: ShrunkWorld): string {
  const { clients, backends, proxies } = shrunk.spec;
  const crowd = `${counted(clients.length, 'client')}, ${counted(backends.length, 'backend')}`;
  const lines = shrunk.script.map(({ action, at }) => `  ${describeWorldAction(action, at)}\n`);
  const who = `${counted(proxies.length, 'proxy', 'proxies')}, ${crowd}; phases are not counted\n`;
  return headline(shrunk, shrunk.actions) + who + lines.join('');
}

function headline(
  { property, runs, isMinimal }: Pick<Shrunk, 'property' | 'runs' | 'isMinimal'>,
  actions: number,
): string {
  const size = actions === 1 ? 'one action' : `${actions} actions`;
  const limit = isMinimal ? '' : '; a limit ended the search, so it may not be the smallest';
  return `violated: ${property}\n${size} left after ${runs} runs${limit}\n`;
}

function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

function seedOf(seed: Seed, { name }: Pick<Scenario, 'name'>): string {
  return `seed ${printSeed(seed)} of scenario ${name}`;
}

function toSeed(text: string): Seed {
  const parsed = parseSeed(text);
  if (!parsed.ok) throw new InvalidArgumentError(parsed.problem);
  if (parsed.seed === undefined) throw new InvalidArgumentError('a seed is missing');
  return parsed.seed;
}

function toScenario(name: string): Scenario | WorldScenario {
  const found = scenarioNamed(name) ?? worldNamed(name);
  if (found !== undefined) return found;
  const names = [...SCENARIOS, ...WORLD_SCENARIOS].map((scenario) => scenario.name).join(', ');
  throw new InvalidArgumentError(`expected one of ${names}`);
}

function toCount(text: string): number {
  if (!/^[1-9][0-9]{0,8}$/.test(text)) throw new InvalidArgumentError('expected a count above 0');
  return Number(text);
}

function write(command: Command, text: string): void {
  command.configureOutput().writeOut?.(printable(text));
}
