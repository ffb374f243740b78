/**
 * Pauses between attempts that fail for want of something: they double while it lasts, and are short again once it is over.
 * Nobody says that an attempt worked; one that had not failed by the next has.
 */
import { after, microseconds, type Duration, type Instant } from './time.ts';

export interface BackOffTimes {
  readonly first: Duration;
  readonly longest: Duration;
}

export class BackOff {
  private readonly times: BackOffTimes;
  private pause: Duration;
  private over: Instant | undefined;
  private attempted = false;

  constructor(times: BackOffTimes) {
    this.times = times;
    this.pause = times.first;
  }

  /** Whether an attempt must wait at `now`. */
  rests(now: Instant): boolean {
    return this.over !== undefined && now < this.over;
  }

  /** An attempt begins. */
  attempt(): void {
    if (this.attempted) this.pause = this.times.first;
    this.attempted = true;
  }

  /** The attempt that began last has failed. Whether it is the first to fail since one worked. */
  failed(now: Instant): boolean {
    const { first, longest } = this.times;
    const isFirst = this.pause === first;
    this.attempted = false;
    this.over = after(now, this.pause);
    this.pause = microseconds(Math.min(2 * this.pause, longest));
    return isFirst;
  }

  /** When the present rest is over; in the past, or undefined, when there is none. */
  get restsUntil(): Instant | undefined {
    return this.over;
  }
}
