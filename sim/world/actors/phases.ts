/** When actors act: phases have known lengths, and what is done for a phase begins and ends within it. */
import {
  after,
  instant,
  microseconds,
  milliseconds,
  until,
  type Duration,
} from '../../../core/time.ts';
import type { Actor, ActorBody } from '../actor.ts';
import type { Span } from '../faults.ts';
import { PHASES, type Phase, type PhaseTimes } from '../spec.ts';

/** From `low` to `high` milliseconds. */
export function span(low: number, high: number): Span {
  return { low: milliseconds(low), high: milliseconds(high) };
}

/** A time drawn from a span, waited for. */
export function rest(actor: Actor, site: string, { low, high }: Span): PromiseLike<void> {
  return actor.pause(site, low, high);
}

/** Until a phase begins; zero once it has. */
function untilPhase(phase: Phase, { now, times }: Clockwork): Duration {
  let start = instant(0);
  for (const one of PHASES.slice(0, PHASES.indexOf(phase))) start = after(start, times[one]);
  return until(now, start);
}

/** Rests until chaos begins, and a little longer, so that its actors do not all act at one instant. */
export async function chaosBegins(actor: Actor): Promise<void> {
  await actor.sleep(untilPhase('chaos', clockwork(actor)));
  await actor.sleep(microseconds(1 + actor.random.choose('first', 20_000)));
}

/** What is left of chaos. */
export function chaosLeft(actor: Actor): Duration {
  return untilPhase('heal', clockwork(actor));
}

/** The same body at several times of chaos: after a rest each, until less than `margin` of it is left. */
export function throughChaos(
  every: Span,
  body: ActorBody,
  margin: Duration = milliseconds(20),
): ActorBody {
  return async (actor) => {
    await chaosBegins(actor);
    for (;;) {
      await rest(actor, 'every', every);
      if (chaosLeft(actor) <= margin) return;
      await body(actor);
    }
  };
}

interface Clockwork {
  readonly now: ReturnType<Actor['now']>;
  readonly times: PhaseTimes;
}

function clockwork(actor: Actor): Clockwork {
  return { now: actor.now(), times: actor.spec.phases };
}
