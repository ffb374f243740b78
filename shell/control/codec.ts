/**
 * Lines of JSON, both ways: how bytes become lines within a bound, lines become requests or problems, and replies become
 * lines. Nothing here throws, whatever comes in.
 */
import * as z from 'zod';
import { reportIssues } from '../config/issues.ts';
import { Report, type Problem } from '../config/problem.ts';
import { checkSettings } from '../config/settings.ts';
import { PROTOCOL_VERSION, REQUESTS, type ControlRequest } from './requests.ts';

/** A request names a file, and does not carry it: the longest has a cluster's lists of blocks. */
export const REQUEST_BYTES_MAX: number = 1 << 20;

const LINE_END = 10;

/** Cuts what arrives into lines, and keeps at most `bytesMax` of one that has not ended. */
export class LineSplitter {
  private readonly bytesMax: number;
  /** What arrives may be a byte of a large buffer, so it is copied. */
  private kept = new Uint8Array(0);
  private length = 0;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  /** Whether a line has begun that has not ended. */
  get isInside(): boolean {
    return this.length > 0;
  }

  /** The lines that ended with `chunk`, without their ends; undefined once one is too long, and then for ever. */
  push(chunk: Uint8Array): Uint8Array[] | undefined {
    const lines: Uint8Array[] = [];
    let from = 0;
    for (let end = chunk.indexOf(LINE_END); end >= 0; end = chunk.indexOf(LINE_END, from)) {
      if (!this.keep(chunk.subarray(from, end))) return undefined;
      lines.push(this.kept.slice(0, this.length));
      this.length = 0;
      from = end + 1;
    }
    return this.keep(chunk.subarray(from)) ? lines : undefined;
  }

  private keep(part: Uint8Array): boolean {
    const length = this.length + part.length;
    if (length > this.bytesMax) {
      this.length = Infinity;
      this.kept = new Uint8Array(0);
      return false;
    }
    if (length > this.kept.length) {
      const grown = new Uint8Array(Math.min(this.bytesMax, length * 2));
      grown.set(this.kept.subarray(0, this.length));
      this.kept = grown;
    }
    this.kept.set(part, this.length);
    this.length = length;
    return true;
  }
}

export type DecodedRequest =
  | {
      readonly ok: true;
      readonly id: number;
      readonly request: ControlRequest;
      /** As it was written, for the log. */
      readonly asked: string;
    }
  /** `id` is 0 where there is none to read; `broken`: it is no request at all, and neither may be what follows. */
  | {
      readonly ok: false;
      readonly id: number;
      readonly broken: boolean;
      readonly problems: readonly Problem[];
    };

const ENVELOPE = z.looseObject({
  v: z.literal(PROTOCOL_VERSION),
  id: z.int().min(0).max(0xffff_ffff),
  command: z.string(),
});

/** Reads one line as a request. Every problem with its path, as in a file. */
export function decodeRequest(line: Uint8Array): DecodedRequest {
  const raw = parseLine(line);
  const report = new Report(new Map());
  const envelope = ENVELOPE.safeParse(raw, { reportInput: true });
  if (!envelope.success) {
    reportIssues(report, [], envelope.error.issues);
    return { ok: false, id: 0, broken: true, problems: report.problems };
  }
  const { v: _, id, ...rest } = envelope.data;
  const schema = REQUESTS.get(rest.command);
  if (schema === undefined) {
    report.error(['command'], 'no such command', 'see doc/CONTROL.md for those that there are');
    return { ok: false, id, broken: false, problems: report.problems };
  }
  const result = schema.safeParse(rest, { reportInput: true });
  if (!result.success) reportIssues(report, [], result.error.issues);
  checkSettings(rest.command, rest['settings'], report);
  if (!result.success || report.failed) {
    return { ok: false, id, broken: false, problems: report.problems };
  }
  return { ok: true, id, request: result.data, asked: JSON.stringify(rest) };
}

/** Undefined, which no schema takes, for what is no JSON. */
function parseLine(line: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(line));
  } catch {
    return undefined;
  }
}

/** What a command came to, as JSON has it. */
export type WireReply =
  | {
      readonly ok: true;
      readonly changed: boolean;
      /** Of the configuration that holds now. */
      readonly generation: number;
      readonly answer?: unknown;
    }
  | {
      readonly ok: false;
      readonly error: {
        readonly kind: string;
        readonly message: string;
        readonly problems?: readonly Problem[] | undefined;
      };
    };

/** One line for a client: a reply, a part of a long answer, an event, or how many events were lost. */
export function encodeLine(body: object): string {
  return `${JSON.stringify({ v: PROTOCOL_VERSION, ...body })}\n`;
}
