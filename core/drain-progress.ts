/** Tells whoever drains a backend how many flows are left there: at once when there are none, else a few times a second. */
import { formatAddress, type Address } from './address.ts';
import type { BackendSet } from './balancing/backend-set.ts';
import type { Directive, Report } from './directives.ts';
import { milliseconds, until, type Duration, type Instant } from './time.ts';

const REPORT_PERIOD: Duration = milliseconds(100);

interface Draining {
  readonly cluster: string;
  readonly address: Address;
  readonly change: number;
  readonly backends: BackendSet;
  told: { readonly flows: number; readonly at: Instant } | undefined;
}

export class DrainProgress {
  private readonly report: (report: Report) => void;
  private readonly draining = new Map<string, Draining>();
  /** Whether anything may have to be told: counting costs a look at every backend. */
  private changed = false;

  constructor(report: (report: Report) => void) {
    this.report = report;
  }

  /** The operator's word on one of `backends`. */
  stateSet(backends: BackendSet, news: Extract<Directive, { kind: 'SetBackendState' }>): void {
    const { cluster, address, change } = news;
    const key = `${formatAddress(address)} ${cluster}`;
    if (news.state !== 'draining') this.draining.delete(key);
    else if (this.draining.get(key)?.change !== change) {
      this.draining.set(key, { cluster, address, change, backends, told: undefined });
      this.changed = true;
    }
  }

  /** A flow of some backend is over there. */
  flowClosed(): void {
    this.changed = true;
  }

  /** The turn is over. */
  flushed(now: Instant): void {
    if (!this.changed) return;
    this.changed = false;
    for (const [key, one] of this.draining) {
      // A configuration without the backend has ended its drain.
      if (one.backends.stateOf(one.address) === 'draining') this.tell(one, now);
      else this.draining.delete(key);
    }
  }

  private tell(one: Draining, now: Instant): void {
    const { cluster, address, change, backends, told } = one;
    const flows = backends.flowsAt(address);
    if (flows === told?.flows) return;
    if (flows > 0 && told !== undefined && until(told.at, now) < REPORT_PERIOD) {
      this.changed = true;
      return;
    }
    one.told = { flows, at: now };
    this.report({ kind: 'BackendFlows', cluster, address, change, flows });
  }
}
