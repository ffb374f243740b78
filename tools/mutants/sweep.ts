/** What is done to one build of the program: the seeds of a plain sweep, one after the other, until a property is violated. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { present } from '../../core/assert.ts';
import type * as Scenarios from '../../scenarios/index.ts';
import type * as Sim from '../../sim/index.ts';

export interface SweepLimits {
  /** Seeds of `default`; a quarter of them in `swarm` too, an eighth in each of the others (`TURNS`). */
  readonly seeds: number;
  readonly steps: number;
  /** Go on after a violation, to see which properties could have found it alone. */
  readonly exhaustive: boolean;
  /** Shrink the first failing seed. */
  readonly shrink: boolean;
}

/** Where a mutant was found first. */
export interface Detection {
  readonly property: string;
  readonly scenario: string;
  readonly seed: number;
  /** Seeds of `default` begun until then. */
  readonly seeds: number;
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
  readonly sim: typeof Sim;
  readonly scenarios: readonly Swept[];
}

interface Swept {
  readonly scenario: Sim.Scenario;
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
  const sim: typeof Sim = await import(url('sim/index.js'));
  const { scenarioNamed }: typeof Scenarios = await import(url('scenarios/index.js'));
  const scenarios = Object.entries(TURNS).map(([name, turns]) => ({
    scenario: present(scenarioNamed(name), 'a scenario of this name'),
    turns,
  }));
  return { sim, scenarios };
}

/** What must always hold in the core harness. To be asked before anything that knows worlds is loaded: they share a list. */
export async function harnessProperties(directory: string): Promise<string[]> {
  const url = (file: string): string => pathToFileURL(join(directory, file)).href;
  await import(url('sim/core-harness/run.js'));
  const { declaredProperties }: Pick<typeof Sim, 'declaredProperties'> = await import(
    url('sim/properties.js')
  );
  const names = declaredProperties().filter(({ kind }) => kind === 'always');
  return names.map(({ name }) => name);
}

/** In the order of the seeds: seed n of a scenario with k turns follows default's seed kn + k − 1. `begun` is told of each. */
export function sweep(
  { sim, scenarios }: Build,
  limits: SweepLimits,
  begun: (seeds: number) => void,
): SweepResult {
  const violated = new Set<string>();
  let detection: Detection | undefined;
  let shrunk: Shrinking | undefined;
  for (let seed = 0; seed < limits.seeds; seed += 1) {
    begun(seed + 1);
    for (const { scenario, turns } of scenarios) {
      if (seed % turns !== turns - 1) continue;
      const own = Math.floor(seed / turns);
      const found = runOne(sim, scenario, own, limits);
      for (const { property } of found) violated.add(property);
      const first = found[0];
      if (first === undefined) continue;
      detection ??= { ...first, scenario: scenario.name, seed: own, seeds: seed + 1 };
      if (limits.shrink) shrunk ??= shrinkOne(sim, scenario, own, limits);
      if (!limits.exhaustive) return { detection, violated: [...violated], shrunk };
    }
  }
  return { detection, violated: [...violated], shrunk };
}

function shrinkOne(
  sim: typeof Sim,
  scenario: Sim.Scenario,
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
  sim: typeof Sim,
  scenario: Sim.Scenario,
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
