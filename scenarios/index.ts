/** All scenarios by name, in the order in which they are swept: those of the flow machine alone, and those of worlds. */
import type { Scenario, WorldScenario } from '../sim/index.ts';
import { CANARY } from './canary.ts';
import { CROWDED } from './crowded.ts';
import { DEFAULT } from './default.ts';
import { LOST_BACKENDS } from './lost-backends.ts';
import { SWARM } from './swarm.ts';
import { TIMERS } from './timers.ts';
import { WARY } from './wary.ts';
import { WORLD_SCENARIOS } from './world-scenarios.ts';

export { WORLD_SCENARIOS };

export const SCENARIOS: readonly Scenario[] = [
  DEFAULT,
  SWARM,
  CROWDED,
  TIMERS,
  LOST_BACKENDS,
  WARY,
  CANARY,
];

export function scenarioNamed(name: string): Scenario | undefined {
  return SCENARIOS.find((scenario) => scenario.name === name);
}

export function worldNamed(name: string): WorldScenario | undefined {
  return WORLD_SCENARIOS.find((scenario) => scenario.name === name);
}
