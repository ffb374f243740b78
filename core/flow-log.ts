/**
 * Which ends of flows are told, for an access log, and what is told of them: sampled by the flow's own number, bounded in lines
 * a second, with the number left out. While it is off nothing is kept of a flow, and an output costs one comparison; see
 * doc/decisions/0022-access-log.md.
 */
import type { Address } from './address.ts';
import type { FlowId } from './brand.ts';
import type { AccessLogSettings } from './config.ts';
import type { Backend, CloseReason, Output } from './contract.ts';
import type { Report } from './directives.ts';
import { flowName } from './flow-names.ts';
import type { Listener } from './plane-listener.ts';
import { after, instant, seconds, until, type Duration, type Instant } from './time.ts';

/** What is told of a flow that has ended. */
export interface EndedFlow {
  /** As flows are named by `ListFlows`. */
  readonly flow: string;
  readonly listener: Address;
  readonly cluster: string;
  readonly client: Address;
  /** Where the client sent to, on a wildcard listener that knows. */
  readonly local: Address | undefined;
  /** The last one, where the flow went on with another. */
  readonly backend: Backend;
  readonly reason: CloseReason;
  /** Datagrams of the client and to the client, saturating at 2^32 − 1. */
  readonly requests: number;
  readonly responses: number;
  /** Their payloads. Undefined for a flow that was there before the log was. */
  readonly requestBytes: number | undefined;
  readonly responseBytes: number | undefined;
  readonly duration: Duration;
  /** Of the configuration that it was admitted under. Undefined as above. */
  readonly generation: number | undefined;
  /** Ends that were to be told since the last one that was. */
  readonly suppressed: number;
}

/**
 * By slot: bytes of the client, bytes to the client, generation at admission. Not a number where the flow began unseen: sums
 * with it stay that.
 */
export type FlowLedger = Float64Array;

const STRIDE = 3;
const REQUEST_BYTES = 0;
const RESPONSE_BYTES = 1;
const GENERATION = 2;

/** For slots 0 to `capacity` − 1, whose flows, if there are any, began unseen. */
export function newLedger(capacity: number): FlowLedger {
  return new Float64Array(capacity * STRIDE).fill(Number.NaN);
}

/** The same with room for more. */
export function grownLedger(ledger: FlowLedger, capacity: number): FlowLedger {
  const grown = newLedger(capacity);
  grown.set(ledger);
  return grown;
}

/** 2^32 over the golden ratio, made odd: whole multiples of it fall evenly over the words (Knuth, TAOCP 6.4). */
const GOLDEN = 0x9e3779b1;

/**
 * Whether the flow with this number, from 1, is one in `oneIn`. Of any run of numbers about as many are as there should be, and
 * they follow no period that traffic could share.
 */
export function isSampled(serial: number, oneIn: number): boolean {
  return Math.imul(serial, GOLDEN) >>> 0 < 2 ** 32 / oneIn;
}

export class FlowLog {
  private readonly report: (report: Report) => void;
  private settings: AccessLogSettings | undefined;
  /** Lines of the second that ends there. */
  private lines = 0;
  private until: Instant = instant(0);
  private suppressed = 0;

  constructor(report: (report: Report) => void) {
    this.report = report;
  }

  /** 0 while it is off. */
  get oneIn(): number {
    return this.settings?.oneIn ?? 0;
  }

  configure(settings: AccessLogSettings | undefined): void {
    this.settings = settings;
    if (settings === undefined) this.flush();
  }

  /** A flow machine of a listener said this, and it is not performed yet. */
  heard(listener: Listener, output: Output, generation: number, now: Instant): void {
    const { ledger } = listener;
    if (ledger === undefined) return undefined;
    switch (output.kind) {
      case 'OpenUpstream':
        // A flow that has a socket goes on with another.
        if (listener.sockets[output.flow] === 0) begin(ledger, output.flow, generation);
        return undefined;
      case 'SendToBackend':
      case 'TrainToBackend':
        return count(ledger, output.flow, REQUEST_BYTES, output.payload.length);
      case 'SendToClient':
      case 'TrainToClient':
        return count(ledger, output.flow, RESPONSE_BYTES, output.payload.length);
      case 'CloseFlow':
        return this.ended(listener, ledger, output, now);
      default:
        return undefined;
    }
  }

  /** No end will be told for a while: how many were left out, if any. */
  flush(): void {
    const { suppressed } = this;
    if (suppressed === 0) return;
    this.suppressed = 0;
    this.report({ kind: 'FlowEndsSuppressed', suppressed });
  }

  private ended(
    { id, config }: Listener,
    ledger: FlowLedger,
    { flow, was, reason }: Extract<Output, { kind: 'CloseFlow' }>,
    now: Instant,
  ): void {
    if (was === undefined) return;
    if (!this.admits(now)) {
      this.suppressed += 1;
      return;
    }
    const { suppressed } = this;
    this.suppressed = 0;
    this.report({
      kind: 'FlowEnded',
      flow: flowName(id, was.serial),
      listener: config.address,
      cluster: was.config.cluster,
      client: was.client,
      local: was.local,
      backend: was.backend,
      reason,
      requests: was.requestsSeen,
      responses: was.responsesSeen,
      requestBytes: known(ledger, flow, REQUEST_BYTES),
      responseBytes: known(ledger, flow, RESPONSE_BYTES),
      duration: until(was.createdAt, now),
      generation: known(ledger, flow, GENERATION),
      suppressed,
    });
  }

  /** A second begins with its first line. */
  private admits(now: Instant): boolean {
    if (now >= this.until) {
      this.until = after(now, seconds(1));
      this.lines = 0;
    }
    this.lines += 1;
    return this.lines <= (this.settings?.linesPerSecond ?? 0);
  }
}

function begin(ledger: FlowLedger, flow: FlowId, generation: number): void {
  const at = flow * STRIDE;
  ledger[at + REQUEST_BYTES] = 0;
  ledger[at + RESPONSE_BYTES] = 0;
  ledger[at + GENERATION] = generation;
}

function count(ledger: FlowLedger, flow: FlowId, direction: number, bytes: number): void {
  const at = flow * STRIDE + direction;
  ledger[at] = (ledger[at] ?? 0) + bytes;
}

function known(ledger: FlowLedger, flow: FlowId, word: number): number | undefined {
  const value = ledger[flow * STRIDE + word];
  return value === undefined || Number.isNaN(value) ? undefined : value;
}
