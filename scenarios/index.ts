/** All scenarios by name, in the order in which they are swept: those of the flow machine alone, and those of worlds. */
import type { WorldScenario } from '../sim/index.ts';
import { WORLD_SCENARIOS } from './world-scenarios.ts';

export * from './flow-machine.ts';
export { WORLD_SCENARIOS };

export function worldNamed(name: string): WorldScenario | undefined {
  return WORLD_SCENARIOS.find((scenario) => scenario.name === name);
}
