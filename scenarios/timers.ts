/**
 * Time and little else: no flow is closed by hand, timeouts change all the time, so that many deadlines of different lengths
 * stand side by side and the timer is delivered early as often as when it is due.
 */
import type { Grammar, Scenario } from '../sim/index.ts';
import { SEEDS_GRAMMAR } from './default.ts';

const GRAMMAR: Grammar = {
  ...SEEDS_GRAMMAR,
  weights: {
    ClientDatagram: 34,
    BackendDatagram: 14,
    AdvanceClock: 22,
    EarlyTimer: 16,
    ReconfigCluster: 14,
  },
};

export const TIMERS: Scenario = {
  name: 'timers',
  purpose: 'deadlines of many lengths, early timers, and nothing closed by hand',
  share: 0,
  grammarOf: () => GRAMMAR,
};
