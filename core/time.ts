/**
 * Time as integers. Nothing here reads a clock: every time-dependent call takes `now`. Microseconds fit a double exactly
 * for 285 years.
 */
import { assert } from './assert.ts';
import type { Brand } from './brand.ts';

/** Microseconds since an origin that the caller chose; only differences mean anything. */
export type Instant = Brand<number, 'Instant'>;

/** Microseconds, never negative. */
export type Duration = Brand<number, 'Duration'>;

/** An instant `count` microseconds after the origin. Throws on a fraction or a negative number. */
export function instant(count: number): Instant {
  assert(
    Number.isSafeInteger(count) && count >= 0,
    'an instant is a natural number of microseconds',
  );
  return count as Instant;
}

export function microseconds(count: number): Duration {
  assert(
    Number.isSafeInteger(count) && count >= 0,
    'a duration is a natural number of microseconds',
  );
  return count as Duration;
}

export function milliseconds(count: number): Duration {
  return microseconds(count * 1_000);
}

export function seconds(count: number): Duration {
  return microseconds(count * 1_000_000);
}

/** The instant `duration` after `from`. */
export function after(from: Instant, duration: Duration): Instant {
  return (from + duration) as Instant;
}

/** How long from `from` until `to`; zero when `to` has passed. */
export function until(from: Instant, to: Instant): Duration {
  return (to > from ? to - from : 0) as Duration;
}
