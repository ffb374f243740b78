/** Recorded runs of the rough world, for the tests of oracles, and ways to point at what happened in them. */
import { seededStreams, type Random } from '../random.ts';
import { seedFromNumber } from '../seed.ts';
import { recordRun, reordered, type History, type RecordedRun, type Told } from './history.ts';
import { ROUGH_WORLD } from './rough-world.ts';

/** Of seeds 0 to `count` − 1. */
export async function roughRuns(count: number): Promise<RecordedRun[]> {
  const runs: RecordedRun[] = [];
  for (let seed = 0; seed < count; seed++) {
    runs.push(await recordRun(ROUGH_WORLD, seedFromNumber(seed)));
  }
  return runs;
}

/** The same run in another order of what is independent. */
export function shuffled(run: RecordedRun): RecordedRun {
  return { ...run, history: reordered(run, chance()) };
}

/** A run as a mutation leaves it: of the first run in which there is something to mutate. */
export function mutated(
  runs: readonly RecordedRun[],
  mutate: (history: History) => History | undefined,
): RecordedRun {
  for (const run of runs) {
    const history = mutate(run.history);
    if (history !== undefined) return { ...run, history };
  }
  throw new Error('no run has what is to be mutated');
}

/** Where, from `from` on, something is; undefined when nowhere. */
export function indexOf(
  history: History,
  is: (told: Told) => boolean,
  from = 0,
): number | undefined {
  const index = history.findIndex((told, at) => at >= from && is(told));
  return index < 0 ? undefined : index;
}

function chance(): Random {
  return seededStreams(seedFromNumber(77)).values;
}
