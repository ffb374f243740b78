/** The process's one timer. It may fire early and says nothing but "look": the core compares times itself. */
// Where the global one leads is found out at each call.
import { performance } from 'node:perf_hooks';
import { instant, until, type Instant } from '../../core/index.ts';

/** setTimeout takes no more than this many milliseconds. */
const LONGEST = 2_147_483_647;

/** When `performance.now()` of this thread was zero, in microseconds of the system's monotonic clock. */
const threadStart =
  Number(process.hrtime.bigint() / 1_000n) - Math.floor(performance.now() * 1_000);
let ahead = 0;

/** Where the clock of this thread begins, for a thread that follows it. */
export function clockStart(): number {
  return threadStart;
}

/** From now on the clock of this thread is that of the one which began at `start`: each thread of Node has its own zero. */
export function followClock(start: number): void {
  ahead = threadStart - start;
}

/** The monotonic clock of this process, in whole microseconds. */
export function monotonicNow(): Instant {
  return instant(Math.floor(performance.now() * 1_000) + ahead);
}

export class OneTimer {
  private readonly now: () => Instant;
  private readonly onFire: () => void;
  private handle: NodeJS.Timeout | undefined;
  private at: Instant | undefined;

  constructor(now: () => Instant, onFire: () => void) {
    this.now = now;
    this.onFire = onFire;
  }

  /**
   * Fires at `at`, or before: a timer that is already set for an earlier time stays, because the deadline of a busy proxy
   * moves with every datagram and setting a timer costs more than one look too many.
   */
  wakeAt(at: Instant | undefined): void {
    if (at === undefined) return this.clear();
    if (this.at !== undefined && this.at <= at) return;
    this.clear();
    this.at = at;
    const delay = Math.min(LONGEST, Math.ceil(until(this.now(), at) / 1_000));
    this.handle = setTimeout(() => {
      this.at = undefined;
      this.onFire();
    }, delay);
  }

  private clear(): void {
    clearTimeout(this.handle);
    this.at = undefined;
  }
}
