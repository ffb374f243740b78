/**
 * `npm run bench`: measures, prints, and with `--check` compares with bars.ts. Run alone, on an
 * idle machine.
 */
import { writeFileSync } from 'node:fs';
import { arch, cpus, release } from 'node:os';
import { resolve } from 'node:path';
import { Command, InvalidArgumentError, Argument } from 'commander';
import { measureBalancing, type BalancingResult } from './balancing.ts';
import {
  balancingFigures,
  BARS,
  compareWithBars,
  flowListFigures,
  inCoreFigures,
  pairedFigures,
  type Figure,
  type Verdict,
} from './bars.ts';
import {
  CONTROL,
  LIMITED,
  PRODUCT,
  productOf,
  RECORDED,
  UNRECORDED,
  UNRECORDED_AGAIN,
  YARDSTICK,
  type Contender,
} from './contenders.ts';
import { measureFlowList } from './flow-list.ts';
import { measureInCore, type InCoreResult } from './in-core.ts';
import { measurePaired, type PairedResult } from './paired.ts';
import { preparePeers, type Load } from './peers.ts';
import { killAll, placement } from './processes.ts';
import {
  balancingReport,
  flowListReport,
  inCoreReport,
  pairedReport,
  simulatorReport,
  snapshotReport,
  verdictReport,
} from './report.ts';
import { measureSimulator, type SimulatorFigure } from './simulator.ts';
import { measureSnapshots } from './snapshots.ts';

interface Options {
  readonly slices: number;
  readonly json?: string;
  readonly check?: boolean;
  readonly against?: string;
}

const LOADS: readonly Load[] = [
  { flows: 16, window: 16, bytes: 64 },
  { flows: 1_000, window: 1, bytes: 64 },
];
const DGRAM_CONTENDERS: readonly Contender[] = [YARDSTICK, PRODUCT, CONTROL];
/** The recorder off, on, and off once more: how far from 1 the last one lies is how far to trust the other. */
const RECORDER_CONTENDERS: readonly Contender[] = [UNRECORDED, RECORDED, UNRECORDED_AGAIN];
const SLICE_MS = 500;
const WARM_UP_MS = 2_000;

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    killAll();
    process.exit(signal === 'SIGINT' ? 130 : 143);
  });
}

await new Command('npm run bench --')
  .description(
    'Measures sozu-udp against a minimal node:dgram forwarder, the core alone, and the simulator.',
  )
  .addArgument(
    new Argument('[part]', 'what to measure')
      .choices([
        'dgram',
        'cost',
        'recorder',
        'core',
        'balancing',
        'sim',
        'snapshot',
        'flows',
        'all',
      ])
      .default('all'),
  )
  .option('--slices <n>', 'slices of half a second that each program gets', parseSlices, 24)
  .option('--against <folder>', 'for cost: the built checkout of an earlier commit')
  .option('--json <file>', 'write every sample to a file')
  .option('--check', 'exit with 1 when a bar of tools/bench/bars.ts is missed')
  .addHelpText('after', examples())
  .action((part: string, options: Options) => {
    if (part === 'snapshot') return runSnapshots();
    return part === 'flows' ? runFlowList(options) : run(part, options);
  })
  .parseAsync()
  .catch((error: unknown) => {
    killAll();
    note(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
  });

function examples(): string {
  return `
Examples:
  npm run bench                                  everything, some three minutes
  npm run bench -- dgram --slices 48             only the paired run, twice as long
  npm run bench -- balancing                     only how long tables and selections take, some seconds
  npm run bench -- snapshot                      only what snapshots cost
  npm run bench -- flows                         a list of 10,000 live flows, and what datagrams feel of it
  npm run bench -- cost --against ../earlier     what was built since costs a datagram, limits off and on
  npm run bench -- recorder --slices 60          what the flight recorder costs a datagram
  npm run bench -- all --check --json out.json   for a record: compare, and keep the samples`;
}

async function run(part: string, options: Options): Promise<void> {
  const asksFor = (name: string): boolean => partsOf(part).includes(name);
  const pair = async (
    name: string,
    contenders: () => readonly Contender[],
  ): Promise<PairedResult[]> => (asksFor(name) ? runPaired(contenders(), options.slices) : []);
  const dgram = await pair('dgram', () => DGRAM_CONTENDERS);
  const cost = await pair('cost', () => costContenders(options));
  const recorder = await pair('recorder', () => RECORDER_CONTENDERS);
  const core = asksFor('core') ? runInCore() : undefined;
  const balancing = asksFor('balancing') ? runBalancing() : undefined;
  const sim = asksFor('sim') ? runSimulator(options.slices) : [];
  const figures = [
    ...dgram.flatMap((result) => pairedFigures(result, 'dgram')),
    ...cost.flatMap((result) => pairedFigures(result, 'cost')),
    ...recorder.flatMap((result) => pairedFigures(result, 'recorder')),
    ...(core === undefined ? [] : inCoreFigures(core)),
    ...(balancing === undefined ? [] : balancingFigures(balancing)),
  ];
  const verdicts = compareWithBars(figures, BARS);
  if (verdicts.length > 0) print(['', ...verdictReport(verdicts)]);
  if (options.json !== undefined)
    writeRecord(options.json, { dgram, cost, recorder, core, balancing, sim, figures, verdicts });
  if (options.check === true && verdicts.some(({ met }) => !met)) process.exitCode = 1;
}

/** What a word asks for. The cost needs an earlier build, so it has to be asked for by name. */
function partsOf(word: string): readonly string[] {
  if (word === 'all') return ['dgram', 'core', 'balancing', 'sim'];
  return word === 'core' ? ['core', 'balancing'] : [word];
}

/** The earlier build against today's, without and with limits; and against itself. */
function costContenders({ against }: Options): Contender[] {
  if (against === undefined) throw new Error('cost needs --against FOLDER: a built checkout');
  const root = resolve(against);
  return [productOf('earlier', root), PRODUCT, LIMITED, productOf('control', root)];
}

async function runPaired(
  contenders: readonly Contender[],
  slices: number,
): Promise<PairedResult[]> {
  const peers = preparePeers(note);
  const places = placement();
  if (places.proxy === undefined)
    note('processes are not pinned: taskset or a processor is missing');
  const results: PairedResult[] = [];
  for (const load of LOADS) {
    const prefix = `${load.flows} x ${load.window}: `;
    const result = await measurePaired(contenders, load, {
      slices,
      sliceMs: SLICE_MS,
      warmUpMs: WARM_UP_MS,
      peers,
      placement: places,
      progress: (text) => note(prefix + text),
    });
    results.push(result);
    print(['', ...pairedReport(result)]);
  }
  return results;
}

function runInCore(): InCoreResult {
  if (globalThis.gc === undefined) throw new Error('start with node --expose-gc, as npm does');
  const collect = globalThis.gc;
  const result = measureInCore({
    rounds: 15,
    datagrams: 200_000,
    inserts: 1_000_000,
    insertRuns: 8,
    collect: () => collect(),
    progress: (text) => note(`core: ${text}`),
  });
  print(['', ...inCoreReport(result)]);
  return result;
}

function runBalancing(): BalancingResult {
  const result = measureBalancing((text) => note(`balancing: ${text}`));
  print(['', ...balancingReport(result)]);
  return result;
}

/** No bar holds them: what they cost is mostly new memory, which a busy machine gives slowly. */
function runSnapshots(): void {
  print(['', ...snapshotReport(measureSnapshots([10_000, 100_000]))]);
}

async function runFlowList({ slices, check }: Options): Promise<void> {
  const result = await measureFlowList({
    rounds: slices,
    peers: preparePeers(note),
    placement: placement(),
    progress: (text) => note(`flows: ${text}`),
  });
  const verdicts = compareWithBars(flowListFigures(result), BARS);
  print(['', ...flowListReport(result), '', ...verdictReport(verdicts)]);
  if (check === true && verdicts.some(({ met }) => !met)) process.exitCode = 1;
}

function runSimulator(slices: number): SimulatorFigure[] {
  const figures = measureSimulator({
    slices,
    seedsPerSlice: 8,
    steps: 5_000,
    progress: (text) => note(`sim: ${text}`),
  });
  print(['', ...simulatorReport(figures)]);
  return figures;
}

interface Measured {
  readonly dgram: readonly PairedResult[];
  readonly cost: readonly PairedResult[];
  readonly recorder: readonly PairedResult[];
  readonly core: InCoreResult | undefined;
  readonly balancing: BalancingResult | undefined;
  readonly sim: readonly SimulatorFigure[];
  readonly figures: readonly Figure[];
  readonly verdicts: readonly Verdict[];
}

function writeRecord(file: string, measured: Measured): void {
  const machine = {
    processor: cpus()[0]?.model ?? 'unknown',
    processors: cpus().length,
    architecture: arch(),
    kernel: release(),
    node: process.version,
    when: new Date().toISOString(),
  };
  writeFileSync(file, `${JSON.stringify({ machine, ...measured }, undefined, 2)}\n`);
  note(`wrote ${file}`);
}

function parseSlices(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1) throw new InvalidArgumentError('a number from 1 up');
  return count;
}

function note(text: string): void {
  process.stderr.write(`bench: ${text}\n`);
}

function print(lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`);
}
