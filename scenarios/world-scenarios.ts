/** The scenarios that raise the whole proxy in a world, in the order in which they are listed and swept. */
import type { WorldScenario } from '../sim/index.ts';
import { DNS_BURST } from './dns-burst.ts';

export const WORLD_SCENARIOS: readonly WorldScenario[] = [DNS_BURST];
