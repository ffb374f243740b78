import { expect, test } from 'vitest';
import {
  declaredProperties,
  Observer,
  runScript,
  runWorldSeed,
  seededStreams,
  seedFromNumber,
} from '../sim/index.ts';
import type { Config } from '../core/index.ts';
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

test('every knob of a cluster, a listener and health is turned by some scenario', () => {
  const turned = new Map<string, Set<string>>();
  for (const scenario of WORLD_SCENARIOS) {
    for (let seed = 0; seed < 24; seed++) {
      const { spec } = scenario.plan(seededStreams(seedFromNumber(seed)));
      for (const { config } of spec.proxies) noteConfig(config, turned);
    }
  }
  const alike = [...turned].filter(([, values]) => values.size < 2).map(([knob]) => knob);
  expect(alike).toEqual([]);
  expect(turned.size).toBeGreaterThan(50);
});

function noteConfig(
  { listeners, clusters, grace }: Config,
  turned: Map<string, Set<string>>,
): void {
  const note = (group: string, settings: object): void => {
    for (const [knob, value] of Object.entries(settings)) {
      const name = `${group}.${knob}`;
      turned.set(name, (turned.get(name) ?? new Set()).add(JSON.stringify(value) ?? 'undefined'));
    }
  };
  note('process', { grace });
  for (const listener of listeners) note('listener', listener);
  for (const { health, rates, backends, ...cluster } of clusters) {
    note('cluster', cluster);
    note('rates', rates);
    if (health !== undefined) note('health', health);
    for (const { weight, backup } of backends) note('backend', { weight, backup });
  }
}

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
