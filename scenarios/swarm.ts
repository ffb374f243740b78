/**
 * Swarm testing (Groce et al. 2012): each seed switches whole actions and faults off, because what is never drawn lets the
 * rest go further: without CloseAll the table fills, without clock nothing expires.
 */
import { ACTION_KINDS } from '../sim/core-harness/actions.ts';
import type { ActionKind, Grammar, Scenario, Streams } from '../sim/index.ts';
import { SEEDS_GRAMMAR } from './default.ts';
import { LOSS_WEIGHTS } from './lost-backends.ts';
import { GUARD_WEIGHTS } from './wary.ts';

export const SWARM: Scenario = {
  name: 'swarm',
  purpose:
    'each seed leaves out actions and faults, and may add limits, IPv6 clients and lost backends',
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
  const kept = {
    ...SEEDS_GRAMMAR,
    weights,
    buggifyPermille: config.chance('buggify', 1, 2) ? SEEDS_GRAMMAR.buggifyPermille : 0,
    earlyTimerPermille: config.chance('early timers', 1, 2) ? 100 : 0,
    sourceLimits: config.chance('source limits', 1, 2),
    headers: config.chance('headers', 1, 2),
    sources: config.chance('ipv6 clients', 1, 2) ? 64 : 32,
  };
  // Drawn after all else, so that what a seed leaves out is what it always left out.
  return {
    ...kept,
    accounting: config.chance('accounting', 1, 2),
    flowLimits: config.chance('limits of flows', 1, 2),
    weights: {
      ...weights,
      ...(config.chance('lost backends', 1, 2) ? LOSS_WEIGHTS : {}),
      ...(config.chance('guards', 1, 2) ? GUARD_WEIGHTS : {}),
    },
    sources: config.chance('few clients', 1, 2) ? 8 : kept.sources,
  };
}
