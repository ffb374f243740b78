/**
 * Programs that take turns of half a second, there and back (A B C, C B A), so that drift and neighbours hit all alike, and
 * what the turns of each come to. The figure is a program's own processor time per completed round trip; it is a ratio within
 * one run that means something.
 */
import { median, pairedRatios, quartiles, type Quartiles } from './statistics.ts';

export interface Slice {
  readonly trips: number;
  readonly lost: number;
  /** Processor time per round trip: the program's, the load generator's and the backend's. */
  readonly nanoseconds: number;
  readonly loadNanoseconds: number;
  readonly backendNanoseconds: number;
}

/** Whoever takes part, and how a slice of it is run. */
export interface Runner {
  readonly name: string;
  run(lengthMs: number): Promise<Slice>;
}

export interface TurnOptions {
  readonly slices: number;
  readonly sliceMs: number;
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
  /** Median over the first one's median. */
  readonly ratio: number;
  /** Ratios slice by slice. */
  readonly pairedRatio: Quartiles;
}

export interface PairedResult {
  /** Of the load. */
  readonly name: string;
  readonly sliceMs: number;
  readonly series: readonly Series[];
}

/** What each runner gives in each of its slices. */
export async function inTurns<T>(
  runners: readonly (() => Promise<T>)[],
  { slices, progress }: Omit<TurnOptions, 'sliceMs'>,
): Promise<T[][]> {
  const taken: T[][] = runners.map(() => []);
  const there = [...runners.entries()];
  const back = there.toReversed();
  for (let round = 0; round < slices; round += 1) {
    progress(`slice ${round + 1} of ${slices}`);
    for (const [at, run] of round % 2 === 0 ? there : back) taken[at]?.push(await run());
  }
  return taken;
}

/** Lets `runners` take turns under the load `name`; the first one is the baseline. */
export async function compareInTurns(
  name: string,
  runners: readonly Runner[],
  options: TurnOptions,
): Promise<PairedResult> {
  const { sliceMs } = options;
  const slices = await inTurns(
    runners.map((runner) => () => runner.run(sliceMs)),
    options,
  );
  const costs = slices.map((list) => list.map((slice) => slice.nanoseconds));
  const series = runners.map((runner, at): Series => {
    const nanoseconds = costs[at] ?? [];
    const taken = slices[at] ?? [];
    const medianOf = (of: (slice: Slice) => number): number => median(taken.map(of));
    return {
      name: runner.name,
      nanoseconds,
      spread: quartiles(nanoseconds),
      loadNanoseconds: medianOf((slice) => slice.loadNanoseconds),
      backendNanoseconds: medianOf((slice) => slice.backendNanoseconds),
      tripsPerSecond: (medianOf((slice) => slice.trips) * 1_000) / sliceMs,
      trips: sum(taken.map((slice) => slice.trips)),
      lost: sum(taken.map((slice) => slice.lost)),
      ratio: median(nanoseconds) / median(costs[0] ?? []),
      pairedRatio: quartiles(pairedRatios(nanoseconds, costs[0] ?? [])),
    };
  });
  return { name, sliceMs, series };
}

function sum(list: readonly number[]): number {
  return list.reduce((total, item) => total + item, 0);
}
