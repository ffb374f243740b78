/** How a data plane ends: at a deadline, at once, or when its last flow has gone, alone or together with others. */
import type { Directive, Report } from './directives.ts';
import type { Instant } from './time.ts';

export interface Stopping {
  readonly deadline: Instant;
  readonly generation: number;
  /** What to do once no flow is left; `wait` for the deadline or a stop. */
  whenEmpty: 'stop' | 'tell' | 'wait';
}

/** Whoever asks again, while a stop is under way, does not get more time. */
export function drainOf(
  { deadline: asked, together = false }: Extract<Directive, { kind: 'Drain' }>,
  generation: number,
  before: Stopping | undefined,
): Stopping {
  const deadline = before !== undefined && before.deadline < asked ? before.deadline : asked;
  return { deadline, generation, whenEmpty: together ? 'tell' : 'stop' };
}

export function stopOf(generation: number, now: Instant): Stopping {
  return { deadline: now, generation, whenEmpty: 'stop' };
}

/** Says once that no flow is left. */
export function tellDrained(stopping: Stopping): Report {
  stopping.whenEmpty = 'wait';
  return { kind: 'Drained', generation: stopping.generation };
}
