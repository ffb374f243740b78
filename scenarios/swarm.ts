/**
 * Swarm testing (Groce et al. 2012): each seed switches whole actions and faults off, because what is never drawn lets the
 * rest go further: without CloseAll the table fills, without clock nothing expires.
 */
import {
  ACTION_KINDS,
  type ActionKind,
  type Grammar,
  type Scenario,
  type Streams,
} from '../sim/index.ts';
import { SEEDS_GRAMMAR } from './default.ts';

export const SWARM: Scenario = {
  name: 'swarm',
  purpose: 'each seed leaves out actions and faults, and may add source limits and IPv6 clients',
  share: 1 / 4,
  grammarOf: drawGrammar,
};

function drawGrammar({ config }: Streams): Grammar {
  const weights: Partial<Record<ActionKind, number>> = {};
  for (const kind of ACTION_KINDS) {
    const weight = SEEDS_GRAMMAR.weights[kind];
    if (weight === undefined) continue;
    if (kind === 'ClientDatagram' || config.chance(`keep ${kind}`, 1, 2)) weights[kind] = weight;
  }
  return {
    ...SEEDS_GRAMMAR,
    weights,
    buggifyPermille: config.chance('buggify', 1, 2) ? SEEDS_GRAMMAR.buggifyPermille : 0,
    earlyTimerPermille: config.chance('early timers', 1, 2) ? 100 : 0,
    sourceLimits: config.chance('source limits', 1, 2),
    headers: config.chance('headers', 1, 2),
    sources: config.chance('ipv6 clients', 1, 2) ? 64 : 32,
  };
}
