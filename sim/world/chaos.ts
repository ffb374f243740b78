/**
 * Chaos: episodes of faults, each with a beginning and an end, while the phase of that name lasts. Swarm testing: every seed
 * leaves out families, by a hash of seed and name, so that one more family changes no other; each has a stream of its own.
 */
import { microseconds } from '../../core/time.ts';
import type { Random } from '../random.ts';
import type { ActorBody } from './actor.ts';
import { chaosBegins, chaosLeft, rest, span } from './actors/phases.ts';
import { familyNamed, type Family, type FamilyName } from './chaos-families.ts';
import type { Span } from './faults.ts';

export interface ChaosOptions {
  /** On in every seed: what the scenario is about. */
  readonly always?: readonly FamilyName[];
  /** Each of them on in `percent` of the seeds. */
  readonly families?: readonly FamilyName[];
  readonly percent?: number;
  /** From the end of an episode of a family to its next one. */
  readonly every?: Span;
  readonly lasts?: Span;
}

/** The families of a seed, in the order of `families`. `config` is the run's stream of that name. */
export function drawFamilies(
  config: Random,
  { always = [], families = [], percent = 50 }: ChaosOptions,
): FamilyName[] {
  const drawn = families.filter((name) => config.fork(`family ${name}`).chance('on', percent, 100));
  return [...new Set([...always, ...drawn])];
}

/** One actor, with a helper for each family. */
export function chaos(config: Random, options: ChaosOptions): ActorBody {
  const { every = span(10, 250), lasts = span(10, 200) } = options;
  const families = drawFamilies(config, options);
  return async (actor) => {
    for (const name of families) actor.spawn(name, episodes(familyNamed(name), every, lasts));
    await actor.sleep(microseconds(0));
  };
}

function episodes(family: Family, every: Span, length: Span): ActorBody {
  return async (actor) => {
    await chaosBegins(actor);
    for (;;) {
      await rest(actor, 'every', every);
      const left = chaosLeft(actor);
      if (left === 0) return;
      const lasts = actor.random.between('lasts', length.low, length.high);
      const ends = microseconds(Math.min(lasts, left));
      const { begin, end } = family(actor, ends);
      for (const action of begin) actor.act(action);
      // What lasts until the end of chaos ends with it.
      if (ends === left) return;
      await actor.sleep(ends);
      for (const action of end) actor.act(action);
    }
  };
}
