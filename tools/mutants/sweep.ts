/** What is done to one build of the program: the seeds of a plain sweep, one after the other, until a property is violated. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { present } from '../../core/assert.ts';
import type * as Scenarios from '../../scenarios/flow-machine.ts';
import type * as Run from '../../sim/core-harness/run.ts';
import type * as Shrink from '../../sim/core-harness/shrink.ts';
import type { Scenario } from '../../sim/index.ts';
import type * as Properties from '../../sim/properties.ts';
import type * as Seed from '../../sim/seed.ts';

export interface SweepLimits {
  /** Seeds of `default`; a quarter of them in `swarm` too, an eighth in each of the others (`TURNS`). */
  readonly seeds: number;
  readonly steps: number;
  /** Go on after a violation, to see which properties could have found it alone. */
  readonly exhaustive: boolean;
  /** Shrink the first failing seed. */
  readonly shrink: boolean;
  /** Where it was found before: tried first. */
  readonly hint?: Place | undefined;
}

/** A seed of a scenario. */
export interface Place {
  readonly scenario: string;
  readonly seed: number;
}

/** What a sweep says of a run before it. */
export interface Begun extends Place {
  /** Seeds of `default` begun with this one, or runs in worlds. */
  readonly seeds: number;
}

/** Where a mutant was found first. */
export interface Detection extends Begun {
  readonly property: string;
  readonly step: number;
}

export interface SweepResult {
  readonly detection: Detection | undefined;
  /** Every property that was violated: what each finds with all others off. */
  readonly violated: readonly string[];
  readonly shrunk: Shrinking | undefined;
}

/** What became of the first failing seed. */
export interface Shrinking {
  /** Actions of the smallest run that fails in the same way. */
  readonly actions: number;
  /** Whether none of them can be left out. */
  readonly isMinimal: boolean;
  readonly seconds: number;
}

export interface Build {
  readonly sim: Simulator;
  readonly scenarios: readonly Swept[];
}

type Simulator = Pick<typeof Run, 'runSeed'> &
  Pick<typeof Shrink, 'shrinkSeed'> &
  Pick<typeof Properties, 'Observer'> &
  Pick<typeof Seed, 'seedFromNumber'>;

interface Swept {
  readonly scenario: Scenario;
  /** One of its seeds for so many of `default`. */
  readonly turns: number;
}

/** `swarm` as in a plain sweep; `lost-backends` and `wary` go where `default` never does. */
const TURNS: Readonly<Record<string, number>> = {
  default: 1,
  swarm: 4,
  'lost-backends': 8,
  wary: 8,
};

/** A run that threw out of the harness, and so was found by no property. */
export const CRASH = '(the run broke off)';

export async function loadBuild(directory: string): Promise<Build> {
  const url = (file: string): string => pathToFileURL(join(directory, file)).href;
  const { runSeed }: typeof Run = await import(url('sim/core-harness/run.js'));
  const { shrinkSeed }: typeof Shrink = await import(url('sim/core-harness/shrink.js'));
  const { Observer }: typeof Properties = await import(url('sim/properties.js'));
  const { seedFromNumber }: typeof Seed = await import(url('sim/seed.js'));
  const { scenarioNamed }: typeof Scenarios = await import(url('scenarios/flow-machine.js'));
  const scenarios = Object.entries(TURNS).map(([name, turns]) => ({
    scenario: present(scenarioNamed(name), 'a scenario of this name'),
    turns,
  }));
  return { sim: { runSeed, shrinkSeed, Observer, seedFromNumber }, scenarios };
}

/** What must always hold in the core harness. To be asked before anything that knows worlds is loaded: they share a list. */
export async function harnessProperties(directory: string): Promise<string[]> {
  const url = (file: string): string => pathToFileURL(join(directory, file)).href;
  await import(url('sim/core-harness/run.js'));
  const { declaredProperties }: typeof Properties = await import(url('sim/properties.js'));
  const names = declaredProperties().filter(({ kind }) => kind === 'always');
  return names.map(({ name }) => name);
}

/** `begun` is told of each run before it. */
export function sweep(
  { sim, scenarios }: Build,
  limits: SweepLimits,
  begun: (run: Begun) => void,
): SweepResult {
  const violated = new Set<string>();
  let detection: Detection | undefined;
  let shrunk: Shrinking | undefined;
  for (const { scenario, seed, seeds } of runs(scenarios, limits)) {
    const place = { scenario: scenario.name, seed, seeds };
    begun(place);
    const found = runOne(sim, scenario, seed, limits);
    for (const { property } of found) violated.add(property);
    const first = found[0];
    if (first === undefined) continue;
    detection ??= { ...first, ...place };
    if (limits.shrink) shrunk ??= shrinkOne(sim, scenario, seed, limits);
    if (!limits.exhaustive) break;
  }
  return { detection, violated: [...violated], shrunk };
}

interface Run {
  readonly scenario: Scenario;
  readonly seed: number;
  readonly seeds: number;
}

/** Seed n of a scenario with k turns follows default's seed kn + k − 1. */
function* runs(scenarios: readonly Swept[], { seeds, hint }: SweepLimits): Generator<Run> {
  const hinted = scenarios.find(({ scenario }) => scenario.name === hint?.scenario);
  if (hint !== undefined && hinted !== undefined) {
    yield { scenario: hinted.scenario, seed: hint.seed, seeds: 1 };
  }
  for (let turn = 0; turn < seeds; turn += 1) {
    for (const { scenario, turns } of scenarios) {
      if (turn % turns !== turns - 1) continue;
      yield { scenario, seed: Math.floor(turn / turns), seeds: turn + 1 };
    }
  }
}

function shrinkOne(
  sim: Simulator,
  scenario: Scenario,
  seed: number,
  { steps }: SweepLimits,
): Shrinking | undefined {
  const begin = performance.now();
  const shrunk = sim.shrinkSeed(scenario, sim.seedFromNumber(seed), steps);
  const seconds = (performance.now() - begin) / 1_000;
  if (shrunk === undefined) return undefined;
  return { actions: shrunk.actions.length, isMinimal: shrunk.isMinimal, seconds };
}

interface Finding {
  readonly property: string;
  readonly step: number;
}

function runOne(
  sim: Simulator,
  scenario: Scenario,
  seed: number,
  { steps, exhaustive }: SweepLimits,
): Finding[] {
  const observer = new sim.Observer();
  const nobody: ReadonlySet<string> = new Set();
  const options = exhaustive ? { observer, only: nobody } : { observer };
  const findings = (): Finding[] =>
    observer.violations.map(({ name, step }) => ({ property: name, step }));
  try {
    sim.runSeed(scenario, sim.seedFromNumber(seed), steps, options);
    return findings();
  } catch {
    return [...findings(), { property: CRASH, step: observer.step }];
  }
}
