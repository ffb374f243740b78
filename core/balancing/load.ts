/**
 * How loaded each backend is, as this data plane sees it (doc/decisions/0004-balancing.md): live flows, datagrams of the
 * last ten seconds, or smoothed probe time. Plain numbers, and no clock but the caller's `now`.
 */
import { sameAddress, type Address } from '../address.ts';
import { assert, assertNever, present } from '../assert.ts';
import type { LoadMetric } from '../config.ts';
import type { Backend } from '../contract.ts';
import { microseconds, until, type Duration, type Instant } from '../time.ts';
import { backendIdentity } from './identity.ts';

/** What one backend carries. */
interface Load {
  flows: number;
  readonly requests: RequestWindow;
  /** Smoothed, microseconds; undefined before the first probe. */
  probeTime: number | undefined;
}

/** A flow pins the object it was given, so a reconfigured backend is known by several: each leads to the one load. */
interface Holding {
  readonly load: Load;
  /** Live flows that pin this very object. */
  flows: number;
}

export class BackendLoads {
  private metric: LoadMetric;
  private current: readonly Backend[] = [];
  /** By object, because a look-up per datagram must build no string. */
  private holdings = new Map<Backend, Holding>();
  /** Of the first datagram: seconds are counted from there, because a clock's own begin where its machine was started. */
  private origin: Instant | undefined;

  constructor(metric: LoadMetric) {
    this.metric = metric;
  }

  setMetric(metric: LoadMetric): void {
    this.metric = metric;
  }

  /** A backend that stays keeps its load; one that left keeps it while a flow still holds it. */
  setBackends(backends: readonly Backend[]): void {
    const known = new Map(
      [...this.holdings].map(([backend, { load }]) => [backendIdentity(backend), load]),
    );
    const next = new Map<Backend, Holding>();
    for (const backend of backends) {
      const load = known.get(backendIdentity(backend)) ?? idle();
      next.set(backend, this.holdings.get(backend) ?? { load, flows: 0 });
    }
    for (const [backend, holding] of this.holdings) {
      if (holding.flows > 0) next.set(backend, holding);
    }
    this.holdings = next;
    this.current = backends;
  }

  flowOpened(backend: Backend): void {
    const holding = this.holdingOf(backend);
    holding.flows += 1;
    holding.load.flows += 1;
  }

  flowClosed(backend: Backend): void {
    const holding = this.holdingOf(backend);
    assert(holding.flows > 0, 'a flow closes once, on the backend it was opened on');
    holding.flows -= 1;
    holding.load.flows -= 1;
  }

  /** One client datagram of a live flow. Free unless requests are what counts. */
  forwarded(backend: Backend, now: Instant): void {
    if (this.metric !== 'REQUESTS') return;
    this.origin ??= now;
    this.holdingOf(backend).load.requests.add(this.elapsed(now));
  }

  /** A probe of every backend at `address` was answered after `took`; smoothed as TCP smooths round trips (RFC 6298). */
  probed(address: Address, took: Duration): void {
    for (const backend of this.current) {
      if (!sameAddress(backend.address, address)) continue;
      const { load } = this.holdingOf(backend);
      load.probeTime =
        load.probeTime === undefined ? took : load.probeTime + (took - load.probeTime) / 8;
    }
  }

  /** Live flows on `backend`, whichever of its configurations they were opened under. */
  flowsOn(backend: Backend): number {
    return this.holdingOf(backend).load.flows;
  }

  /** What `isLighter` compares: live flows, datagrams, or microseconds once there was a probe. */
  loadOf(backend: Backend, now: Instant): number {
    const { load } = this.holdingOf(backend);
    if (this.metric === 'REQUESTS') return load.requests.total(this.elapsed(now));
    return this.metric === 'CONNECTION_TIME' ? (load.probeTime ?? load.flows) : load.flows;
  }

  /** The objects that live flows hold, of this list or an earlier one. */
  inUse(): Backend[] {
    const held = [...this.holdings].filter(([, { flows }]) => flows > 0);
    return held.map(([backend]) => backend);
  }

  /** Live flows on every backend at `address`, of this list or an earlier one. */
  flowsAt(address: Address): number {
    let sum = 0;
    for (const [backend, { flows }] of this.holdings) {
      if (sameAddress(backend.address, address)) sum += flows;
    }
    return sum;
  }

  /**
   * Whether `candidate` carries strictly less than `best`. Probe times are compared once both have one: microseconds
   * against a number of flows would say nothing.
   */
  isLighter(candidate: Backend, best: Backend, now: Instant): boolean {
    const one = this.holdingOf(candidate).load;
    const other = this.holdingOf(best).load;
    switch (this.metric) {
      case 'CONNECTIONS':
        return one.flows < other.flows;
      case 'REQUESTS': {
        const elapsed = this.elapsed(now);
        return one.requests.total(elapsed) < other.requests.total(elapsed);
      }
      case 'CONNECTION_TIME':
        if (one.probeTime === undefined || other.probeTime === undefined) {
          return one.flows < other.flows;
        }
        return one.probeTime < other.probeTime;
      default:
        return assertNever(this.metric);
    }
  }

  private elapsed(now: Instant): Duration {
    return this.origin === undefined ? microseconds(0) : until(this.origin, now);
  }

  private holdingOf(backend: Backend): Holding {
    return present(this.holdings.get(backend), 'a load is asked of a backend of this set');
  }
}

function idle(): Load {
  return { flows: 0, requests: new RequestWindow(), probeTime: undefined };
}

const BUCKETS = 10;
const BUCKET_MICROSECONDS = 1_000_000;

/** Datagrams of the current second and the nine before it. */
export class RequestWindow {
  /** Made by the first datagram: most clusters never look. */
  private readonly buckets: number[] = [];
  private sum = 0;
  private second = 0;

  /** Time is counted from one instant for all, here and below. */
  add(elapsed: Duration): void {
    this.advance(elapsed);
    const at = this.second % BUCKETS;
    this.buckets[at] = (this.buckets[at] ?? 0) + 1;
    this.sum += 1;
  }

  total(elapsed: Duration): number {
    this.advance(elapsed);
    return this.sum;
  }

  private advance(elapsed: Duration): void {
    const second = Math.floor(elapsed / BUCKET_MICROSECONDS);
    if (second === this.second) return;
    const expired = Math.min(BUCKETS, second - this.second);
    for (let step = 1; step <= expired; step += 1) {
      const at = (this.second + step) % BUCKETS;
      this.sum -= this.buckets[at] ?? 0;
      this.buckets[at] = 0;
    }
    this.second = second;
  }
}
