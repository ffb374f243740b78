/** What is done to one build of the whole proxy: a seed of each world, then the next of each, until a property is violated. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type * as Scenarios from '../../scenarios/index.ts';
import type * as Sim from '../../sim/index.ts';
import type * as Metamorphic from '../../sim/world/metamorphic.ts';
import type * as Oracles from '../../sim/world/oracles/all-oracles.ts';
import type * as RunWorld from '../../sim/world/run-world.ts';
import type * as Verdicts from '../../sim/world/verdicts.ts';
import { CRASH, type Begun, type Place, type SweepResult } from './sweep.ts';

export interface WorldLimits {
  /** Seeds of each scenario. */
  readonly seeds: number;
  /** Go on after a violation, to see which oracles could have found it alone. */
  readonly exhaustive: boolean;
  /** Then one seed in so many is asked how its run relates to others, or none. */
  readonly relatedOneIn?: number | undefined;
  /** Where it was found before: tried first, and counted as one seed. */
  readonly hint?: Place | undefined;
}

type WorldScenario = Parameters<typeof RunWorld.runWorldSeed>[0];

export interface WorldBuild {
  readonly sim: typeof Sim;
  readonly worlds: readonly WorldScenario[];
  readonly oracles: typeof Oracles.ORACLES;
  readonly runWorldSeed: typeof RunWorld.runWorldSeed;
  readonly Verdicts: typeof Verdicts.Verdicts;
  readonly isRelated: typeof Metamorphic.isRelated;
  readonly brokenRelation: typeof Metamorphic.brokenRelation;
  readonly relations: typeof Metamorphic.RELATIONS;
}

/** Several times what a run of any scenario takes. */
const TURNS_MAX = 50_000;

export async function loadWorlds(directory: string): Promise<WorldBuild> {
  const url = (file: string): string => pathToFileURL(join(directory, file)).href;
  const sim: typeof Sim = await import(url('sim/index.js'));
  const { WORLD_SCENARIOS }: typeof Scenarios = await import(url('scenarios/index.js'));
  const { ORACLES }: typeof Oracles = await import(url('sim/world/oracles/all-oracles.js'));
  const { runWorldSeed }: typeof RunWorld = await import(url('sim/world/run-world.js'));
  const verdicts: typeof Verdicts = await import(url('sim/world/verdicts.js'));
  const metamorphic: typeof Metamorphic = await import(url('sim/world/metamorphic.js'));
  const { Verdicts: Judge } = verdicts;
  return {
    sim,
    worlds: WORLD_SCENARIOS,
    oracles: ORACLES,
    runWorldSeed,
    Verdicts: Judge,
    isRelated: metamorphic.isRelated,
    brokenRelation: metamorphic.brokenRelation,
    relations: metamorphic.RELATIONS,
  };
}

/** `begun` is told of each run before it. In `violated` are names of oracles and of relations between runs. */
export async function sweepWorlds(
  build: WorldBuild,
  limits: WorldLimits,
  begun: (run: Begun) => void,
): Promise<SweepResult> {
  const violated = new Set<string>();
  let detection: SweepResult['detection'];
  let seeds = 0;
  for (const { scenario, seed } of runs(build, limits)) {
    seeds += 1;
    const place = { scenario: scenario.name, seed, seeds };
    begun(place);
    const found = await runOne(build, scenario, seed, limits);
    for (const oracle of found.oracles) violated.add(oracle);
    if (found.property === undefined) continue;
    const { property, step } = found;
    detection ??= { ...place, property, step };
    if (!limits.exhaustive) break;
  }
  return { detection, violated: [...violated], shrunk: undefined };
}

interface Run {
  readonly scenario: WorldScenario;
  readonly seed: number;
}

function* runs({ worlds }: WorldBuild, { seeds, hint }: WorldLimits): Generator<Run> {
  const hinted = worlds.find(({ name }) => name === hint?.scenario);
  if (hint !== undefined && hinted !== undefined) yield { scenario: hinted, seed: hint.seed };
  for (let seed = 0; seed < seeds; seed += 1) {
    for (const scenario of worlds) yield { scenario, seed };
  }
}

interface Finding {
  readonly property: string | undefined;
  readonly step: number;
  /** Those that were violated, and relations that do not hold, when all were let go on. */
  readonly oracles: readonly string[];
}

async function runOne(
  build: WorldBuild,
  scenario: WorldScenario,
  seed: number,
  { exhaustive, relatedOneIn }: WorldLimits,
): Promise<Finding> {
  const observer = new build.sim.Observer();
  try {
    return exhaustive
      ? await runLettingAllGoOn(build, { scenario, seed, relatedOneIn }, observer)
      : await runToViolation(build, scenario, seed, observer);
  } catch {
    return { property: CRASH, step: observer.step, oracles: [] };
  }
}

/** With the reruns that a sweep makes of some seeds. */
async function runToViolation(
  { sim, runWorldSeed, isRelated, brokenRelation }: WorldBuild,
  scenario: WorldScenario,
  number: number,
  observer: Sim.Observer,
): Promise<Finding> {
  const seed = sim.seedFromNumber(number);
  const run = await runWorldSeed(scenario, seed, { observer });
  const { name, step = 0 } = run.violation ?? {};
  const broken =
    name === undefined && isRelated(seed) ? brokenRelation({ ...run, seed }, observer) : undefined;
  return { property: name ?? broken?.property, step, oracles: [] };
}

async function runLettingAllGoOn(
  build: WorldBuild,
  { scenario, seed: number, relatedOneIn }: Run & Pick<WorldLimits, 'relatedOneIn'>,
  observer: Sim.Observer,
): Promise<Finding> {
  const alone = eachAlone(build);
  const seed = build.sim.seedFromNumber(number);
  const run = await build.runWorldSeed(scenario, seed, { observer, oracles: alone.oracles });
  const { violation } = run;
  const findings = alone.found();
  if (violation === undefined && relatedOneIn !== undefined && number % relatedOneIn === 0) {
    for (const [oracle, relation] of build.relations) {
      const broken = relation({ ...run, seed }, new build.sim.Observer());
      if (broken !== undefined) findings.push({ oracle, property: broken.property });
    }
  }
  const property = violation?.name ?? findings[0]?.property;
  return {
    property,
    step: violation?.step ?? 0,
    oracles: findings.map(({ oracle }) => oracle),
  };
}

interface Alone {
  readonly oracles: typeof Oracles.ORACLES;
  found(): { readonly oracle: string; readonly property: string }[];
}

/**
 * Every oracle with an observer of its own, and none that ends the run: what each finds with all others off. A run that would
 * never end is ended, and keeps what was found in it.
 */
function eachAlone({ sim, oracles, Verdicts: Judge }: WorldBuild): Alone {
  const nobody: ReadonlySet<string> = new Set();
  const observers = new Map(oracles.map(({ name }) => [name, new sim.Observer()]));
  const alone = oracles.map((kind): (typeof oracles)[number] => ({
    name: kind.name,
    begin: (verdicts, spec) => {
      const observer = observers.get(kind.name);
      return kind.begin(observer === undefined ? verdicts : new Judge(observer, nobody), spec);
    },
  }));
  return {
    oracles: [...alone, { name: 'patience', begin: patience }],
    found: () =>
      [...observers].flatMap(([oracle, { violations }]) => {
        const [first] = violations;
        return first === undefined ? [] : [{ oracle, property: first.name }];
      }),
  };
}

function patience(): { readonly hearings: { readonly TurnEnded: () => void } } {
  let turns = 0;
  const turnEnded = (): void => {
    turns += 1;
    if (turns > TURNS_MAX) throw new Error('the run has no end');
  };
  return { hearings: { TurnEnded: turnEnded } };
}
