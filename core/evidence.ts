/**
 * What a data plane sees of its backends, put into reports for whoever judges them. It judges nothing. Refusals are told one
 * by one; datagrams are counted, and told a few times a second. A cluster that is not asked of, and a backend that nobody
 * doubts, cost nothing.
 */
import type { Cluster } from './clusters.ts';
import type { Backend } from './contract.ts';
import type { Report } from './directives.ts';
import { milliseconds, until, type Duration, type Instant } from './time.ts';

/** A fifth of the time after which backends are compared, so that an answer falls beside its request. */
const TRAFFIC_REPORT_PERIOD: Duration = milliseconds(100);

/** Between two reports that no way leads to a backend: one for each datagram would be thousands, and say the same. */
const UNREACHABLE_REPORT_PERIOD: Duration = milliseconds(100);

/** Where the flow of an open socket leads. */
export interface Target {
  readonly cluster: Cluster;
  readonly backend: Backend;
  /** Of the backend, in the data plane's registry. */
  readonly number: number;
}

interface Exchanged {
  readonly cluster: string;
  forwarded: number;
  answered: number;
}

export class Evidence {
  private readonly report: (report: Report) => void;
  /** Since the last report. */
  private readonly exchanged = new Map<Backend, Exchanged>();
  /** Backends that refused and were not heard since. */
  private readonly doubted = new Set<Backend>();
  /** When each backend was last said to be out of reach. */
  private readonly unreachableAt = new Map<Backend, Instant>();
  private reportedAt: Instant | undefined;

  constructor(report: (report: Report) => void) {
    this.report = report;
  }

  /** Whether anybody refused and was not heard since. */
  get hasDoubts(): boolean {
    return this.doubted.size > 0;
  }

  refused({ cluster: { settings }, backend }: Target, flow: number): void {
    const { cluster } = settings;
    this.doubted.add(backend);
    this.report({ kind: 'BackendRefused', cluster, address: backend.address, flow });
  }

  /** The network does not lead to a backend: as good as a refusal, and told a few times a second. */
  unreachable(target: Target, flow: number, now: Instant): void {
    const last = this.unreachableAt.get(target.backend);
    if (last !== undefined && until(last, now) < UNREACHABLE_REPORT_PERIOD) return;
    this.unreachableAt.set(target.backend, now);
    this.refused(target, flow);
  }

  /** So many client datagrams go to a backend. */
  forwarded({ cluster, backend }: Target, datagrams: number): void {
    if (isAskedOf(cluster)) this.of(cluster, backend).forwarded += datagrams;
  }

  /** So many datagrams of a live flow came from a backend. */
  answered({ cluster, backend }: Target, datagrams: number): void {
    if (isAskedOf(cluster)) this.of(cluster, backend).answered += datagrams;
    // One is enough to say that it is there.
    else if (this.doubted.has(backend)) this.of(cluster, backend).answered += 1;
    this.doubted.delete(backend);
  }

  /** The turn is over: says what was counted, if it is time. */
  flushed(now: Instant): void {
    if (this.exchanged.size === 0) return;
    if (this.reportedAt !== undefined && until(this.reportedAt, now) < TRAFFIC_REPORT_PERIOD)
      return;
    this.reportedAt = now;
    for (const [{ address }, { cluster, forwarded, answered }] of this.exchanged) {
      this.report({ kind: 'BackendTraffic', cluster, address, forwarded, answered });
    }
    this.exchanged.clear();
  }

  /** Flows of `backend` are no more: nothing will be heard of it, or of the next at its address, on their account. */
  forget(backend: Backend): void {
    this.doubted.delete(backend);
    this.unreachableAt.delete(backend);
  }

  private of({ settings }: Cluster, backend: Backend): Exchanged {
    const known = this.exchanged.get(backend);
    if (known !== undefined) return known;
    const fresh = { cluster: settings.cluster, forwarded: 0, answered: 0 };
    this.exchanged.set(backend, fresh);
    return fresh;
  }
}

/** Missing answers mean something only where requests are answered. */
function isAskedOf({ settings }: Cluster): boolean {
  return settings.exchange === 'request-response' && settings.passive !== false;
}
