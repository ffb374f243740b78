#!/usr/bin/env node
/** The command line of the simulator: `npm run sim -- …`. */
import { accessSync, constants, readFileSync, statSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { Command } from 'commander';
import { SCENARIOS, WORLD_SCENARIOS, worldNamed } from '../../scenarios/index.ts';
import { repetitionOf } from './check.ts';
import { readCatalogue } from './catalogue.ts';
import { ShapeError } from './json-reader.ts';
import { toJunit } from './junit.ts';
import { Narrator } from './narrate.ts';
import { seedsOf } from './plan.ts';
import { printable } from './printable.ts';
import { Progress } from './progress.ts';
import { mergeReports, readReport } from './read-report.ts';
import { registerReplay, replayFiles } from './replay.ts';
import { EXIT_CODES, toReport, type Outcome, type Timing } from './report.ts';
import { runChunk } from './run-chunk.ts';
import { runWorldChunk } from './run-world-chunk.ts';
import { readSettings, UsageError, type Flags, type Settings } from './settings.ts';
import { registerShrink } from './shrink.ts';
import { summarize } from './summary.ts';
import { Sweep, type SweepResult } from './sweep.ts';
import { WorldNarrator } from './world-narrate.ts';

const EXIT_USAGE = 2;
const EXIT_BUG = 70;

/** A reader that has seen enough, such as `head`, ends this program without a word. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? 0 : EXIT_BUG);
});
await program().parseAsync().catch(giveUp);

function program(): Command {
  const command = new Command('npm run sim --')
    .description(
      'Runs the flow machine, or the whole proxy in a world, through seeded, adversarial days, all of it checked.',
    )
    .enablePositionalOptions()
    .option('--seeds <n>', 'how many seeds (SOZU_UDP_SIM_SEEDS; default 256)')
    .option('--first-seed <seed>', 'the first of them, decimal or 0x hexadecimal (default 0)')
    .option('--steps <n>', 'steps of a seed, not of worlds (SOZU_UDP_SIM_STEPS; default 3000)')
    .option('--seed <seed>', 'run one seed and tell every step (SOZU_UDP_SIM_SEED)')
    .option('--replay <file>', 'replay a file: one of replays/, or a trace of production')
    .option('--jobs <n>', 'worker threads (default: one for each core)')
    .option('--shard <i/n>', 'only part i of n, counted from 1')
    .option('--scenario <name>', 'one scenario instead of default and swarm')
    .option('--all', 'all scenarios of worlds, --seeds of each, then default and swarm')
    .option('--list', 'print the scenarios')
    .option('--json <file>', 'write the report for programs')
    .option('--junit <file>', 'write the report as JUnit XML')
    .option(
      '--check-determinism [percent]',
      'repeat seeds with all changed that must not matter, and compare every step',
    )
    .option('--bail', 'stop at the first failure')
    .option('--verbose', 'print the digest of each seed, and all properties')
    .helpOption('--help', 'print this help')
    .showHelpAfterError('(--help tells more)')
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : EXIT_USAGE))
    .addHelpText('after', examples())
    .action(runSweep);
  command
    .command('merge')
    .description('join the reports of all shards into the report of a single run')
    .argument('<files...>', 'reports that --json wrote')
    .option('--json <file>', 'write the report for programs')
    .option('--junit <file>', 'write the report as JUnit XML')
    .addHelpText('after', '\nExample:\n  npm run sim -- merge shard-*.json --json sweep.json')
    .action(runMerge);
  registerShrink(command);
  registerReplay(command);
  return command;
}

function examples(): string {
  return `
Examples:
  npm run sim                                           the default sweep, 256 seeds of 3000 steps
  npm run sim -- --seeds 1024 --steps 5000              a wider and deeper one
  SOZU_UDP_SIM_SEED=0xdeadbeef npm run sim              one seed, every step told
  npm run sim -- --scenario swarm --bail                one scenario, up to the first failure
  npm run sim -- --all                                  every scenario of worlds, 256 seeds each
  npm run sim -- --scenario dns-burst --seeds 16        one of them
  npm run sim -- --seeds 64 --check-determinism         is a run a function of its seed?
  npm run sim -- shrink --scenario swarm --seed 0x2a    the fewest actions by which it fails
  npm run sim -- --seeds 1000000 --shard 3/8 --json 3.json
  npm run sim -- merge 1.json 2.json 3.json 4.json 5.json 6.json 7.json 8.json

Exit codes: 0 green, 1 failed or stale, 2 usage, 130 interrupted. More: doc/SIMULATION.md`;
}

interface MoreFlags extends Flags {
  readonly list?: true;
  readonly replay?: string;
}

async function runSweep(flags: MoreFlags): Promise<void> {
  if (flags.list === true) return listScenarios();
  if (flags.replay !== undefined) {
    if (!replayFiles([flags.replay], false, print)) process.exitCode = EXIT_CODES.failed;
    return undefined;
  }
  const settings = readSettings(flags, process.env, availableParallelism());
  checkWritable(settings.json);
  checkWritable(settings.junit);
  const begun = performance.now();
  const used = process.cpuUsage();
  const running = settings.single ? tellSeed(settings) : sweepSeeds(settings);
  // While the workers start.
  const { catalogue, problems } = readCatalogue(settings.plan);
  const { legs, ending, threads } = await running;
  const outcome = { plan: settings.plan, legs, ending, catalogue, problems };
  const seconds = (performance.now() - begun) / 1_000;
  const { user, system } = process.cpuUsage(used);
  const busy = shareOut((user + system) / 1_000_000, threads);
  finish(outcome, { seconds, jobs: settings.jobs, node: process.version, busy }, settings);
}

function runMerge(files: string[], flags: Pick<Flags, 'json' | 'junit'>): void {
  checkWritable(flags.json);
  checkWritable(flags.junit);
  const { outcome, timing } = mergeReports(files.map((file) => readReport(read(file), file)));
  finish(outcome, timing, flags);
}

function listScenarios(): void {
  for (const { name, purpose, share } of SCENARIOS) {
    const swept = share > 0 ? `${share * 100} % of a plain sweep` : 'by name only';
    print(`${name.padEnd(16)} ${purpose} (${swept})\n`);
  }
  for (const { name, purpose } of WORLD_SCENARIOS) print(`${name.padEnd(16)} ${purpose} (world)\n`);
}

function sweepSeeds({ plan, jobs, bail, verbose, check }: Settings): Promise<SweepResult> {
  const progress = new Progress(seedsOf(plan), {
    isTerminal: process.stderr.isTTY,
    write: (text) => process.stderr.write(text),
    now: () => performance.now() / 1_000,
  });
  const sweep = new Sweep(plan, {
    jobs,
    bail,
    check,
    onProgress: (seeds, steps) => progress.add(seeds, steps),
    ...(verbose ? { onLine: (line: string): void => print(`${line}\n`) } : {}),
  });
  const interrupt = (): void => sweep.interrupt();
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
  return sweep.run().finally(() => {
    progress.end();
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  });
}

/** On this thread, so that every line comes when it happens. */
async function tellSeed({ plan, check }: Settings): Promise<SweepResult> {
  const scenario = plan.scenario ?? 'default';
  const seeds = [{ seed: plan.firstSeed, repetition: repetitionOf(check, 0) }];
  const task = { scenario, steps: plan.steps, seeds, bail: false };
  const world = worldNamed(scenario);
  const tell = (line: string): void => print(`${line}\n`);
  const { leg, seconds } =
    world === undefined
      ? runChunk(task, undefined, new Narrator(tell))
      : await runWorldChunk(world, task, undefined, new WorldNarrator(tell));
  return { legs: [leg], ending: 'complete', threads: { [scenario]: seconds } };
}

interface Destination {
  readonly json?: string | undefined;
  readonly junit?: string | undefined;
  readonly verbose?: boolean;
}

function finish(outcome: Outcome, timing: Timing, to: Destination): void {
  const report = toReport(outcome, timing);
  // First for people: a disk that filled up meanwhile takes the files alone.
  print(summarize(report, { colour: hasColour(), verbose: to.verbose ?? false }));
  if (to.json !== undefined) write(to.json, `${JSON.stringify(report, undefined, 2)}\n`);
  if (to.junit !== undefined) write(to.junit, toJunit(report));
  process.exitCode = EXIT_CODES[report.verdict];
}

/** Threads share the processor with others; only the whole process knows what it really got of it. */
function shareOut(processor: number, threads: SweepResult['threads']): Timing['busy'] {
  const all = Object.values(threads).reduce((sum, seconds) => sum + seconds, 0);
  const share = all === 0 ? 0 : processor / all;
  return Object.fromEntries(
    Object.entries(threads).map(([name, seconds]) => [name, seconds * share]),
  );
}

function hasColour(): boolean {
  return process.stdout.isTTY && (process.env['NO_COLOR'] ?? '') === '';
}

function print(text: string): void {
  process.stdout.write(text);
}

/** A sweep of hours must not end with a report that cannot be written. */
function checkWritable(file: string | undefined): void {
  if (file === undefined) return;
  try {
    const status = statSync(file, { throwIfNoEntry: false });
    const isFolder = file === '' || status?.isDirectory() === true;
    if (isFolder) throw new UsageError(`cannot write ${file}: not the name of a file`);
    accessSync(status === undefined ? dirname(file) : file, constants.W_OK);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`cannot write ${file}: it, or its folder, may not be written to`);
  }
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw new UsageError(`cannot write ${file}: ${messageOf(error)}`);
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`cannot read ${file}: ${messageOf(error)}`);
  }
}

function giveUp(error: unknown): never {
  const isUsage = error instanceof UsageError || error instanceof ShapeError;
  const stack = error instanceof Error ? error.stack : undefined;
  const told = isUsage ? messageOf(error) : (stack ?? messageOf(error));
  process.stderr.write(printable(`error: ${told}\n`));
  process.exit(isUsage ? EXIT_USAGE : EXIT_BUG);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
