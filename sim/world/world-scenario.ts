/** A scenario of the world: a name, what it is for, the world it draws, and who acts in it. */
import type { Streams } from '../random.ts';
import type { Cast } from './actor.ts';
import type { WorldSpec } from './spec.ts';

export interface WorldPlan {
  readonly spec: WorldSpec;
  readonly cast: Cast;
}

export interface WorldScenario {
  readonly kind: 'world';
  readonly name: string;
  /** One line for `--list`. */
  readonly purpose: string;
  /** Names of properties that its sweep must reach: without them it is not about what it says. */
  readonly reaches: readonly string[];
  /** Draws the world and the actors of a seed, from the config stream. */
  plan(streams: Streams): WorldPlan;
}
