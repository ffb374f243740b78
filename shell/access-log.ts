/**
 * The access log: a line of JSON for each flow that has ended, as far as the core tells (core/flow-log.ts decides which). It is
 * written behind the data path's back: a target that takes nothing, a full disk or a reader that stands still, costs lines,
 * which are counted, and never a datagram.
 */
import { pino } from 'pino';
import { formatAddress, type CloseReason, type EndedFlow, type Report } from '../core/index.ts';
import { appendTarget, canReopen } from './append-target.ts';
import { isStream } from './config/schema-access-log.ts';
import type { Log } from './log.ts';
import { printable } from './printable.ts';

/** Lines wait in memory for a slow target, up to this; more are lost and counted. */
const UNWRITTEN_BYTES_MAX = 1_048_576;

type FlowReport = Extract<Report, { kind: 'FlowEnded' | 'FlowEndsSuppressed' }>;
type Destination = ReturnType<typeof pino.destination>;

export class AccessLog {
  private readonly log: Log;
  private target: string | undefined;
  private destination: Destination | undefined;
  /** Lines that found no room, and what they would have said was left out. */
  private lost = 0;
  private suppressedInLost = 0;
  private hadRoom = true;
  /** The reader of a pipe has gone, and the destination is dead. */
  private isUnread = false;

  /** Off until it is configured. */
  constructor(log: Log) {
    this.log = log;
  }

  /** Writes to `target` from now on; undefined: nowhere. Throws when a file cannot be opened, and goes on as before. */
  configure(target: string | undefined): void {
    if (target === this.target) return;
    const destination = target === undefined ? undefined : destinationAt(target);
    this.destination?.end();
    this.destination = destination;
    this.target = target;
    this.isUnread = false;
    destination?.on('drop', () => {
      this.hadRoom = false;
    });
    // What could not be written is tried again with the next line.
    destination?.on('error', (error: NodeJS.ErrnoException) => {
      if (destination === this.destination) this.isUnread = error.code === 'EPIPE';
    });
  }

  /** What the core tells becomes a line. */
  hear(report: FlowReport): void {
    const isFlow = report.kind === 'FlowEnded';
    const hadRoom = this.line(isFlow ? viewOf(report) : {}, report.suppressed);
    if (isFlow && !hadRoom) this.lost += 1;
  }

  /** The file of the same name anew, after it was moved away. One that cannot be opened leaves the old one in use. */
  reopen(): void {
    const { destination, target } = this;
    if (destination === undefined || target === undefined || isStream(target)) return;
    try {
      if (canReopen(target)) destination.reopen();
    } catch (error) {
      this.log.error(
        { file: target, error: String(error) },
        'the access log could not be opened anew',
      );
    }
  }

  /** Nothing more is written. Settles when what waits was, or cannot be. */
  async close(): Promise<void> {
    const { destination } = this;
    if (destination === undefined || this.isUnread) return;
    const over = new Promise((resolve) => {
      destination.once('close', resolve);
      destination.once('error', resolve);
    });
    this.configure(undefined);
    await over;
    destination.destroy();
  }

  /** Whether there was room for it. If not, what it would have said of others is said by the next. */
  private line(fields: object, left: number): boolean {
    const { lost } = this;
    const time = new Date().toISOString();
    const suppressed = left + this.suppressedInLost;
    const line = { time, ...fields, suppressed, ...(lost > 0 && { lost }) };
    this.hadRoom = true;
    this.destination?.write(`${printable(JSON.stringify(line))}\n`);
    this.suppressedInLost = this.hadRoom ? 0 : suppressed;
    if (this.hadRoom) this.lost = 0;
    return this.hadRoom;
  }
}

/** The words that metrics have for it. */
const REASONS: Readonly<Record<CloseReason, string>> = {
  Idle: 'idle',
  ResponsesReached: 'responses',
  RequestsReached: 'requests',
  Drain: 'drain',
  Aborted: 'aborted',
  BackendLost: 'backend_lost',
  Killed: 'killed',
};

function viewOf(ended: EndedFlow): object {
  return {
    flow: ended.flow,
    client: formatAddress(ended.client),
    local: ended.local && formatAddress(ended.local),
    listener: formatAddress(ended.listener),
    cluster: ended.cluster,
    backend: formatAddress(ended.backend.address),
    backend_id: ended.backend.id,
    reason: REASONS[ended.reason],
    requests: ended.requests,
    responses: ended.responses,
    request_bytes: ended.requestBytes,
    response_bytes: ended.responseBytes,
    duration_ms: ended.duration / 1_000,
    generation: ended.generation,
  };
}

function destinationAt(target: string): Destination {
  const dest = target === 'stdout' ? 1 : target === 'stderr' ? 2 : appendTarget(target);
  return pino.destination({ dest, sync: false, maxLength: UNWRITTEN_BYTES_MAX });
}
