/**
 * Shows doc/benchmarks.json, which `npm run bench -- --json` writes: the parts of doc/BENCHMARKS.md between markers such as
 * `<!-- bench bars -->` and `<!-- end -->`, and the plot beside it. The prose stays by hand.
 */
import { join } from 'node:path';
import { alignTable } from '../../shell/config/markdown-table.ts';
import { BARS, compareWithBars } from '../bench/bars.ts';
import type { Machine } from '../bench/machine.ts';
import { PARTS } from '../bench/parts.ts';
import { ROOT } from '../bench/paths.ts';
import { plotRoundTrips } from '../bench/plot.ts';
import { readRecord, type BenchRecord } from '../bench/record.ts';

const RECORD = join(ROOT, 'doc/benchmarks.json');
/** The parts whose round trips are plotted. */
const PLOTTED = ['mmsg', 'dns'];

/** The document with what the record says now. Throws on a missing marker. */
export function benchmarksDocument(
  current: string,
  record: BenchRecord = readRecord(RECORD),
): string {
  return [...sections(record)].reduce((document, [name, body]) => {
    const section = new RegExp(`<!-- bench ${name} -->[^]*?<!-- end -->`);
    if (!section.test(document)) throw new Error(`missing marker: bench ${name}`);
    return document.replace(section, () => `<!-- bench ${name} -->\n\n${body}\n\n<!-- end -->`);
  }, current);
}

export function benchmarksPlot(record: BenchRecord = readRecord(RECORD)): string {
  return plotRoundTrips(
    PLOTTED.flatMap((name) => record.parts[name]?.results ?? []),
    {
      title:
        'Processor time of the proxy per round trip: median and quartiles, each load in its own scale',
      isOwn: (name) => /sozu-udp|mmsg/.test(name),
    },
  );
}

function sections(record: BenchRecord): ReadonlyMap<string, string> {
  return new Map([
    ['machine', machines(record)],
    ['bars', bars(record)],
    ...PARTS.map(({ name }): [string, string] => [`part ${name}`, part(record, name)]),
  ]);
}

/** Each machine with the parts that were measured there. */
function machines({ parts }: BenchRecord): string {
  const byMachine = new Map<string, string[]>();
  for (const [name, { machine }] of Object.entries(parts)) {
    const about = describe(machine);
    byMachine.set(about, [...(byMachine.get(about) ?? []), name]);
  }
  const lines = [...byMachine].map(([about, names]) => `- ${names.join(', ')}: ${about}.`);
  return lines.length === 0 ? NOTHING : lines.join('\n');
}

function describe(machine: Machine): string {
  const { processor, processors, architecture, memoryMiB, kernel, node, versions } = machine;
  const others = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const commit = `commit ${machine.commit}${machine.isClean ? '' : ' with changes'}`;
  return [
    `${processor}, ${processors} processors, ${architecture}, ${memoryMiB} MiB`,
    [`Linux ${kernel}`, `Node ${node.replace('v', '')}`, ...others].join(', '),
    `${commit}, ${machine.when.slice(0, 10)}`,
  ].join('; ');
}

function bars({ parts }: BenchRecord): string {
  const figures = Object.values(parts).flatMap((one) => one.figures);
  const verdicts = compareWithBars(figures, BARS);
  if (verdicts.length === 0) return NOTHING;
  const rows = verdicts.map(({ bar, value, met }) => [
    bar.figure,
    `${number(value)} ${bar.unit}`.trim(),
    `${number(bar.atMost)} ${bar.unit}`.trim(),
    met ? 'met' : '**missed**',
  ]);
  return alignTable([['figure', 'measured', 'at most', ''], ...rows]);
}

/** What it printed. */
function part({ parts }: BenchRecord, name: string): string {
  const lines = parts[name]?.lines;
  if (lines === undefined)
    return `No record yet: \`npm run bench -- ${name} --json doc/benchmarks.json\`.`;
  return ['```text', ...lines.join('\n').trim().split('\n'), '```'].join('\n');
}

const NOTHING = 'Nothing was measured yet.';

function number(value: number): string {
  return Math.abs(value) < 10 ? String(Number(value.toFixed(3))) : String(Math.round(value));
}
