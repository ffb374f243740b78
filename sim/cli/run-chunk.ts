/** Runs some seeds of one scenario on whatever thread this is, counts what happened and keeps what failed. */
import { present } from '../../core/assert.ts';
import type { CloseReason, DropReason, Output } from '../../core/contract.ts';
import type { UdpManager } from '../../core/manager.ts';
import type { Instant } from '../../core/time.ts';
import { scenarioNamed } from '../../scenarios/index.ts';
import {
  Observer,
  printSeed,
  runSeed,
  type Action,
  type HarnessOptions,
  type RunResult,
  type Scenario,
  type Seed,
  type Trace,
} from '../index.ts';
import { repeat, StepLog } from './determinism.ts';
import { Journal } from './journal.ts';
import { describeAction } from './narrate.ts';
import {
  emptyLeg,
  mergeLegs,
  REPEATS_ITSELF,
  runSum,
  SIMULATOR_THREW,
  type Failure,
  type LegResult,
} from './result.ts';

/** How often a seed is run: once, again to compare, or in a fresh process as well. */
export type Repetition = 'once' | 'again' | 'fresh';

export interface SeedTask {
  readonly seed: Seed;
  readonly repetition: Repetition;
}

export interface ChunkTask {
  readonly scenario: string;
  readonly steps: number;
  readonly seeds: readonly SeedTask[];
  /** Stop after the first seed that fails. */
  readonly bail: boolean;
}

export interface ChunkResult {
  readonly leg: LegResult;
  /** One line a seed, for verbose sweeps. */
  readonly lines: readonly string[];
  /** What it took its thread. */
  readonly seconds: number;
}

/** What a verbose run listens to. */
export interface Listener extends Trace {
  action(action: Action, step: number): void;
}

/** Runs the seeds in their order. `begin` hears the place of each seed in the chunk before it is run. */
export function runChunk(
  task: ChunkTask,
  begin: (place: number) => void = () => undefined,
  listener?: Listener,
): ChunkResult {
  const scenario = present(scenarioNamed(task.scenario), 'a plan names scenarios that exist');
  const observer = new Observer();
  const lines: string[] = [];
  const begun = performance.now();
  let leg = emptyLeg(task.scenario);
  for (const [place, one] of task.seeds.entries()) {
    begin(place);
    const run = runOne(scenario, one, task.steps, { observer, listener });
    leg = mergeLegs(leg, run.leg);
    lines.push(run.line);
    if (task.bail && leg.failed > 0) break;
  }
  return {
    leg: { ...leg, properties: observer.counts() },
    lines,
    seconds: (performance.now() - begun) / 1_000,
  };
}

interface Watchers {
  readonly observer: Observer;
  readonly listener: Listener | undefined;
}

function runOne(
  scenario: Scenario,
  { seed, repetition }: SeedTask,
  steps: number,
  { observer, listener }: Watchers,
): { readonly leg: LegResult; readonly line: string } {
  const tally = new Tally(listener);
  const repeats = repetition !== 'once';
  const journal = new Journal<Action>(
    (action, step) => `step ${step}: ${describeAction(action)}`,
    repeats ? steps : undefined,
  );
  const log = repeats ? new StepLog() : undefined;
  const run = guarded(scenario, seed, steps, {
    observer,
    trace: tally,
    onAction: (action, step) => {
      journal.note(action, step);
      listener?.action(action, step);
    },
    ...(log === undefined ? {} : { onStep: log.note }),
  });
  const where = { scenario: scenario.name, seed };
  const failures: Failure[] = [];
  if (run.failure !== undefined) {
    failures.push({ ...run.failure, ...where, actions: journal.last(Infinity) });
  }
  if (log !== undefined) {
    const known = [...log.digests, run.digest];
    const difference = repeat(scenario, seed, steps, known, repetition === 'fresh');
    if (difference !== undefined) {
      const actions = journal.last(difference.step);
      failures.push({ property: REPEATS_ITSELF, ...difference, ...where, actions });
    }
  }
  return {
    leg: {
      ...emptyLeg(scenario.name),
      seeds: 1,
      steps: run.steps,
      sum: runSum(scenario.name, seed, run.digest),
      ...(run.actions === undefined ? {} : { actions: run.actions }),
      drops: tally.drops,
      closes: tally.closes,
      failed: failures.length === 0 ? 0 : 1,
      failures,
      repeated: repeats ? 1 : 0,
      fresh: repetition === 'fresh' ? 1 : 0,
    },
    line: `${scenario.name} ${printSeed(seed)} ${run.digest}${failures.length > 0 ? ' failed' : ''}`,
  };
}

interface GuardedRun {
  readonly digest: string;
  readonly steps: number;
  readonly actions: RunResult['actions'] | undefined;
  readonly failure: Pick<Failure, 'property' | 'step' | 'detail'> | undefined;
}

/** Calls of the core are guarded by the harness. An exception that still comes out is a bug of the simulator: with its seed. */
function guarded(
  scenario: Scenario,
  seed: Seed,
  steps: number,
  options: HarnessOptions,
): GuardedRun {
  try {
    const result = runSeed(scenario, seed, steps, options);
    const { violation, detail } = result;
    if (violation === undefined) return { ...result, failure: undefined };
    const { name, step } = violation;
    const said = detail === undefined ? violation.detail : `${violation.detail}: ${detail}`;
    return { ...result, failure: { property: name, step, detail: said } };
  } catch (error) {
    const { step } = options.observer;
    const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
    const failure = { property: SIMULATOR_THREW, step, detail };
    return { digest: `threw ${String(error)}`, steps: step, actions: undefined, failure };
  }
}

/** Reasons of drops and closes, counted from the outputs of each call. */
class Tally implements Trace {
  readonly drops: Record<DropReason, number> = {
    Truncated: 0,
    NoBackend: 0,
    Invalid: 0,
    Shed: 0,
    UnknownFlow: 0,
    Denied: 0,
    NewFlowRate: 0,
    DatagramRate: 0,
    Amplification: 0,
    PortExhausted: 0,
  };
  readonly closes: Record<CloseReason, number> = {
    Idle: 0,
    ResponsesReached: 0,
    RequestsReached: 0,
    Drain: 0,
    Aborted: 0,
    BackendLost: 0,
    Killed: 0,
  };
  private readonly next: Trace | undefined;

  constructor(next: Trace | undefined) {
    this.next = next;
  }

  call(name: string, now: Instant, outputs: readonly Output[], manager: UdpManager): void {
    for (const output of outputs) {
      if (output.kind === 'Drop') this.drops[output.reason] += 1;
      else if (output.kind === 'CloseFlow') this.closes[output.reason] += 1;
    }
    this.next?.call(name, now, outputs, manager);
  }
}
