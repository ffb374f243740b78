/**
 * Compares forwarders fairly on a machine that is never quiet: all of them live at once, each with a load of its own, and take
 * turns. A slice ends when everything is back that will be, so a program's processor time in it belongs to its round trips.
 */
import type { Contender } from './contenders.ts';
import { ask, launchLoad, openFlows, openLanes, withPrograms } from './lanes.ts';
import { loadName, type Load } from './loads.ts';
import { processorTime, type Placement, type Program } from './processes.ts';
import { compareInTurns, type PairedResult, type Slice, type TurnOptions } from './turns.ts';

export interface PairedOptions extends TurnOptions {
  /** Load that each contender gets before the first slice, so that its code is compiled. */
  readonly warmUpMs: number;
  readonly placement: Placement;
}

/** What takes part in a slice: the program under test, the load generator and the backend. */
export interface Trio {
  readonly proxy: Program | undefined;
  readonly load: Program | undefined;
  readonly backend: Program;
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
  const { placement, progress, warmUpMs } = options;
  return withPrograms(async (launch) => {
    const manners = load.offload === true ? (['offload'] as const) : [];
    const lanes = await openLanes(contenders, { placement, manners }, launch);
    const runners = [];
    for (const [number, lane] of lanes.entries()) {
      progress(`${lane.name}: warming up`);
      const program = await launchLoad(lane, load, { placement, number }, launch);
      await openFlows(lane, program);
      await ask(program, `closed ${warmUpMs}`, warmUpMs);
      const run = (lengthMs: number): Promise<Slice> =>
        timed({ ...lane, load: program }, async () => {
          const [trips = 0, lost = 0] = await ask(program, `closed ${lengthMs}`, lengthMs);
          return { trips, lost };
        });
      runners.push({ name: lane.name, run });
    }
    return compareInTurns(loadName(load), runners, options);
  });
}

/** What the programs spend while `work` makes round trips. */
export async function timed(
  { proxy, load, backend }: Trio,
  work: () => Promise<{ trips: number; lost: number }>,
): Promise<Slice> {
  const spent = (): number[] => [proxy, load, backend].map((one) => processorTime(one?.pid ?? 0));
  const before = spent();
  const { trips, lost } = await work();
  const perTrip = spent().map((time, at) => (time - (before[at] ?? 0)) / Math.max(1, trips));
  const [nanoseconds = 0, loadNanoseconds = 0, backendNanoseconds = 0] = perTrip;
  return { trips, lost, nanoseconds, loadNanoseconds, backendNanoseconds };
}
