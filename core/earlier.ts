/** Which of several dates is next. */
import type { Wake } from './plane-contract.ts';
import type { Instant } from './time.ts';

/** The earlier of two; of the same instant the first. */
export function earlier(
  wake: Wake | undefined,
  at: Instant | undefined,
  reason: Wake['reason'],
): Wake | undefined {
  return at === undefined || (wake !== undefined && wake.at <= at) ? wake : { at, reason };
}
