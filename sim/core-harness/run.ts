/** One run of the core harness: from a seed, or from the actions of a replay. Pure: the same arguments, the same result. */
import type { TableSeed } from '../../core/keyed-hash.ts';
import { Digest } from '../digest.ts';
import type { Observer, Violation } from '../properties.ts';
import { seededStreams } from '../random.ts';
import type { Seed } from '../seed.ts';
import type { Action, ActionKind, InitialState } from './actions.ts';
import { ActionSource } from './grammar.ts';
import type { Guise, Trace } from './guise.ts';
import { CoreHarness } from './harness.ts';
import type { ActionWatch, Scenario } from './scenario.ts';

/** How everything that must not matter looks unless a check varies it. */
export const PLAIN_GUISE: Guise = {
  poison: 0xa5,
  tableSeed: { first: 0x243f6a88, second: 0x13198a2e } satisfies TableSeed,
  prefix: '',
};

export interface RunOptions {
  readonly observer: Observer;
  readonly guise?: Guise;
  readonly trace?: Trace;
  /** Called before each action of a step. */
  readonly onAction?: (action: Action, step: number) => void;
  /** Called after each step with the digest so far, to find where two runs part. */
  readonly onStep?: (step: number, digest: Digest) => void;
  /** Violations of other properties do not end the run. */
  readonly only?: ReadonlySet<string>;
  /** For `runActions`, which knows no scenario: the scenario's watch. */
  readonly watch?: (() => ActionWatch) | undefined;
}

export interface RunResult {
  readonly digest: string;
  /** Steps that were begun. */
  readonly steps: number;
  readonly actions: Readonly<Record<ActionKind, number>>;
  readonly violation: Violation | undefined;
  /** What a call that threw had to say. */
  readonly detail: string | undefined;
}

/** Runs `steps` steps of a scenario under a seed, then the final drain, unless a property is violated first. */
export function runSeed(
  scenario: Scenario,
  seed: Seed,
  steps: number,
  options: RunOptions,
): RunResult {
  const streams = seededStreams(seed);
  const source = new ActionSource(scenario.grammarOf(streams), seed, streams);
  const run = new Run(source.initial(), seed, { ...options, watch: scenario.watch });
  let preface = scenario.preface ?? [];
  for (let step = 1; step <= steps && !run.isOver; step += 1) {
    const drawn = source.step(run.harness.surroundings);
    run.step(step, preface.length === 0 ? drawn : [...preface, ...drawn]);
    preface = [];
  }
  return run.finish();
}

/** Runs the very actions of a replay, each as a step of its own. */
export function runActions(
  initial: InitialState,
  actions: readonly Action[],
  options: RunOptions,
): RunResult {
  const run = new Run(initial, { high: 0, low: 0 }, options);
  for (const [index, action] of actions.entries()) {
    if (run.isOver) break;
    run.step(index + 1, [action]);
  }
  return run.finish();
}

class Run {
  readonly harness: CoreHarness;
  private readonly options: RunOptions;
  private readonly digest = new Digest();
  private readonly actions = newActionCounts();
  private readonly watch: ActionWatch | undefined;
  private steps = 0;

  constructor(initial: InitialState, seed: Seed, options: RunOptions) {
    this.options = options;
    const { observer, guise = PLAIN_GUISE, trace } = options;
    observer.beginRun(seed);
    this.watch = options.watch?.();
    this.harness = new CoreHarness(initial, guise, observer, this.digest, trace);
  }

  get isOver(): boolean {
    return this.harness.isOver || this.violation !== undefined;
  }

  step(step: number, actions: readonly Action[]): void {
    const { observer, onAction, onStep } = this.options;
    this.steps = step;
    observer.step = step;
    for (const action of actions) {
      if (this.isOver) break;
      onAction?.(action, step);
      this.actions[action.kind] += 1;
      this.harness.perform(action);
      this.watch?.(action, observer);
    }
    onStep?.(step, this.digest);
  }

  finish(): RunResult {
    if (!this.isOver) this.harness.finish();
    return {
      digest: this.digest.print(),
      steps: this.steps,
      actions: this.actions,
      violation: this.violation,
      detail: this.harness.failure,
    };
  }

  private get violation(): Violation | undefined {
    const { observer, only } = this.options;
    if (observer.violations.length === 0) return undefined;
    return observer.violations.find(({ name }) => only === undefined || only.has(name));
  }
}

function newActionCounts(): Record<ActionKind, number> {
  return {
    ClientDatagram: 0,
    BackendView: 0,
    BackendDatagram: 0,
    AdvanceClock: 0,
    EarlyTimer: 0,
    ReconfigCluster: 0,
    SetMaxFlows: 0,
    AbortFlow: 0,
    SetMaxRx: 0,
    Drain: 0,
    CloseAll: 0,
    LoseBackend: 0,
    RegainBackend: 0,
    SweepBackend: 0,
    KillFlow: 0,
    Deny: 0,
    Refuse: 0,
  };
}
