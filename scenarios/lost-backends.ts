/** Backends go down, leave and come back under live flows: pinned, rebound, closed at once or at their next datagram. */
import type { Grammar, Scenario } from '../sim/index.ts';
import { SEEDS_GRAMMAR } from './default.ts';

/** As many as there are of the clock, so that a loss meets flows that still live. */
export const LOSS_WEIGHTS: Grammar['weights'] = {
  LoseBackend: 6,
  RegainBackend: 4,
  SweepBackend: 2,
  KillFlow: 2,
};

const GRAMMAR: Grammar = {
  ...SEEDS_GRAMMAR,
  weights: { ...SEEDS_GRAMMAR.weights, ...LOSS_WEIGHTS, CloseAll: 0, Drain: 1 },
  accounting: true,
  sources: 16,
};

export const LOST_BACKENDS: Scenario = {
  name: 'lost-backends',
  purpose: 'backends are lost under live flows, which stay, move or close',
  share: 0,
  grammarOf: () => GRAMMAR,
};
