/**
 * Logs in JSON lines. Nothing here is called per datagram: what repeats with traffic goes through a limiter, which says how
 * often it kept quiet.
 */
import { closeSync, openSync } from 'node:fs';
import { pino, type Logger } from 'pino';
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
  const destination = destinationTo(logTarget ?? 1);
  const log = logTo(destination, logLevel);
  const reopen = (): void => {
    if (logTarget === undefined) return;
    try {
      closeSync(openSync(logTarget, 'a'));
      destination.reopen();
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

/** Lets the first of its kind through, then one every ten seconds with the number suppressed in between. */
export class LogLimiter {
  private readonly clock: () => number;
  private readonly lastByReason = new Map<string, { at: number; suppressed: number }>();

  /** `clock` is in milliseconds. Reasons must come from a closed set: there is one entry for each. */
  constructor(clock: () => number = () => performance.now()) {
    this.clock = clock;
  }

  /** The number suppressed since the last line, or undefined when this one is to be suppressed too. */
  admit(reason: string): number | undefined {
    const now = this.clock();
    const last = this.lastByReason.get(reason);
    if (last !== undefined && now - last.at < QUIET_MILLISECONDS) {
      last.suppressed += 1;
      return undefined;
    }
    this.lastByReason.set(reason, { at: now, suppressed: 0 });
    return last?.suppressed ?? 0;
  }
}
