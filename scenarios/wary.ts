/** Clients are not trusted: kept out, refused, slowed down, answered on credit, and counted by request and reply. */
import type { Grammar, Scenario } from '../sim/index.ts';
import { SEEDS_GRAMMAR } from './default.ts';

export const GUARD_WEIGHTS: Grammar['weights'] = { Deny: 4, Refuse: 3 };

const GRAMMAR: Grammar = {
  ...SEEDS_GRAMMAR,
  weights: {
    ...SEEDS_GRAMMAR.weights,
    ...GUARD_WEIGHTS,
    KillFlow: 1,
    BackendDatagram: 24,
    AdvanceClock: 10,
    CloseAll: 0,
    Drain: 1,
  },
  sourceLimits: true,
  accounting: true,
  flowLimits: true,
  sources: 8,
  headers: true,
};

export const WARY: Scenario = {
  name: 'wary',
  purpose: 'few clients, kept out, slowed down and answered on credit; replies counted by request',
  share: 0,
  grammarOf: () => GRAMMAR,
};
