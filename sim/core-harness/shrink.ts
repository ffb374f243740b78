/**
 * From a failing run to the smallest one that fails in the same way. Works on actions, never on seeds: a shorter list is
 * just another run. The search is greedy and without chance: configuration, length, single actions, parameters and time
 * gaps, until no single step makes it smaller.
 */
import { Observer, type Violation } from '../properties.ts';
import { seededStreams } from '../random.ts';
import type { Seed } from '../seed.ts';
import type { Action, InitialState } from './actions.ts';
import { ActionSource } from './grammar.ts';
import { actionKnobs, initialKnobs, PLAIN_CAP, relabelClients, type Knob } from './knobs.ts';
import { runActions, runSeed } from './run.ts';
import type { ActionWatch, Scenario } from './scenario.ts';

/** A run that violates `property` before any other. */
export interface Recording {
  readonly initial: InitialState;
  readonly actions: readonly Action[];
  /** By its name: the same name is the same bug. */
  readonly property: string;
}

/** Runs the actions, and says what they violate first; its step counts the actions performed. */
export type Attempt = (
  initial: InitialState,
  actions: readonly Action[],
) => Pick<Violation, 'name' | 'step'> | undefined;

/** When to stop even if smaller runs may exist. */
export interface ShrinkLimits {
  readonly runs: number;
  /** Actions performed in all these runs: what takes the time. */
  readonly performed: number;
}

export interface Shrunk extends Recording {
  /** Runs it took. */
  readonly runs: number;
  /** False if a limit ended the search. When true, removing any one action loses the violation. */
  readonly isMinimal: boolean;
}

/** About ten seconds each; a usual failure takes a fiftieth of it. */
export const SHRINK_LIMITS: ShrinkLimits = { runs: 20_000, performed: 1_000_000 };

/** The actions of a seed up to its violation; undefined if the seed holds. */
export function recordSeed(scenario: Scenario, seed: Seed, steps: number): Recording | undefined {
  const actions: Action[] = [];
  const onAction = (action: Action): void => void actions.push(action);
  const { violation } = runSeed(scenario, seed, steps, { observer: new Observer(), onAction });
  if (violation === undefined) return undefined;
  const streams = seededStreams(seed);
  const initial = new ActionSource(scenario.grammarOf(streams), seed, streams).initial();
  return { initial, actions, property: violation.name };
}

/** Records a seed and shrinks it; undefined if the seed holds. */
export function shrinkSeed(
  scenario: Scenario,
  seed: Seed,
  steps: number,
  limits: ShrinkLimits = SHRINK_LIMITS,
): Shrunk | undefined {
  const recording = recordSeed(scenario, seed, steps);
  if (recording === undefined) return undefined;
  return shrink(recording, attemptOnCore(scenario.watch), limits);
}

/** The smallest run that still violates the same property first; undefined if the recording does not. */
export function shrink(
  recording: Recording,
  attempt: Attempt = attemptOnCore(),
  limits: ShrinkLimits = SHRINK_LIMITS,
): Shrunk | undefined {
  const search = new Search(recording, attempt, limits);
  if (!search.fails(recording.initial, recording.actions)) return undefined;
  search.simplifyInitial();
  do search.removeActions();
  while (search.turnKnobs());
  search.liftCap();
  search.removeActions();
  return search.result;
}

function attemptOnCore(watch?: () => ActionWatch): Attempt {
  const observer = new Observer();
  return (initial, actions) => runActions(initial, actions, { observer, watch }).violation;
}

class Search {
  private initial: InitialState;
  private actions: readonly Action[];
  private readonly property: string;
  private readonly attempt: Attempt;
  private readonly limits: ShrinkLimits;
  private runs = 0;
  private performed = 0;
  private isCutShort = false;

  constructor({ initial, actions, property }: Recording, attempt: Attempt, limits: ShrinkLimits) {
    this.initial = initial;
    this.actions = actions;
    this.property = property;
    this.attempt = attempt;
    this.limits = limits;
  }

  get result(): Shrunk {
    const { initial, actions, property, runs } = this;
    return { initial, actions, property, runs, isMinimal: !this.isCutShort };
  }

  /** Whether this run fails in the same way. If so it is the smallest so far, cut where it fails. */
  fails(initial: InitialState, actions: readonly Action[]): boolean {
    if (this.runs >= this.limits.runs || this.performed >= this.limits.performed) {
      this.isCutShort = true;
      return false;
    }
    const violation = this.attempt(initial, actions);
    this.runs += 1;
    this.performed += violation?.step ?? actions.length;
    if (violation?.name !== this.property) return false;
    this.initial = initial;
    this.actions = actions.slice(0, violation.step);
    return true;
  }

  /** Each number of the initial state at once to its simplest, while the run is still long. */
  simplifyInitial(): void {
    for (const index of initialKnobs(this.initial, 1).keys()) {
      const knob = initialKnobs(this.initial, 1)[index];
      if (knob === undefined || knob.value === knob.simplest) continue;
      this.fails(knob.turned(knob.simplest), this.actions);
    }
  }

  /** Removes runs of actions, halves first and single ones last, until none can go. */
  removeActions(): void {
    for (let size = this.actions.length >> 1; size > 1; size >>= 1) this.removeEach(size);
    while (this.removeEach(1));
  }

  /** Turns every number as far towards its simplest as the violation allows. Says whether any moved. */
  turnKnobs(): boolean {
    let moved = this.relabel();
    for (const index of initialKnobs(this.initial, 1).keys()) {
      const knob = initialKnobs(this.initial, 1)[index];
      if (this.turn(knob, (initial) => this.fails(initial, this.actions))) moved = true;
    }
    for (let place = 0; place < this.actions.length; place += 1) {
      if (this.turnKnobsAt(place)) moved = true;
    }
    return moved;
  }

  /** A cap that was lowered for nothing goes back to one that is never reached. */
  liftCap(): void {
    this.fails({ ...this.initial, cap: PLAIN_CAP }, this.actions);
  }

  private removeEach(size: number): boolean {
    let removed = false;
    for (let start = 0; start < this.actions.length;) {
      if (this.fails(this.initial, this.actions.toSpliced(start, size))) removed = true;
      else start += size;
    }
    return removed;
  }

  private relabel(): boolean {
    const relabelled = relabelClients(this.actions);
    const isNew = relabelled.some((action, place) => action !== this.actions[place]);
    return isNew && this.fails(this.initial, relabelled);
  }

  private turnKnobsAt(place: number): boolean {
    let moved = false;
    for (let index = 0; ; index += 1) {
      const action = this.actions[place];
      const knob = action === undefined ? undefined : actionKnobs(action)[index];
      if (knob === undefined) return moved;
      const put = (turned: Action): boolean =>
        this.fails(this.initial, this.actions.with(place, turned));
      if (this.turn(knob, put)) moved = true;
    }
  }

  /** The simplest value, or by bisection the nearest to it that still fails. */
  private turn<T>(knob: Knob<T> | undefined, fails: (turned: T) => boolean): boolean {
    if (knob === undefined || knob.value === knob.simplest) return false;
    if (fails(knob.turned(knob.simplest))) return true;
    let failing = knob.value;
    let holding = knob.simplest;
    while (Math.abs(failing - holding) > 1) {
      const middle = Math.trunc((failing + holding) / 2);
      if (fails(knob.turned(middle))) failing = middle;
      else holding = middle;
    }
    return failing !== knob.value;
  }
}
