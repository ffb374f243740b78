/**
 * A closed loop: each active flow keeps a window of datagrams on their way, and what comes back leaves again. It ends only when
 * everything came back that will, so the processor time that a proxy spent meanwhile belongs to the round trips counted.
 */
import type { Load } from './loads.ts';
import type { Sender, Traffic } from './load-sockets.ts';

/** Flows start, and restart after a loss, this many datagrams per check: one burst cannot overflow a receive buffer. */
const BURST = 64;
const CHECK_MS = 2;
/** Far above the longest queue the loads can build: what is not back by now is lost. */
const OVERDUE_MS = 250;

export interface ClosedLoopOptions {
  /** When it begins, of `performance.now()`. */
  readonly now: number;
  readonly lengthMs: number;
  /** Names the slice, 0 to 65,535, so that a straggler of an earlier one is not counted. */
  readonly mark: number;
  /** A flow that has had an answer is done, and the slice is over when all are. */
  readonly isTouch?: boolean;
}

export class ClosedLoop implements Traffic {
  trips = 0;
  lost = 0;
  /** Active flows of which nothing has come back. */
  silent: number;
  private readonly sockets: Sender;
  private readonly window: number;
  private readonly inBursts: boolean;
  /** The numbers of the active flows. */
  private readonly active: readonly number[];
  private readonly inFlight: Int32Array;
  private readonly lastSent: Float64Array;
  private readonly hasAnswered: Uint8Array;
  private readonly payload: Uint8Array;
  private readonly isTouch: boolean;
  private end: number;
  private now: number;
  private checked = 0;
  private lastReply: number;

  constructor(sockets: Sender, load: Load, options: ClosedLoopOptions) {
    const { now, lengthMs, mark, isTouch = false } = options;
    const active = load.active ?? load.flows;
    this.sockets = sockets;
    this.window = load.window;
    this.inBursts = load.inBursts ?? false;
    this.active = Array.from({ length: active }, (_, at) => Math.floor((at * load.flows) / active));
    this.inFlight = new Int32Array(load.flows);
    this.lastSent = new Float64Array(load.flows);
    this.hasAnswered = new Uint8Array(load.flows);
    this.payload = new Uint8Array(load.bytes);
    this.payload[0] = mark;
    this.payload[1] = mark >> 8;
    this.now = now;
    this.lastReply = this.now;
    this.silent = active;
    this.isTouch = isTouch;
    this.end = this.now + lengthMs;
  }

  reply(flow: number, payload: Uint8Array): void {
    if (payload[0] !== this.payload[0] || payload[1] !== this.payload[1]) return;
    this.trips += 1;
    this.lastReply = this.now;
    if (this.hasAnswered[flow] === 0) this.silent -= 1;
    this.hasAnswered[flow] = 1;
    if (this.isTouch && this.silent === 0) this.end = Math.min(this.end, this.now);
    const goesOn = this.now < this.end && !this.isTouch;
    if (goesOn && !this.inBursts) {
      this.lastSent[flow] = this.now;
      return this.sockets.send(flow, payload);
    }
    const left = (this.inFlight[flow] ?? 0) - 1;
    this.inFlight[flow] = Math.max(0, left);
    if (goesOn && left === 0) this.fill(flow);
  }

  unsent(flow: number): void {
    this.inFlight[flow] = Math.max(0, (this.inFlight[flow] ?? 0) - 1);
  }

  tick(now: number): boolean {
    this.now = now;
    if (now < this.end) {
      if (now - this.checked >= CHECK_MS) this.revive();
      return false;
    }
    const inFlight = this.inFlight.reduce((sum, one) => sum + one, 0);
    if (inFlight > 0 && now - Math.max(this.end, this.lastReply) < OVERDUE_MS) return false;
    this.lost += inFlight;
    return true;
  }

  /** Starts idle flows, and again those whose datagrams are overdue. */
  private revive(): void {
    this.checked = this.now;
    let burst = 0;
    for (const flow of this.active) {
      if (burst >= BURST) break;
      const inFlight = this.inFlight[flow] ?? 0;
      if (this.isTouch && this.hasAnswered[flow] === 1) continue;
      if (inFlight > 0 && this.now - (this.lastSent[flow] ?? 0) < OVERDUE_MS) continue;
      this.lost += inFlight;
      this.fill(flow);
      burst += this.window;
    }
  }

  private fill(flow: number): void {
    for (let count = 0; count < this.window; count += 1) this.sockets.send(flow, this.payload);
    this.inFlight[flow] = this.window;
    this.lastSent[flow] = this.now;
  }
}
