/**
 * Refusals of one backend (ICMP port unreachable, heard on the sockets of its flows), in fixed memory. Anybody who knows an
 * address pair can forge one, and one flow may hear many, so only the last few of each flow count: enough of them within the
 * window come from several flows.
 */
import { seconds, until, type Duration, type Instant } from '../time.ts';

/** A forger has to know three live flows, source ports included, at one time. */
export const REFUSAL_FLOWS_MIN = 3;

/** One refusal of a flow may be left over from a restart that is over; the second says that it lasts. */
export const REFUSALS_PER_FLOW = 2;

export const REFUSALS_MIN: number = REFUSAL_FLOWS_MIN * REFUSALS_PER_FLOW;

/** Two probe intervals: flows with a datagram every few seconds take part, an outage of an hour ago does not. */
export const REFUSAL_WINDOW: Duration = seconds(10);

interface Refusal {
  readonly flow: number;
  readonly at: Instant;
}

export class RefusalEvidence {
  /** Oldest first; at most REFUSALS_MIN, of one flow at most REFUSALS_PER_FLOW. */
  private readonly latest: Refusal[] = [];

  get isEmpty(): boolean {
    return this.latest.length === 0;
  }

  /** `flow` is any number that tells live flows apart. `now` never goes back. */
  add(flow: number, now: Instant): void {
    let ofFlow = 0;
    let oldestOfFlow = 0;
    for (let at = this.latest.length - 1; at >= 0; at -= 1) {
      if (this.latest[at]?.flow !== flow) continue;
      ofFlow += 1;
      oldestOfFlow = at;
    }
    if (ofFlow === REFUSALS_PER_FLOW) this.latest.splice(oldestOfFlow, 1);
    else if (this.latest.length === REFUSALS_MIN) this.latest.shift();
    this.latest.push({ flow, at: now });
  }

  /** Refusals within the window, counted as above. */
  countAt(now: Instant): number {
    return this.latest.filter(({ at }) => until(at, now) < REFUSAL_WINDOW).length;
  }

  suffices(now: Instant): boolean {
    return this.countAt(now) === REFUSALS_MIN;
  }

  clear(): void {
    this.latest.length = 0;
  }
}
