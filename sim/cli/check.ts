/** Which seeds of a sweep are repeated by --check-determinism, chosen by their place alone: every shard agrees. */
import { legsOf, type Plan } from './plan.ts';
import type { Repetition } from './run-chunk.ts';

export interface Check {
  /** One seed in `every` is run again. */
  readonly every: number;
  /** One in `freshEvery`, a multiple of `every`, in a fresh process too. */
  readonly freshEvery: number;
}

/** Up to this many seeds are all repeated, above it five in a hundred, unless a share is given. */
const SMALL_SWEEP = 1_024;
const LARGE_PERCENT = 5;
/** Of each scenario: a process costs as much as dozens of seeds. */
const FRESH_SEEDS = 4;

/** `percent` undefined: all of a small sweep. */
export function checkOf(plan: Plan, percent: number | undefined): Check {
  const small = plan.seeds <= SMALL_SWEEP;
  const share = percent ?? (small ? 100 : LARGE_PERCENT);
  const every = Math.max(1, Math.round(100 / share));
  const most = Math.max(...legsOf(plan).map(({ seeds }) => seeds));
  return { every, freshEvery: every * Math.max(1, Math.ceil(most / every / FRESH_SEEDS)) };
}

export function repetitionOf(check: Check | undefined, offset: number): Repetition {
  if (check === undefined || offset % check.every !== 0) return 'once';
  return offset % check.freshEvery === 0 ? 'fresh' : 'again';
}
