/** From the word in a configuration to the policy it means. */
import { assertNever } from '../assert.ts';
import type { LoadBalancing } from '../config.ts';
import { LeastLoaded } from './least-loaded.ts';
import { Maglev } from './maglev.ts';
import type { BalancingPolicy, PolicyTools } from './policy.ts';
import { PowerOfTwo } from './power-of-two.ts';
import { WeightedRandom } from './random.ts';
import { Rendezvous } from './rendezvous.ts';
import { RoundRobin } from './round-robin.ts';

export function createPolicy(name: LoadBalancing, tools: PolicyTools): BalancingPolicy {
  switch (name) {
    case 'ROUND_ROBIN':
      return new RoundRobin();
    case 'RANDOM':
      return new WeightedRandom(tools.random);
    case 'LEAST_LOADED':
      return new LeastLoaded(tools.loads);
    case 'POWER_OF_TWO':
      return new PowerOfTwo(tools.random, tools.loads);
    case 'HRW':
      return new Rendezvous(tools.placementSeed);
    case 'MAGLEV':
      return new Maglev(tools.placementSeed, undefined, tools.inSlices);
    default:
      return assertNever(name);
  }
}
