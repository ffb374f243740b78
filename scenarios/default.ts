/** The seeds' own table (spec §11.2, §11.3): names, weights and draws as they stand there. */
import type { Grammar, Scenario } from '../sim/index.ts';

export const SEEDS_GRAMMAR: Grammar = {
  weights: {
    ClientDatagram: 34,
    BackendView: 16,
    BackendDatagram: 14,
    AdvanceClock: 14,
    ReconfigCluster: 6,
    SetMaxFlows: 5,
    AbortFlow: 4,
    SetMaxRx: 3,
    Drain: 2,
    CloseAll: 2,
  },
  buggifyPermille: 20,
  earlyTimerPermille: 30,
  sourceLimits: false,
  accounting: false,
  flowLimits: false,
  headers: false,
  sources: 32,
  policies: ['ROUND_ROBIN', 'RANDOM', 'LEAST_LOADED', 'POWER_OF_TWO', 'HRW', 'MAGLEV'],
};

export const DEFAULT: Scenario = {
  name: 'default',
  purpose: 'the seeds’ action table, every step checked against the shadow model',
  share: 1,
  grammarOf: () => SEEDS_GRAMMAR,
};
