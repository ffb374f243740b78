/**
 * Named points at which a simulation may be unkind. A seed activates some of them, by a hash of seed and name, and an active
 * point then fires now and then from a stream of its own: a new point shifts no other, and no other choice of the run.
 */
import type { Random } from './random.ts';
import { hashSeed } from './seed.ts';
import type { Seed } from './seed.ts';

/** One point of one run. */
export interface BuggifyPoint {
  readonly active: boolean;
  /** True in `numerator` of `denominator` calls when the point is active, never otherwise. */
  fires(numerator: number, denominator: number): boolean;
}

/**
 * The point called `name` in the run of `seed`. It is active in `numerator` of `denominator` seeds; 1 of 1 makes it a
 * plain ratio, 0 of 1 takes it out. `buggify` is the run's stream of that name.
 */
export function buggifyPoint(
  name: string,
  seed: Seed,
  buggify: Random,
  activation: { readonly numerator: number; readonly denominator: number } = ONE_IN_FOUR,
): BuggifyPoint {
  const drawn = hashSeed(seed, `buggify?${name}`, 0) % activation.denominator;
  const active = drawn < activation.numerator;
  const random = buggify.fork(name);
  return {
    active,
    fires: (numerator, denominator) => active && random.chance(name, numerator, denominator),
  };
}

const ONE_IN_FOUR = { numerator: 1, denominator: 4 };
