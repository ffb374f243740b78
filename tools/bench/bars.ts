/**
 * The bars a bench is held to with `--check`, and the figures they are compared with. Data: main.ts
 * prints and compares.
 */
import type { BalancingResult } from './balancing.ts';
import type { FlowListResult } from './flow-list.ts';
import type { InCoreResult } from './in-core.ts';
import type { PairedResult } from './paired.ts';

export interface Figure {
  readonly name: string;
  readonly value: number;
}

export interface Bar {
  readonly figure: string;
  readonly atMost: number;
  readonly unit: string;
}

export const BARS: readonly Bar[] = [
  { figure: 'dgram, 16 x 16, sozu-udp over yardstick', atMost: 1.15, unit: '' },
  { figure: 'dgram, 1000 x 1, sozu-udp over yardstick', atMost: 1.15, unit: '' },
  { figure: 'cost, 16 x 16, sozu-udp over earlier', atMost: 1.05, unit: '' },
  { figure: 'cost, 1000 x 1, sozu-udp over earlier', atMost: 1.05, unit: '' },
  { figure: 'cost, 16 x 16, with limits over earlier', atMost: 1.1, unit: '' },
  { figure: 'cost, 1000 x 1, with limits over earlier', atMost: 1.1, unit: '' },
  { figure: 'recorder, 16 x 16, recorder on over recorder off', atMost: 1.05, unit: '' },
  { figure: 'recorder, 1000 x 1, recorder on over recorder off', atMost: 1.05, unit: '' },
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

/** Medians of slices over the median of the first contender's slices. */
export function pairedFigures({ load, series }: PairedResult, part: string): Figure[] {
  const base = series[0]?.name ?? '';
  return series.slice(1).map(({ name, ratio }) => ({
    name: `${part}, ${load.flows} x ${load.window}, ${name} over ${base}`,
    value: ratio,
  }));
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
