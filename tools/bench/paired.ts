/**
 * Compares forwarders fairly on a machine that is never quiet: all of them live at once, each with
 * a load of its own, and take turns of half a second, there and back (A B C, C B A), so that drift
 * and neighbours hit all alike. The figure is the forwarder's own processor time per completed
 * round trip; it is a ratio within one run that means something.
 */
import type { Contender } from './contenders.ts';
import {
  ask,
  launchLoad,
  openFlows,
  openLanes,
  withPrograms,
  type Lane,
  type Launch,
} from './lanes.ts';
import type { Load } from './loads.ts';
import { processorTime, type Placement, type Program } from './processes.ts';
import { median, pairedRatios, quartiles, type Quartiles } from './statistics.ts';

export interface PairedOptions {
  readonly slices: number;
  readonly sliceMs: number;
  /** Load that each contender gets before the first slice, so that its code is compiled. */
  readonly warmUpMs: number;
  readonly placement: Placement;
  readonly progress: (text: string) => void;
}

export interface Series {
  readonly name: string;
  /** Processor time per round trip, nanoseconds, of each slice. */
  readonly nanoseconds: readonly number[];
  readonly spread: Quartiles;
  /** The same of the load generator and of the backend: medians. */
  readonly loadNanoseconds: number;
  readonly backendNanoseconds: number;
  readonly tripsPerSecond: number;
  readonly trips: number;
  readonly lost: number;
  /** Median over the first contender's median. */
  readonly ratio: number;
  /** Ratios slice by slice. */
  readonly pairedRatio: Quartiles;
}

export interface PairedResult {
  readonly load: Load;
  readonly sliceMs: number;
  readonly series: readonly Series[];
}

interface LoadedLane extends Lane {
  readonly load: Program;
}

interface Slice {
  readonly trips: number;
  readonly lost: number;
  readonly nanoseconds: number;
  readonly loadNanoseconds: number;
  readonly backendNanoseconds: number;
}

/**
 * Measures `contenders`, all of which can be had, under `load`. The first one is the baseline. Rejects when one of them does
 * not answer.
 */
export function measurePaired(
  contenders: readonly Contender[],
  load: Load,
  options: PairedOptions,
): Promise<PairedResult> {
  return withPrograms(async (launch) => {
    const lanes = await loadedLanes(contenders, load, options, launch);
    const slices = await takeTurns(lanes, options);
    return { load, sliceMs: options.sliceMs, series: summarize(lanes, slices, options.sliceMs) };
  });
}

async function loadedLanes(
  contenders: readonly Contender[],
  load: Load,
  options: PairedOptions,
  launch: Launch,
): Promise<LoadedLane[]> {
  const { placement, progress, warmUpMs } = options;
  const loaded: LoadedLane[] = [];
  for (const [number, lane] of (await openLanes(contenders, { placement }, launch)).entries()) {
    progress(`${lane.name}: warming up`);
    const program = await launchLoad(lane, load, { placement, number }, launch);
    await openFlows(lane, program);
    await ask(program, `closed ${warmUpMs}`, warmUpMs);
    loaded.push({ ...lane, load: program });
  }
  return loaded;
}

async function takeTurns(lanes: readonly LoadedLane[], options: PairedOptions): Promise<Slice[][]> {
  const taken: Slice[][] = lanes.map(() => []);
  const there = [...lanes.keys()];
  const back = there.toReversed();
  for (let round = 0; round < options.slices; round += 1) {
    options.progress(`slice ${round + 1} of ${options.slices}`);
    for (const at of round % 2 === 0 ? there : back) {
      const lane = lanes[at];
      if (lane !== undefined) taken[at]?.push(await runSlice(lane, options.sliceMs));
    }
  }
  return taken;
}

async function runSlice({ proxy, load, backend }: LoadedLane, lengthMs: number): Promise<Slice> {
  const pids = [proxy, load, backend].map((program) => program?.pid ?? 0);
  const before = pids.map(processorTime);
  const [trips = 0, lost = 0] = await ask(load, `closed ${lengthMs}`, lengthMs);
  const perTrip = pids.map(
    (pid, at) => (processorTime(pid) - (before[at] ?? 0)) / Math.max(1, trips),
  );
  const [nanoseconds = 0, loadNanoseconds = 0, backendNanoseconds = 0] = perTrip;
  return { trips, lost, nanoseconds, loadNanoseconds, backendNanoseconds };
}

function summarize(lanes: readonly Lane[], slices: Slice[][], sliceMs: number): Series[] {
  const costs = slices.map((list) => list.map((slice) => slice.nanoseconds));
  const baseline = costs[0] ?? [];
  return lanes.map(({ name }, at) => {
    const nanoseconds = costs[at] ?? [];
    const taken = slices[at] ?? [];
    const medianOf = (of: (slice: Slice) => number): number => median(taken.map(of));
    return {
      name,
      nanoseconds,
      spread: quartiles(nanoseconds),
      loadNanoseconds: medianOf((slice) => slice.loadNanoseconds),
      backendNanoseconds: medianOf((slice) => slice.backendNanoseconds),
      tripsPerSecond: (medianOf((slice) => slice.trips) * 1_000) / sliceMs,
      trips: sum(taken.map((slice) => slice.trips)),
      lost: sum(taken.map((slice) => slice.lost)),
      ratio: median(nanoseconds) / median(baseline),
      pairedRatio: quartiles(pairedRatios(nanoseconds, baseline)),
    };
  });
}

function sum(list: readonly number[]): number {
  return list.reduce((total, item) => total + item, 0);
}
