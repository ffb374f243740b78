/** What a bench prints: tables for a reader. Pure: results in, lines out. */
import type { BalancingResult } from './balancing.ts';
import type { Verdict } from './bars.ts';
import type { InCoreResult, InsertTimes } from './in-core.ts';
import type { LatencyResult } from './latency.ts';
import type { MemoryResult } from './memory.ts';
import type { MillionResult } from './million.ts';
import type { Absent } from './presence.ts';
import type { PairedResult, Series } from './turns.ts';
import type { WorkersResult } from './workers.ts';
import type { SimulatedSoakResult } from './simulated-soak.ts';
import type { SimulatorFigure } from './simulator.ts';
import type { FlowListResult } from './flow-list.ts';
import type { SnapshotCost } from './snapshots.ts';
import type { SoakResult } from './soak.ts';
import type { Quartiles } from './statistics.ts';

export function pairedReport({ name, sliceMs, series }: PairedResult): string[] {
  const slices = series[0]?.nanoseconds.length ?? 0;
  return [
    `${name}: ${slices} slices of ${sliceMs} ms each in turn; processor time per round trip`,
    ...table([
      [
        '',
        'ns',
        '(quartiles)',
        'ratio',
        'paired',
        '(quartiles)',
        'trips/s',
        'lost',
        'load',
        'backend',
      ],
      ...series.map(seriesRow),
    ]),
  ];
}

function seriesRow(series: Series): string[] {
  return [
    series.name,
    whole(series.spread.median),
    between(series.spread, whole),
    series.ratio.toFixed(3),
    series.pairedRatio.median.toFixed(3),
    between(series.pairedRatio, (value) => value.toFixed(3)),
    whole(series.tripsPerSecond),
    whole(series.lost),
    whole(series.loadNanoseconds),
    whole(series.backendNanoseconds),
  ];
}

export function absentReport(absent: readonly Absent[]): string[] {
  return absent.length === 0
    ? []
    : ['', 'left out', ...absent.map(({ name, why }) => `  ${name}: ${why}`)];
}

export function workersReport({ sustained, atRate, shares }: WorkersResult): string[] {
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
  return [
    ...pairedReport(sustained),
    '',
    ...pairedReport(atRate),
    `  shares of the two workers: ${shares.map(percent).join(', ')}`,
  ];
}

export function latencyReport({ rate, flows, ways }: LatencyResult): string[] {
  return [
    `latency at ${whole(rate)} datagrams/s over ${whole(flows)} live flows, microseconds`,
    ...table([
      ['', 'p50', 'p99', 'p99.9', '(quartiles)', 'added p50', 'p99', 'p99.9', 'sent', 'lost'],
      ...ways.map(({ name, p50, p99, p999, added, sent, lost }) => [
        name,
        ...[p50.median, p99.median, p999.median].map(whole),
        between(p999, whole),
        ...[added.p50, added.p99, added.p999, sent, lost].map(whole),
      ]),
    ]),
  ];
}

export function memoryReport({ flows, heapPerFlow, tablePerFlow }: MemoryResult): string[] {
  const sum = whole(heapPerFlow + tablePerFlow);
  return [
    `bytes of a live flow over sockets, ${whole(flows)} of them: ${sum}`,
    `  taken when it came ${whole(heapPerFlow)}, its place in the tables ${whole(tablePerFlow)}`,
  ];
}

export function millionReport(result: MillionResult): string[] {
  const { flows, flowsPerTurn, runs, longestAdmission, longestExpiry, allAtOnce } = result;
  return [
    `${whole(flows)} flows come and go, ${flowsPerTurn} a turn; milliseconds, each of the best of ${runs} runs`,
    ...table([
      ['longest turn that admits', tenths(longestAdmission)],
      ['longest turn that closes', tenths(longestExpiry)],
      ['all due in one turn', tenths(allAtOnce)],
    ]),
  ];
}

export function soakReport(result: SoakResult): string[] {
  const { minutes, rate, flowsCreated, sent, answered, unevenSamples, samples } = result;
  const mebibytes = (bytes: number): string => tenths(bytes / 2 ** 20);
  return [
    `${minutes} minutes at ${whole(rate)} datagrams/s, ${whole(flowsCreated)} flows`,
    ...table([
      ['memory after the first minute, MiB', mebibytes(result.memoryEarly)],
      ['memory at the end, MiB', mebibytes(result.memoryLate)],
      ['samples with more or fewer descriptors than flows explain', `${unevenSamples}`],
      ['samples', `${samples.length + 1}`],
      ['datagrams sent', whole(sent)],
      ['without an answer', whole(sent - answered)],
      ['  dropped by the proxy', whole(result.droppedByProxy)],
      ['  dropped by the kernel', whole(result.droppedByKernel)],
      ['  unexplained', whole(result.unexplained)],
    ]),
  ];
}

export function simulatedSoakReport(result: SimulatedSoakResult): string[] {
  const { minutes, sent, heard, flows, memory } = result;
  const mebibytes = (bytes: number | undefined): string => tenths((bytes ?? 0) / 2 ** 20);
  return [
    `${minutes} simulated minutes: ${whole(sent)} datagrams, ${whole(heard)} answers, ${whole(flows)} flows`,
    `  memory after the first ${mebibytes(memory[0])} MiB, at the end ${mebibytes(memory.at(-1))} MiB`,
  ];
}

export function simulatorReport(figures: readonly SimulatorFigure[]): string[] {
  return [
    'steps of the simulator per second of one core, all checks on',
    ...table([
      ['scenario', 'steps/s', '(quartiles)'],
      ...figures.map(({ scenario, stepsPerSecond }) => [
        scenario,
        whole(stepsPerSecond.median),
        between(stepsPerSecond, whole),
      ]),
    ]),
  ];
}

export function flowListReport(result: FlowListResult): string[] {
  const { flows, bytes, parts, list, part, pauseListing, pauseQuiet } = result;
  const row = (name: string, times: Quartiles): string[] => [
    name,
    tenths(times.median),
    between(times, tenths),
  ];
  return [
    `a list of ${whole(flows)} live flows over the control socket: ${whole(bytes)} bytes in ${parts} parts`,
    ...table([
      ['', 'ms', '(quartiles)'],
      row('the list', list),
      row('processor time of a part', part),
      row('longest round trip beside it', pauseListing),
      row('longest round trip without it', pauseQuiet),
    ]),
  ];
}

export function snapshotReport(costs: readonly SnapshotCost[]): string[] {
  const times = (of: Quartiles): string[] => [
    of.median.toFixed(1),
    between(of, (one) => one.toFixed(1)),
  ];
  return [
    'a snapshot of a data plane, into new memory and into memory used before; what is left to do in slices;',
    'the way back; and client datagrams before it and after the way back',
    ...table([
      [
        'flows',
        'room',
        'bytes',
        'first: ms',
        '(quartiles)',
        'later: ms',
        '(quartiles)',
        'slice: ms',
        'restore: ms',
        '(quartiles)',
        'before: ns',
        'after: ns',
      ],
      ...costs.map(({ flows, room, bytes, first, later, slice, restore, before, restored }) => [
        whole(flows),
        whole(room),
        whole(bytes),
        ...times(first),
        ...times(later),
        slice.median.toFixed(2),
        ...times(restore),
        whole(before.median),
        whole(restored.median),
      ]),
    ]),
  ];
}

export function inCoreReport(result: InCoreResult): string[] {
  return [
    'processor time and bytes allocated per forwarded datagram, its input and address included',
    ...table([
      [
        'flows',
        'active',
        'client: ns',
        '(quartiles)',
        'bytes',
        'backend: ns',
        '(quartiles)',
        'bytes',
      ],
      ...result.forwarding.map((cost) => [
        whole(cost.flows),
        whole(cost.active),
        whole(cost.client.median),
        between(cost.client, whole),
        whole(cost.clientBytes),
        whole(cost.backend.median),
        between(cost.backend, whole),
        whole(cost.backendBytes),
      ]),
    ]),
    '',
    'bytes a flow at 100,000: ' +
      `flow table with index ${whole(result.tableBytesPerFlow)}, ` +
      `all of a manager ${whole(result.managerBytesPerFlow)}`,
    '',
    'inserts on the way to a million, microseconds, run by run',
    ...result.inserts.flatMap(insertLines),
  ];
}

export function balancingReport({ builds, selections }: BalancingResult): string[] {
  const milliseconds = (value: number): string => value.toFixed(2);
  return [
    'maglev build of 65,537 slots, milliseconds, each the best of its runs; slices are a turn each',
    ...table([
      ['backends', 'at once', 'slices', 'longest slice', 'new list', 'first selection'],
      ...builds.map((build) => [
        whole(build.backends),
        milliseconds(build.atOnce),
        whole(build.slices),
        milliseconds(build.longestSlice),
        milliseconds(build.change),
        milliseconds(build.firstSelection),
      ]),
    ]),
    '',
    'processor time per selection, once for each new flow; HRW hashes every candidate',
    ...table([
      ['backends', 'HRW: ns', '(quartiles)', 'MAGLEV: ns', '(quartiles)'],
      ...selections.map((cost) => [
        whole(cost.backends),
        whole(cost.rendezvous.median),
        between(cost.rendezvous, whole),
        whole(cost.maglev.median),
        between(cost.maglev, whole),
      ]),
    ]),
  ];
}

function insertLines(times: InsertTimes): string[] {
  const runs = (list: readonly number[]): string => list.map(whole).join('  ');
  return [
    `  ${times.name}: longest     ${runs(times.longest)}`,
    `  ${times.name}: 99.99 %     ${runs(times.tail)}`,
    `  ${times.name}: repeatable  ${whole(times.longestRepeatable)} (each insert in its best run)`,
  ];
}

export function verdictReport(verdicts: readonly Verdict[]): string[] {
  return table(
    verdicts.map(({ bar, value, met }) => [
      met ? 'met' : 'MISSED',
      bar.figure,
      `${round(value)} ${bar.unit}`.trimEnd(),
      `at most ${bar.atMost}`,
    ]),
    2,
  );
}

/** Columns as wide as their longest cell: `names` of them flush left, the rest, numbers, right. */
function table(rows: readonly (readonly string[])[], names = 1): string[] {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, at) =>
    Math.max(...rows.map((row) => row[at]?.length ?? 0)),
  );
  const pad = (cell: string, at: number): string =>
    at < names ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0);
  return rows.map((row) => `  ${row.map(pad).join('  ')}`);
}

function between({ lower, upper }: Quartiles, print: (value: number) => string): string {
  return `(${print(lower)} to ${print(upper)})`;
}

function whole(value: number): string {
  if (Number.isNaN(value)) return '-';
  return Math.round(value)
    .toString()
    .replaceAll(/\B(?=(\d{3})+$)/g, ',');
}

function round(value: number): string {
  return Math.abs(value) < 10 ? value.toFixed(3) : whole(value);
}

function tenths(value: number): string {
  return value.toFixed(1);
}
