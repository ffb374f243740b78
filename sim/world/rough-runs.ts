/** Recorded runs of the rough world, for the tests of oracles, and ways to point at what happened in them. */
import { seededStreams, type Random } from '../random.ts';
import { seedFromNumber } from '../seed.ts';
import type { PlaneOutput } from '../../core/plane-contract.ts';
import {
  recordRun,
  reordered,
  replaced,
  type History,
  type RecordedRun,
  type Told,
} from './history.ts';
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

type Output<Kind extends PlaneOutput['kind']> = Extract<PlaneOutput, { kind: Kind }>;

/** With another output of a plane in place of one, the first that `change` has another for. */
export function withOutput<Kind extends PlaneOutput['kind']>(
  history: History,
  kind: Kind,
  change: (output: Output<Kind>, index: number) => PlaneOutput | undefined,
): History | undefined {
  for (const [index, told] of history.entries()) {
    if (told.kind !== 'DataOutput' || !isOf(told.fact.output, kind)) continue;
    const output = change(told.fact.output, index);
    if (output === undefined) continue;
    return replaced(history, index, { ...told, fact: { ...told.fact, output } });
  }
  return undefined;
}

function isOf<Kind extends PlaneOutput['kind']>(
  output: PlaneOutput,
  kind: Kind,
): output is Output<Kind> {
  return output.kind === kind;
}

/** Whether a fact is an output of this kind. */
export function isOutput(told: Told | undefined, kind: PlaneOutput['kind']): boolean {
  return told?.kind === 'DataOutput' && told.fact.output.kind === kind;
}
