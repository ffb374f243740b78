import { expect, test } from 'vitest';
import { DEFAULT } from '../../scenarios/default.ts';
import { SWARM } from '../../scenarios/swarm.ts';
import { Observer } from '../properties.ts';
import type { Seed } from '../seed.ts';
import { runSeed } from './run.ts';
import type { Scenario } from './scenario.ts';

/** A new digest means that seeds of before no longer name the runs they named: that needs a line in the changelog. */
test.each<[string, Scenario, Seed, number, string]>([
  ['0x5EEDC0DE of default', DEFAULT, { high: 0, low: 0x5eedc0de }, 4_000, '436b5747c9fb3629'],
  ['0xABCDEF of default', DEFAULT, { high: 0, low: 0xabcdef }, 1_500, '8852745f59418f05'],
  ['0xDEADBEEF of swarm', SWARM, { high: 0, low: 0xdeadbeef }, 2_000, '4fd0732c8d7306c3'],
])('%s keeps its digest except on a breaking release', (_, scenario, seed, steps, digest) => {
  expect(runSeed(scenario, seed, steps, { observer: new Observer() }).digest).toBe(digest);
});
