/** Loops over work that must come to an end. Where it never does, a test shall fail rather than hang. */

/** More than any test needs. */
const STEPS_MAX = 100_000;

/** Takes steps while `step` says that there was something to do. How many there were. */
export function untilOver(step: () => boolean): number {
  for (let steps = 0; steps < STEPS_MAX; steps += 1) if (!step()) return steps;
  throw new Error(`not over after ${STEPS_MAX} steps`);
}
