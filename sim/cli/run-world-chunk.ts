/** Runs some seeds of a scenario of worlds on whatever thread this is: what run-chunk.ts is for the flow machine. */
import { microseconds, type Instant } from '../../core/time.ts';
import { hashSeed, printSeed, type Seed, type WorldAction, type WorldScenario } from '../index.ts';
import { Observer } from '../properties.ts';
import type { FactHub } from '../world/facts.ts';
import { brokenRelation, isRelated } from '../world/metamorphic.ts';
import { OwnTraces } from '../world/own-trace.ts';
import { runWorldSeed, type WorldRunResult } from '../world/run-world.ts';
import { Journal } from './journal.ts';
import { emptyLeg, mergeLegs, REPEATS_ITSELF, runSum, SIMULATOR_THREW } from './result.ts';
import type { Failure, LegResult } from './result.ts';
import type { ChunkResult, ChunkTask, SeedTask } from './run-chunk.ts';
import { ActionLog, repeatWorld } from './world-determinism.ts';
import { describeWorldAction } from './world-narrate.ts';
import { WorldTally } from './world-tally.ts';

/** What a verbose run listens to. */
export interface WorldListener {
  action(action: WorldAction, number: number, at: Instant): void;
  join(hub: FactHub): void;
}

/** Runs the seeds in their order. `begin` hears the place of each seed in the chunk before it is run. */
export async function runWorldChunk(
  scenario: WorldScenario,
  task: ChunkTask,
  begin: (place: number) => void = () => undefined,
  listener?: WorldListener,
): Promise<ChunkResult> {
  const observer = new Observer();
  const lines: string[] = [];
  let leg = emptyLeg(scenario.name);
  let seconds = 0;
  for (const [place, one] of task.seeds.entries()) {
    begin(place);
    const run = await runOne(scenario, one, observer, listener);
    leg = mergeLegs(leg, run.leg);
    lines.push(run.line);
    seconds += run.seconds;
    if (task.bail && leg.failed > 0) break;
  }
  const properties = observer.counts().filter(({ evaluations }) => evaluations > 0);
  return { leg: { ...leg, properties }, lines, seconds };
}

interface OneRun {
  readonly leg: LegResult;
  readonly line: string;
  readonly seconds: number;
}

async function runOne(
  scenario: WorldScenario,
  { seed, repetition }: SeedTask,
  observer: Observer,
  listener: WorldListener | undefined,
): Promise<OneRun> {
  const repeats = repetition !== 'once';
  const ears: Ears = {
    observer,
    listener,
    tally: new WorldTally(),
    journal: new Journal(({ action, at }: Acted, step) => describeActed(action, step, at)),
    log: repeats ? new ActionLog() : undefined,
  };
  const begun = performance.now();
  const run = await guarded(scenario, seed, ears);
  const seconds = (performance.now() - begun) / 1_000;
  const where = { scenario: scenario.name, seed };
  const actions = ears.journal.last(Infinity);
  const failures: Failure[] = [];
  if (run.failure !== undefined) failures.push({ ...run.failure, ...where, actions });
  if (ears.log !== undefined) {
    const known = [...ears.log.digests, run.digest];
    const difference = await repeatWorld(scenario, seed, known, repetition === 'fresh');
    if (difference !== undefined)
      failures.push({ property: REPEATS_ITSELF, ...difference, ...where, actions });
  }
  const leg: LegResult = {
    ...emptyLeg(scenario.name),
    seeds: 1,
    steps: run.events,
    simulated: run.duration,
    sum: runSum(scenario.name, seed, run.digest),
    ...ears.tally.counts(),
    failed: failures.length === 0 ? 0 : 1,
    failures,
    repeated: repeats ? 1 : 0,
    fresh: repetition === 'fresh' ? 1 : 0,
  };
  const failed = failures.length > 0 ? ' failed' : '';
  return { leg, line: `${scenario.name} ${printSeed(seed)} ${run.digest}${failed}`, seconds };
}

interface Acted {
  readonly action: WorldAction;
  readonly at: Instant;
}

/** Who listens to one run. */
interface Ears {
  readonly observer: Observer;
  readonly listener: WorldListener | undefined;
  readonly tally: WorldTally;
  readonly journal: Journal<Acted>;
  readonly log: ActionLog | undefined;
}

type GuardedRun = Pick<WorldRunResult, 'digest' | 'events' | 'duration'> & {
  readonly failure: Pick<Failure, 'property' | 'step' | 'detail'> | undefined;
};

/** A world guards itself, but for its making. */
async function guarded(scenario: WorldScenario, seed: Seed, ears: Ears): Promise<GuardedRun> {
  const { observer, listener, tally, journal, log } = ears;
  const traces = tracesOf(seed);
  try {
    const result = await runWorldSeed(scenario, seed, {
      observer,
      ...(traces === undefined ? {} : { taps: traces }),
      onAction: (action, at) => {
        journal.note({ action, at }, observer.step);
        listener?.action(action, observer.step, at);
      },
      listen: (hub) => {
        hub.join(tally.hearings);
        log?.join(hub);
        listener?.join(hub);
      },
    });
    const { violation, detail } = result;
    const problem = violation === undefined ? traces?.judge(observer) : detail;
    const [found] = violation === undefined ? observer.violations : [violation];
    if (found === undefined) return { ...result, failure: unrelated(result, seed, observer) };
    const { name, step } = found;
    return { ...result, failure: { property: name, step, detail: problem ?? found.detail } };
  } catch (error) {
    const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
    const failure = { property: SIMULATOR_THREW, step: observer.step, detail };
    return { digest: `threw ${String(error)}`, events: 0, duration: microseconds(0), failure };
  }
}

/**
 * One seed in eight records in segments so short that they begin with snapshots, and replays them: a third of a run more. For
 * traces from the beginning there is an oracle.
 */
function tracesOf(seed: Seed): OwnTraces | undefined {
  return hashSeed(seed, 'trace', 0) % 8 === 0 ? new OwnTraces(16_384) : undefined;
}

/** What a run that holds has not in common with others like it; asked of some seeds only. */
function unrelated(result: WorldRunResult, seed: Seed, observer: Observer): GuardedRun['failure'] {
  if (!isRelated(seed)) return undefined;
  const { step } = observer;
  const broken = brokenRelation({ ...result, seed }, observer);
  return broken && { ...broken, step };
}

function describeActed(action: WorldAction, step: number, at: Instant): string {
  return `action ${step} ${describeWorldAction(action, at)}`;
}
