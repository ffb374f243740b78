/** Virtual time: it moves only when told to, and never back. */
import { assert } from '../core/assert.ts';
import type { Duration, Instant } from '../core/time.ts';
import { after, instant } from '../core/time.ts';

export class VirtualClock {
  #now: Instant;

  constructor(start: Instant = instant(0)) {
    this.#now = start;
  }

  now(): Instant {
    return this.#now;
  }

  advance(duration: Duration): Instant {
    return this.advanceTo(after(this.#now, duration));
  }

  /** Moves to `at`, now or later. */
  advanceTo(at: Instant): Instant {
    assert(at >= this.#now, 'virtual time never goes back');
    this.#now = at;
    return at;
  }
}
