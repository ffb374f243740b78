/**
 * An open loop: datagrams leave at a fixed rate, whatever comes back, so a proxy that stops shows as waiting and not as fewer
 * datagrams. What is due leaves together, every millisecond at least; its time begins when it leaves.
 */
import type { Load } from './loads.ts';
import type { Sender, Traffic } from './load-sockets.ts';
import { quantile } from './statistics.ts';

export interface OpenLoopOptions {
  /** When it begins, of `performance.now()`. */
  readonly now: number;
  readonly lengthMs: number;
  /** Datagrams a second, over all flows in turn, or over `count` of them from `first` on. */
  readonly rate: number;
  readonly first?: number;
  readonly count?: number;
  /** Names the slice, 0 to 65,535. */
  readonly mark: number;
  /** What tells when a datagram is back. */
  readonly clock?: () => number;
}

/** What comes later is lost; long, so that a stop of the machine is not taken for a loss. */
const OVERDUE_MS = 1_000;
/** The driver holds fewer sends than these, so the bytes of none change before it is gone. */
const PAYLOADS = 1_024;

export class OpenLoop implements Traffic {
  sent = 0;
  received = 0;
  private readonly sockets: Sender;
  private readonly first: number;
  private readonly count: number;
  private readonly perMs: number;
  private readonly total: number;
  private readonly begun: number;
  private readonly clock: () => number;
  private readonly payloads: readonly Uint8Array[];
  /** By serial number, milliseconds. */
  private readonly sentAt: Float64Array;
  private readonly took: Float64Array;
  private next = 0;
  private lastSent: number;
  private lastReply: number;

  constructor(sockets: Sender, load: Load, options: OpenLoopOptions) {
    const { now, lengthMs, rate, mark, clock, first = 0, count = load.flows } = options;
    this.sockets = sockets;
    this.first = first;
    this.count = count;
    this.perMs = rate / 1_000;
    this.total = Math.floor(lengthMs * this.perMs);
    this.payloads = Array.from({ length: PAYLOADS }, () => {
      const payload = new Uint8Array(load.bytes);
      payload[0] = mark;
      payload[1] = mark >> 8;
      return payload;
    });
    this.sentAt = new Float64Array(this.total);
    this.took = new Float64Array(this.total);
    this.begun = now;
    this.clock = clock ?? (() => performance.now());
    this.lastSent = this.begun;
    this.lastReply = this.begun;
  }

  /** Microseconds within which this share of what came back was back; NaN when nothing was. */
  latency(share: number): number {
    if (this.received === 0) return Number.NaN;
    return quantile([...this.took.subarray(0, this.received)], share) * 1_000;
  }

  reply(_flow: number, payload: Uint8Array): void {
    const own = this.payloads[0];
    if (payload[0] !== own?.[0] || payload[1] !== own?.[1]) return;
    const now = this.clock();
    const serial = (payload[4] ?? 0) | ((payload[5] ?? 0) << 8) | ((payload[6] ?? 0) << 16);
    this.took[this.received] = now - (this.sentAt[serial] ?? now);
    this.received += 1;
    this.lastReply = now;
  }

  unsent(): void {
    this.sent -= 1;
  }

  tick(now: number): boolean {
    const due = Math.min(this.total, Math.floor((now - this.begun) * this.perMs));
    for (; this.next < due; this.next += 1) this.sendNext(now);
    if (this.next < this.total) return false;
    return this.received >= this.sent || now - Math.max(this.lastSent, this.lastReply) > OVERDUE_MS;
  }

  private sendNext(now: number): void {
    const serial = this.next;
    const payload = this.payloads[serial % PAYLOADS];
    if (payload === undefined) return;
    payload[4] = serial;
    payload[5] = serial >> 8;
    payload[6] = serial >> 16;
    this.sentAt[serial] = now;
    this.lastSent = now;
    this.sent += 1;
    this.sockets.send(this.first + (serial % this.count), payload);
  }
}
