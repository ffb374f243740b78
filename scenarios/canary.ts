/**
 * The canary must fail: it proves that a property violated somewhere in a sweep is seen, reported and ends in exit code 1.
 * What it violates is declared unreachable, so that no other sweep misses it.
 */
import type { Property, Scenario } from '../sim/index.ts';
import { unreachable } from '../sim/properties.ts';
import { SEEDS_GRAMMAR } from './default.ts';

const SINGS: Property<'unreachable'> = unreachable('the canary sings');
const CLOSINGS = 3;

export const CANARY: Scenario = {
  name: 'canary',
  purpose: 'must fail, at the third CloseAll of a run, so that failing is known to work',
  share: 0,
  mustFail: true,
  grammarOf: () => SEEDS_GRAMMAR,
  watch: () => {
    let left = CLOSINGS;
    return (action, observer) => {
      if (action.kind !== 'CloseAll') return;
      left -= 1;
      if (left === 0) observer.reach(SINGS);
    };
  },
};
