/**
 * How fast a flow may send: one number a flow, the theoretical arrival time of the generic cell rate algorithm (ITU-T
 * I.371), which is a token bucket that needs no second number for its level. Flows in cells of a sketch would share them
 * with strangers; an established flow has a bucket of its own.
 */
import { present } from './assert.ts';
import type { ClusterConfig } from './contract.ts';
import type { Instant } from './time.ts';

const SECOND = 1_000_000;

export class FlowRates {
  private slots: number;
  /** By slot, in microseconds. Made when the first cluster asks for a rate: without one a flow pays nothing. */
  private arrivals: Float64Array | undefined;

  /** For slots 0 to `capacity` − 1. */
  constructor(capacity: number) {
    this.slots = capacity;
  }

  /** Room for more slots; what was spent stays spent. Takes time in proportion to the flows. */
  grow(capacity: number): void {
    const { arrivals } = this;
    this.slots = capacity;
    if (arrivals === undefined) return;
    this.arrivals = new Float64Array(capacity);
    this.arrivals.set(arrivals);
  }

  /** Flows will be admitted under this configuration. */
  expect(config: ClusterConfig): void {
    if (config.datagramsPerSecond !== 0) this.arrivals ??= new Float64Array(this.slots);
  }

  /** A new flow under a configuration with a rate: its first datagram is spent. */
  begin(slot: number, config: ClusterConfig, now: Instant): void {
    this.all[slot] = now + SECOND / config.datagramsPerSecond;
  }

  /** Whether this flow, under a configuration with a rate, may send one datagram more now; then it is spent. */
  take(slot: number, config: ClusterConfig, now: Instant): boolean {
    const { all } = this;
    const interval = SECOND / config.datagramsPerSecond;
    const expected = Math.max(now, all[slot] ?? 0);
    // The clock counts microseconds: less than one early is on time, and sums of fractions need be no more exact than that.
    if (expected - now >= (Math.max(1, config.datagramsBurst) - 1) * interval + 1) return false;
    all[slot] = expected + interval;
    return true;
  }

  private get all(): Float64Array {
    return present(this.arrivals, 'there is room for rates before a flow has one');
  }
}
