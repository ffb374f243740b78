/**
 * What the terms of one flow promise, checked from its datagrams and its end alone. It knows nothing of the shadow model, so
 * that either can be wrong without the other.
 */
import type { CloseReason } from '../../core/contract.ts';
import type { Observer } from '../properties.ts';
import type { DrawnCluster, DrawnTerms } from './actions.ts';
import * as properties from './properties.ts';

export class FlowPromises {
  private readonly config: DrawnCluster;
  private readonly terms: DrawnTerms;
  private readonly observer: Observer;
  /** When each client datagram was forwarded. */
  private readonly forwards: number[] = [];
  private responses = 0;
  private credit = 0;
  /** Since when every reply is there. */
  private doneAt: number | undefined;

  constructor(config: DrawnCluster, terms: DrawnTerms, observer: Observer) {
    this.config = config;
    this.terms = terms;
    this.observer = observer;
  }

  forwarded(bytes: number, now: number): void {
    const { forwards, terms, observer } = this;
    observer.check(properties.ONE_WAY, this.doneAt === undefined);
    if (forwards.length === 0)
      this.credit = Math.max(terms.creditFloor, terms.creditFactor * bytes);
    forwards.push(now);
    observer.check(properties.WITHIN_RATE, this.isWithinRate(now));
  }

  returned(bytes: number, now: number): void {
    const { observer, terms } = this;
    this.responses += 1;
    if (this.forwards.length === 1) this.credit -= bytes;
    observer.check(properties.WITHIN_CREDIT, terms.creditFactor === 0 || this.credit >= 0);
    observer.check(properties.IN_GRACE, this.doneAt === undefined || now < this.graceEnd);
    observer.check(properties.LATE_REPLY, this.doneAt !== undefined);
    observer.check(properties.LINGERED, this.isSpent && this.doneAt === undefined);
    if (this.isAnswered) this.doneAt ??= now;
  }

  closed(reason: CloseReason, now: number): void {
    this.observer.check(properties.REASONED, this.mayClose(reason, now));
  }

  /** Every client datagram the flow may take. */
  private get isSpent(): boolean {
    const { requests } = this.config;
    return requests !== 0 && this.forwards.length >= requests;
  }

  private get isAnswered(): boolean {
    const { responses } = this.config;
    const requests = this.terms.responsesPerRequest ? this.forwards.length : 1;
    return responses !== 0 && this.responses >= responses * requests;
  }

  private get graceEnd(): number {
    return (this.doneAt ?? 0) + this.terms.graceMs * 1_000;
  }

  /** In no span that ends now did more come than the burst and what the rate gives in that time. */
  private isWithinRate(now: number): boolean {
    const { rate, burst } = this.terms;
    const count = this.forwards.length;
    return (
      rate === 0 ||
      this.forwards.every((at, place) => (count - place - burst) * 1_000_000 <= (now - at) * rate)
    );
  }

  private mayClose(reason: CloseReason, now: number): boolean {
    const isOver = this.isAnswered && now >= this.graceEnd;
    switch (reason) {
      case 'ResponsesReached':
        return isOver && !this.endsAsSpent;
      case 'RequestsReached':
        return this.isSpent && (isOver || !this.terms.requestsLinger);
      case 'Idle':
        return !this.isAnswered;
      default:
        return true;
    }
  }

  private get endsAsSpent(): boolean {
    return this.isSpent && this.terms.requestsLinger;
  }
}
