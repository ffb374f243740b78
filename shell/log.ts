/**
 * Logs in JSON lines. Nothing here is called per datagram: what repeats with traffic goes through a limiter, which says how
 * often it kept quiet.
 */
import { pino, type Logger } from 'pino';
import { appendTarget, canReopen } from './append-target.ts';
import type { ShellSettings } from './config/parse.ts';
import { printable } from './printable.ts';

export type Log = Logger;

type LogSettings = Pick<ShellSettings, 'logLevel' | 'logTarget'>;

/** Kept of what could not be written; the rest is lost. */
const UNWRITTEN_BYTES_MAX = 65_536;

/** A log, and how to have its file opened anew after it was moved away. */
export interface OpenLog {
  readonly log: Log;
  /** Changes nothing on standard output. A file that cannot be opened leaves the old one in use, and that is logged. */
  readonly reopen: () => void;
}

/** Writes to standard output, or appends to the file at `target`. Throws when it cannot be opened. */
export function openLog({ logLevel, logTarget }: LogSettings): OpenLog {
  const destination = destinationTo(logTarget === undefined ? 1 : appendTarget(logTarget));
  const log = logTo(destination, logLevel);
  const reopen = (): void => {
    if (logTarget === undefined) return;
    try {
      if (canReopen(logTarget)) destination.reopen();
    } catch (error) {
      log.error({ file: logTarget, error: String(error) }, 'the log file could not be opened anew');
    }
  };
  return { log, reopen };
}

/** Writes to `descriptor`, standard output unless given. */
export function createLog(level: ShellSettings['logLevel'], descriptor = 1): Log {
  return logTo(destinationTo(descriptor), level);
}

type Destination = ReturnType<typeof pino.destination>;

function logTo(destination: Destination, level: ShellSettings['logLevel']): Log {
  const streamWrite = (line: string): string => `${printable(line.trimEnd())}\n`;
  return pino({ level, base: { pid: process.pid }, hooks: { streamWrite } }, destination);
}

/**
 * Without buffering, so that the last line before an exit is not lost. A line that cannot be written, because the disk is
 * full, waits for the next one: a proxy does not stop for its log.
 */
function destinationTo(dest: string | number): Destination {
  const destination = pino.destination({ dest, sync: true, maxLength: UNWRITTEN_BYTES_MAX });
  destination.on('error', () => undefined);
  return destination;
}

/** At most one line per reason in this time. */
const QUIET_MILLISECONDS = 10_000;

/** Reasons that are told apart. */
const REASONS_MAX = 1_024;

interface Told {
  at: number;
  suppressed: number;
}

/**
 * Lets the first of its kind through, then one every ten seconds with the number suppressed in between. With more reasons than
 * there is room for, those that were silent for ten seconds make way; if there are none, the others share one line.
 */
export class LogLimiter {
  private readonly clock: () => number;
  private readonly reasonsMax: number;
  /** In the order of their last lines. */
  private readonly byReason = new Map<string, Told>();
  private readonly others: Told = { at: -Infinity, suppressed: 0 };

  /** `clock` is in milliseconds. */
  constructor(clock: () => number = () => performance.now(), reasonsMax: number = REASONS_MAX) {
    this.clock = clock;
    this.reasonsMax = reasonsMax;
  }

  /** The number suppressed since the last line, or undefined when this one is to be suppressed too. */
  admit(reason: string): number | undefined {
    const now = this.clock();
    const told = this.byReason.get(reason) ?? this.newReason(now);
    if (now - told.at < QUIET_MILLISECONDS) {
      told.suppressed += 1;
      return undefined;
    }
    const { suppressed } = told;
    told.at = now;
    told.suppressed = 0;
    if (told !== this.others) {
      this.byReason.delete(reason);
      this.byReason.set(reason, told);
    }
    return suppressed;
  }

  /** What a reason that makes way had left to tell, the others tell. */
  private newReason(now: number): Told {
    if (this.byReason.size >= this.reasonsMax) {
      const [oldest] = this.byReason;
      if (oldest === undefined || now - oldest[1].at < QUIET_MILLISECONDS) return this.others;
      this.others.suppressed += oldest[1].suppressed;
      this.byReason.delete(oldest[0]);
    }
    return { at: -Infinity, suppressed: 0 };
  }
}
