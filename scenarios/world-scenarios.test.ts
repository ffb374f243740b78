import { expect, test } from 'vitest';
import {
  declaredProperties,
  Observer,
  runScript,
  runWorldSeed,
  seedFromNumber,
} from '../sim/index.ts';
import { worldNamed } from './index.ts';
import { WORLD_SCENARIOS } from './world-scenarios.ts';

test('every scenario has a name of its own, and is found by it', () => {
  const names = WORLD_SCENARIOS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const scenario of WORLD_SCENARIOS) expect(worldNamed(scenario.name)).toBe(scenario);
});

test('whatever a scenario names as what it reaches is declared', () => {
  const declared = new Set(
    declaredProperties()
      .filter(({ kind }) => kind === 'sometimes' || kind === 'reachable')
      .map(({ name }) => name),
  );
  for (const { name, reaches } of WORLD_SCENARIOS) {
    expect(reaches.length, name).toBeGreaterThan(0);
    expect(
      reaches.filter((property) => !declared.has(property)),
      name,
    ).toEqual([]);
  }
});

/** Seeds after which a scenario must have reached what it names. */
const SEEDS_MAX = 24;

test.for(WORLD_SCENARIOS)('$name holds, and soon reaches what it names', async (scenario) => {
  const observer = new Observer();
  const missed = (): string[] => {
    const hits = new Map(observer.counts().map(({ name, hits: count }) => [name, count]));
    return scenario.reaches.filter((name) => !hits.get(name));
  };
  for (let seed = 0; seed < SEEDS_MAX && (seed < 4 || missed().length > 0); seed++) {
    const { violation, detail } = await runWorldSeed(scenario, seedFromNumber(seed), { observer });
    expect(violation && { ...violation, detail }, `seed ${seed}`).toBeUndefined();
  }
  expect(missed()).toEqual([]);
});

test.for(WORLD_SCENARIOS)(
  '$name is its script: replayed without actors it is the same run',
  async (scenario) => {
    const seed = seedFromNumber(1);
    const run = await runWorldSeed(scenario, seed, { observer: new Observer() });
    const again = runScript(run.spec, run.script, seed, { observer: new Observer() });
    expect(again.digest).toBe(run.digest);
  },
);
