/**
 * The bars a bench is held to with `--check`, and the figures they are compared with. Data: main.ts
 * prints and compares.
 */
import type { BalancingResult } from './balancing.ts';
import type { FlowListResult } from './flow-list.ts';
import type { LatencyResult } from './latency.ts';
import type { InCoreResult } from './in-core.ts';
import { BURSTS, LARGE_DATAGRAMS, loadName, MANY_FLOWS, SMALL_LOADS, type Load } from './loads.ts';
import type { MemoryResult } from './memory.ts';
import type { MillionResult } from './million.ts';
import type { SimulatedSoakResult } from './simulated-soak.ts';
import type { SoakResult } from './soak.ts';
import type { PairedResult } from './turns.ts';
import type { WorkersResult } from './workers.ts';

export interface Figure {
  readonly name: string;
  readonly value: number;
}

export interface Bar {
  readonly figure: string;
  readonly atMost: number;
  readonly unit: string;
}

/** Of a paired part: the ratio of `pair` under each of `loads`. */
function ratios(
  part: string,
  pair: string,
  loads: readonly Load[],
  limits: readonly number[],
): Bar[] {
  return loads.map((load, at) => {
    const atMost = limits[at] ?? limits[0] ?? Number.NaN;
    return { figure: `${part}, ${loadName(load)}, ${pair}`, atMost, unit: '' };
  });
}

const MMSG_LOADS: readonly Load[] = [...SMALL_LOADS, MANY_FLOWS, LARGE_DATAGRAMS];

export const BARS: readonly Bar[] = [
  ...ratios('dgram', 'sozu-udp dgram over yardstick', SMALL_LOADS, [1.15]),
  ...ratios('mmsg', 'sozu-udp mmsg over floor-gso', MMSG_LOADS, [1.2, 1.2, 1.2, 1.25, 1.2]),
  ...ratios('mmsg', 'sozu-udp mmsg over nginx', MMSG_LOADS, [0.5, 0.65, 0.75, 0.75, 0.55]),
  ...ratios('mmsg', 'sozu-udp mmsg over floor-gso gro', [BURSTS], [1.25]),
  { figure: 'latency, sozu-udp mmsg above nginx, p50', atMost: 0, unit: 'us' },
  { figure: 'latency, sozu-udp mmsg above nginx, p99', atMost: 0, unit: 'us' },
  { figure: 'latency, sozu-udp mmsg above nginx, p99.9', atMost: 1_000, unit: 'us' },
  { figure: 'workers, two over one at one rate', atMost: 1.15, unit: '' },
  { figure: 'workers, share of the busier of two', atMost: 0.6, unit: '' },
  { figure: 'dns, 1000 source ports, mmsg, responses = 1 over nginx', atMost: 1, unit: '' },
  { figure: 'dns, 1000 source ports, mmsg, responses = 0 over dnsdist', atMost: 1.1, unit: '' },
  ...ratios('cost', 'sozu-udp dgram over earlier', SMALL_LOADS, [1.05]),
  ...ratios('cost', 'with limits over earlier', SMALL_LOADS, [1.1]),
  ...ratios('recorder', 'recorder on over recorder off', SMALL_LOADS, [1.05]),
  { figure: 'memory, a live flow over sockets', atMost: 512, unit: 'bytes' },
  { figure: 'million, longest pause', atMost: 20, unit: 'ms' },
  { figure: 'soak, memory at the end over after a minute', atMost: 1.05, unit: '' },
  { figure: 'soak, samples with other descriptors', atMost: 0, unit: '' },
  { figure: 'soak, datagrams unexplained', atMost: 0, unit: '' },
  { figure: 'simulated soak, memory at the end over after a minute', atMost: 1.05, unit: '' },
  { figure: 'core, 100,000 flows above 100', atMost: 400, unit: 'ns' },
  { figure: 'core, 100 of 100,000 flows above 100', atMost: 30, unit: 'ns' },
  { figure: 'core, flow table', atMost: 256, unit: 'bytes a flow' },
  { figure: 'core, longest insert into the flow table', atMost: 1_000, unit: 'us' },
  { figure: 'core, longest admission', atMost: 1_000, unit: 'us' },
  { figure: 'balancing, longest slice of a Maglev build', atMost: 5, unit: 'ms' },
  { figure: 'flows, a list of 10,000', atMost: 200, unit: 'ms' },
  { figure: 'flows, a part of the list', atMost: 5, unit: 'ms' },
];

export interface Verdict {
  readonly bar: Bar;
  readonly value: number;
  readonly met: boolean;
}

/** Compares every bar whose figure was measured. */
export function compareWithBars(figures: readonly Figure[], bars: readonly Bar[]): Verdict[] {
  return bars.flatMap((bar) => {
    const figure = figures.find(({ name }) => name === bar.figure);
    if (figure === undefined) return [];
    return [{ bar, value: figure.value, met: figure.value <= bar.atMost }];
  });
}

/** Medians of slices: each contender's over that of every one before it. */
export function pairedFigures({ name: load, series }: PairedResult, part: string): Figure[] {
  return series.flatMap((one, at) =>
    series.slice(0, at).map((base) => ({
      name: `${part}, ${load}, ${one.name} over ${base.name}`,
      value: one.spread.median / base.spread.median,
    })),
  );
}

/** How much longer a round trip takes through each program than through the one before it: medians of the slices. */
export function latencyFigures({ ways }: LatencyResult): Figure[] {
  return ways.slice(2).flatMap((way, at) => {
    const base = ways[at + 1] ?? way;
    const name = `latency, ${way.name} above ${base.name}`;
    return [
      { name: `${name}, p50`, value: way.p50.median - base.p50.median },
      { name: `${name}, p99`, value: way.p99.median - base.p99.median },
      { name: `${name}, p99.9`, value: way.p999.median - base.p999.median },
    ];
  });
}

export function workersFigures({ atRate, shares }: WorkersResult): Figure[] {
  return [
    { name: 'workers, two over one at one rate', value: atRate.series[1]?.ratio ?? Number.NaN },
    { name: 'workers, share of the busier of two', value: Math.max(...shares) },
  ];
}

export function memoryFigures({ heapPerFlow, tablePerFlow }: MemoryResult): Figure[] {
  return [{ name: 'memory, a live flow over sockets', value: heapPerFlow + tablePerFlow }];
}

/** While flows come and go. That all are due at once has no bar. */
export function millionFigures({ longestAdmission, longestExpiry }: MillionResult): Figure[] {
  return [{ name: 'million, longest pause', value: Math.max(longestAdmission, longestExpiry) }];
}

/** More explained than were lost is as unexplained as less. */
export function soakFigures(result: SoakResult): Figure[] {
  const memory = result.memoryLate / result.memoryEarly;
  return [
    { name: 'soak, memory at the end over after a minute', value: memory },
    {
      name: 'soak, samples with other descriptors',
      value: result.unevenSamples,
    },
    { name: 'soak, datagrams unexplained', value: Math.abs(result.unexplained) },
  ];
}

export function simulatedSoakFigures({ memory }: SimulatedSoakResult): Figure[] {
  const value = (memory.at(-1) ?? Number.NaN) / (memory[0] ?? Number.NaN);
  return [{ name: 'simulated soak, memory at the end over after a minute', value }];
}

/** Of the longest insert the best run counts: the scheduler only ever makes a run worse. */
export function inCoreFigures(result: InCoreResult): Figure[] {
  const nanoseconds = (flows: number, active: number): number =>
    result.forwarding.find((cost) => cost.flows === flows && cost.active === active)?.client
      .median ?? Number.NaN;
  const [table, admission] = result.inserts.map(({ longest }) => Math.min(...longest));
  const base = nanoseconds(100, 100);
  return [
    { name: 'core, 100,000 flows above 100', value: nanoseconds(100_000, 100_000) - base },
    { name: 'core, 100 of 100,000 flows above 100', value: nanoseconds(100_000, 100) - base },
    { name: 'core, flow table', value: result.tableBytesPerFlow },
    { name: 'core, longest insert into the flow table', value: table ?? Number.NaN },
    { name: 'core, longest admission', value: admission ?? Number.NaN },
  ];
}

/** Over all sizes: no turn is held longer by the building of a table. */
export function balancingFigures({ builds }: BalancingResult): Figure[] {
  const longest = Math.max(...builds.map(({ longestSlice }) => longestSlice));
  return [{ name: 'balancing, longest slice of a Maglev build', value: longest }];
}

export function flowListFigures({ list, part }: FlowListResult): Figure[] {
  return [
    { name: 'flows, a list of 10,000', value: list.median },
    { name: 'flows, a part of the list', value: part.median },
  ];
}
