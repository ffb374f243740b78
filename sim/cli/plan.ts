/**
 * What a sweep is to run: which scenarios, which seeds of each, how many steps, and which part of it is this shard's. A plan
 * is data; its chunks come in one order, whoever runs them and however many.
 */
import { SCENARIOS, scenarioNamed, WORLD_SCENARIOS, worldNamed } from '../../scenarios/index.ts';
import { seedPlus, type Scenario, type Seed, type WorldScenario } from '../index.ts';

/** The sweep of spec §11.5: what runs unless something else is asked for. */
export const DEFAULT_SEEDS = 256;
export const DEFAULT_STEPS = 3_000;

/** Part `index`, counted from 1, of `count`. */
export interface Shard {
  readonly index: number;
  readonly count: number;
}

export interface Plan {
  /** One scenario by name; undefined: every scenario with a share. */
  readonly scenario: string | undefined;
  /** Every scenario of worlds too, before the others; then no scenario is named. */
  readonly all: boolean;
  readonly firstSeed: Seed;
  readonly seeds: number;
  /** Of a seed of the flow machine: how long a world lasts is its scenario's. */
  readonly steps: number;
  readonly shard: Shard | undefined;
}

/** One scenario of a plan, with its seeds over all shards. */
export interface Leg {
  readonly scenario: Scenario | WorldScenario;
  readonly seeds: number;
}

/** Some seeds of one leg, given to one worker at once. */
export interface Chunk {
  /** Place in the plan, counted from 0: results are joined in this order. */
  readonly order: number;
  readonly leg: number;
  /** Seeds as their distance from the plan's first, ascending. */
  readonly offsets: readonly number[];
}

/** A chunk takes a worker some tenths of a second: short enough to stop after it, long enough to be worth a message. */
const CHUNK_STEPS = 24_000;
const CHUNK_SEEDS_MAX = 8;
const CHUNK_WORLDS = 4;

export function legsOf(plan: Plan): Leg[] {
  const { scenario: name = '', seeds } = plan;
  const named = scenarioNamed(name) ?? worldNamed(name);
  if (named !== undefined) return [{ scenario: named, seeds }];
  const worlds = plan.all ? WORLD_SCENARIOS.map((scenario) => ({ scenario, seeds })) : [];
  const plain = SCENARIOS.filter(({ share }) => share > 0);
  return [
    ...worlds,
    ...plain.map((scenario) => ({ scenario, seeds: Math.ceil(seeds * scenario.share) })),
  ];
}

export function isWorld(scenario: Scenario | WorldScenario): scenario is WorldScenario {
  return 'kind' in scenario;
}

/** The chunks of this shard, lazily: a plan may have millions of seeds. */
export function* chunksOf(plan: Plan): Generator<Chunk, void> {
  const { index, count } = plan.shard ?? { index: 1, count: 1 };
  const plain = Math.max(1, Math.min(CHUNK_SEEDS_MAX, Math.floor(CHUNK_STEPS / plan.steps)));
  let order = 0;
  for (const [leg, { scenario, seeds }] of legsOf(plan).entries()) {
    const size = isWorld(scenario) ? CHUNK_WORLDS : plain;
    let offsets: number[] = [];
    for (let offset = index - 1; offset < seeds; offset += count) {
      offsets.push(offset);
      if (offsets.length < size && offset + count < seeds) continue;
      yield { order, leg, offsets };
      order += 1;
      offsets = [];
    }
  }
}

/** How many seeds this shard runs. */
export function seedsOf(plan: Plan): number {
  const { index, count } = plan.shard ?? { index: 1, count: 1 };
  return legsOf(plan).reduce(
    (sum, { seeds }) => sum + Math.max(0, Math.ceil((seeds - index + 1) / count)),
    0,
  );
}

export function seedAt(plan: Plan, offset: number): Seed {
  return seedPlus(plan.firstSeed, offset);
}

/** Whether properties that were not seen count as a failure: rare ones need a sweep of some size, and all of it. */
export function judgesMissed(plan: Plan): boolean {
  const large = plan.seeds >= DEFAULT_SEEDS && plan.steps >= DEFAULT_STEPS;
  return large && plan.scenario === undefined && plan.shard === undefined;
}
