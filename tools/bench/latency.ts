/**
 * Added latency: at one offered rate for all, how much longer a round trip takes through a program than without it. The rate is
 * half of what the first one sustains, and ten thousand flows are live in each.
 */
import type { Contender } from './contenders.ts';
import { ask, launchLoad, openFlows, openLanes, withPrograms } from './lanes.ts';
import { MANY_FLOWS } from './loads.ts';
import type { PairedOptions } from './paired.ts';
import { median, quartiles, type Quartiles } from './statistics.ts';
import { inTurns } from './turns.ts';

/** Microseconds: medians of the slices, and their quartiles. */
export interface Latency {
  readonly name: string;
  readonly p50: Quartiles;
  readonly p99: Quartiles;
  readonly p999: Quartiles;
  /** Medians, less those of the way without a program. */
  readonly added: { readonly p50: number; readonly p99: number; readonly p999: number };
  readonly sent: number;
  readonly lost: number;
}

export interface LatencyResult {
  /** Datagrams a second. */
  readonly rate: number;
  readonly flows: number;
  readonly sliceMs: number;
  /** The way without a program first. */
  readonly ways: readonly Latency[];
}

const SUSTAINED_SLICES = 6;

/** `contenders` can all be had; the first one gives the rate. Ten thousand ports of each: there are enough for two. */
export function measureLatency(
  contenders: readonly Contender[],
  options: PairedOptions,
): Promise<LatencyResult> {
  const { placement, progress, warmUpMs, sliceMs, slices } = options;
  return withPrograms(async (launch) => {
    const lanes = await openLanes(['direct', ...contenders], { placement }, launch);
    const loads = [];
    for (const [number, lane] of lanes.entries()) {
      progress(`${lane.name}: warming up`);
      const load = await launchLoad(lane, MANY_FLOWS, { placement, number }, launch);
      await openFlows(lane, load);
      await ask(load, `closed ${warmUpMs}`, warmUpMs);
      loads.push(load);
    }
    const [, reference] = loads;
    if (reference === undefined) throw new Error('latency needs somebody to give the rate');
    progress('the rate that it sustains');
    const sustained: number[] = [];
    for (let slice = 0; slice < SUSTAINED_SLICES; slice += 1) {
      const [trips = 0] = await ask(reference, `closed ${sliceMs}`, sliceMs);
      sustained.push((trips * 1_000) / sliceMs);
    }
    const rate = Math.floor(median(sustained) / 2);
    progress(`${rate} datagrams a second`);
    const runs = loads.map((load) => () => ask(load, `open ${sliceMs} ${rate}`, sliceMs));
    const taken = await inTurns(runs, { slices, progress });
    const ways = lanes.map(({ name }, at) => summarize(name, taken[at] ?? [], taken[0] ?? []));
    return { rate, flows: MANY_FLOWS.flows, sliceMs, ways };
  });
}

/** Each slice: sent, received, and the three percentiles. */
function summarize(
  name: string,
  slices: readonly number[][],
  direct: readonly number[][],
): Latency {
  const column = (list: readonly number[][], at: number): number[] =>
    list.map((slice) => slice[at] ?? Number.NaN);
  const total = (at: number): number => column(slices, at).reduce((sum, one) => sum + one, 0);
  const added = (at: number): number => median(column(slices, at)) - median(column(direct, at));
  return {
    name,
    p50: quartiles(column(slices, 2)),
    p99: quartiles(column(slices, 3)),
    p999: quartiles(column(slices, 4)),
    added: { p50: added(2), p99: added(3), p999: added(4) },
    sent: total(0),
    lost: total(0) - total(1),
  };
}
