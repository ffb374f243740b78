/**
 * The scenarios of the flow machine alone by name, in the order in which they are swept. No worlds are loaded with them:
 * whoever sweeps hundreds of builds, each in a thread of its own, would wait for that longer than for the sweep.
 */
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
