/** A full house: more clients than the caps and the limits per source let in, so that admission decides all the time. */
import type { Grammar, Scenario } from '../sim/index.ts';
import { SEEDS_GRAMMAR } from './default.ts';

const GRAMMAR: Grammar = {
  ...SEEDS_GRAMMAR,
  weights: {
    ...SEEDS_GRAMMAR.weights,
    ClientDatagram: 60,
    AdvanceClock: 6,
    SetMaxFlows: 8,
    Drain: 1,
    CloseAll: 1,
  },
  buggifyPermille: 60,
  sourceLimits: true,
};

export const CROWDED: Scenario = {
  name: 'crowded',
  purpose: 'tiny caps and limits per source: new flows are refused all the time',
  share: 0,
  grammarOf: () => GRAMMAR,
  preface: [{ kind: 'SetMaxFlows', count: 3 }],
};
