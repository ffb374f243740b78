/** All scenarios by name, in the order in which they are listed and swept. */
import type { Scenario } from '../sim/index.ts';
import { CANARY } from './canary.ts';
import { CROWDED } from './crowded.ts';
import { DEFAULT } from './default.ts';
import { LOST_BACKENDS } from './lost-backends.ts';
import { SWARM } from './swarm.ts';
import { TIMERS } from './timers.ts';
import { WARY } from './wary.ts';

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
