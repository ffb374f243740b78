/** All scenarios by name, in the order in which they are listed and swept. */
import type { Scenario } from '../sim/index.ts';
import { CANARY } from './canary.ts';
import { CROWDED } from './crowded.ts';
import { DEFAULT } from './default.ts';
import { SWARM } from './swarm.ts';
import { TIMERS } from './timers.ts';

export const SCENARIOS: readonly Scenario[] = [DEFAULT, SWARM, CROWDED, TIMERS, CANARY];

export function scenarioNamed(name: string): Scenario | undefined {
  return SCENARIOS.find((scenario) => scenario.name === name);
}
