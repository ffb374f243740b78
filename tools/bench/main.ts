/**
 * `npm run bench`: measures, prints, and with `--check` compares with bars.ts. Run alone, on an
 * idle machine.
 */
import { Argument, Command, InvalidArgumentError } from 'commander';
import { BARS, compareWithBars } from './bars.ts';
import { describeMachine } from './machine.ts';
import type { Context, Options, Part } from './part.ts';
import { PARTS } from './parts.ts';
import { killAll, placement } from './processes.ts';
import { addToRecord, type PartRecord } from './record.ts';
import { verdictReport } from './report.ts';

interface Words extends Options {
  readonly json?: string;
  readonly check?: boolean;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    killAll();
    process.exit(signal === 'SIGINT' ? 130 : 143);
  });
}

await new Command('npm run bench --')
  .description('Measures sozu-udp against others, the core alone, and the simulator. Linux only.')
  .addArgument(
    new Argument('[parts...]', 'what to measure')
      .choices(['all', ...PARTS.map(({ name }) => name)])
      .default(['all']),
  )
  .option('--slices <n>', 'slices of half a second that each program gets', parseCount, 24)
  .option('--minutes <n>', 'how long a soak is', parseCount, 5)
  .option('--floor <folder>', 'the folder of the C floors')
  .option('--sozu <file>', 'a binary of Sōzu')
  .option('--against <folder>', 'for cost: the built checkout of an earlier commit')
  .option('--json <file>', 'put what was measured into a file, beside other parts that it has')
  .option('--check', 'exit with 1 when a bar of tools/bench/bars.ts is missed')
  .addHelpText('after', moreHelp())
  .action(run)
  .parseAsync()
  .catch((error: unknown) => {
    killAll();
    note(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
  });

function moreHelp(): string {
  const parts = PARTS.map(({ name, meaning, inAll }) => {
    return `  ${name.padEnd(10)} ${meaning}${inAll ? '' : ' (not in all)'}`;
  });
  return `
Parts, in the order in which they run:
${parts.join('\n')}

Examples:
  npm run bench                                  all parts that "all" has, some twenty minutes
  npm run bench -- dgram --slices 48             one part, twice as long
  npm run bench -- mmsg --floor ../yardstick     the mmsg driver, the C floors beside it
  npm run bench -- soak --minutes 5              memory, descriptors and datagrams of five minutes at half load
  npm run bench -- cost --against ../earlier     what was built since costs a datagram, limits off and on
  npm run bench -- all --check --json out.json   for a record: compare, and keep the samples
  npm run bench -- mmsg --json doc/benchmarks.json && npm run generate    for the document`;
}

async function run(asked: readonly string[], words: Words): Promise<void> {
  const chosen = PARTS.filter(
    ({ name, inAll }) => asked.includes(name) || (asked.includes('all') && inAll),
  );
  const measured: Record<string, PartRecord> = {};
  for (const part of chosen) measured[part.name] = await runPart(part, words);
  const figures = Object.values(measured).flatMap((one) => one.figures);
  const verdicts = compareWithBars(figures, BARS);
  if (verdicts.length > 0) print(['', ...verdictReport(verdicts)]);
  if (words.json !== undefined) {
    addToRecord(words.json, measured);
    note(`wrote ${words.json}`);
  }
  if (words.check === true && verdicts.some(({ met }) => !met)) process.exitCode = 1;
}

async function runPart(part: Part, options: Options): Promise<PartRecord> {
  const lines: string[] = [];
  const context = contextOf(part, options, (printed) => {
    lines.push(...printed);
    print(printed);
  });
  const { figures, results = [], data } = await part.run(context);
  return { machine: describeMachine(), slices: options.slices, lines, figures, results, data };
}

function contextOf({ name }: Part, options: Options, show: Context['print']): Context {
  const places = placement();
  if (places.proxy === undefined)
    note('processes are not pinned: taskset or a processor is missing');
  return {
    options,
    placement: places,
    progress: (text) => note(`${name}: ${text}`),
    print: show,
    collect: () => {
      if (globalThis.gc === undefined) throw new Error('start with node --expose-gc, as npm does');
      globalThis.gc();
    },
  };
}

function parseCount(text: string): number {
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
