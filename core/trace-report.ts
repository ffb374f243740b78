/** What the replay of a trace file came to, for people and for programs: both command lines print this. */
import { assertNever } from './assert.ts';
import { decodeTrace, entriesOf, type Trace, type TraceEntry } from './trace.ts';
import {
  replayTrace,
  type Difference,
  type Outcome,
  type Replayed,
  type ReplayOptions,
} from './trace-replay.ts';
import { describeOutput, describeStep } from './trace-text.ts';

export interface ReportOptions extends ReplayOptions {
  /** Tells inputs with what they brought: so many, from this number on. */
  readonly list?: { readonly from: number; readonly count: number } | undefined;
}

/** `unreadable`: nothing was replayed, or not to the end. */
export type Verdict = 'same' | 'differs' | 'unreadable';

export interface ReplayReport {
  readonly verdict: Verdict;
  /** Lines for people. Nothing in them is safe for a terminal. */
  readonly lines: readonly string[];
  /** The same as plain data. */
  readonly data: Readonly<Record<string, unknown>>;
}

/** Outputs told of one input: a reload may bring thousands. */
const OUTPUTS_TOLD_MAX = 20;

/** Decodes a file and replays it. Never throws for what is in the file. */
export function reportReplay(bytes: Uint8Array, options: ReportOptions = {}): ReplayReport {
  const decoded = decodeTrace(bytes);
  if (!decoded.ok) {
    const { offset, problem, fix } = decoded;
    const lines = [`unreadable at byte ${offset}: ${problem}`, `  fix: ${fix}`];
    return { verdict: 'unreadable', lines, data: { offset, problem, fix } };
  }
  const { trace } = decoded;
  const listed: string[] = [];
  const onEntry = (entry: TraceEntry, outcome: Outcome): void => {
    if (isListed(entry, options)) listed.push(...linesOf(trace, entry, outcome));
  };
  try {
    const replayed = replayTrace(trace, { ...options, onEntry });
    return reportOf(trace, replayed, listed);
  } catch (error) {
    const fix = `replay it with the build that wrote it: ${trace.header.build}`;
    const problem = messageOf(error);
    const lines = [...headLines(trace), `cannot be replayed: ${problem}`, `  fix: ${fix}`];
    return { verdict: 'unreadable', lines, data: { ...headOf(trace), problem, fix } };
  }
}

/** What a replay came to; `listed` are lines on single inputs. */
export function reportOf(
  trace: Trace,
  replayed: Replayed,
  listed: readonly string[] = [],
): ReplayReport {
  const { difference, failure, inputs, socketsOpened } = replayed;
  const head = { ...headOf(trace), replayed: inputs, socketsOpened };
  const lines = [...headLines(trace), ...listed];
  if (difference !== undefined) {
    return {
      verdict: 'differs',
      lines: [...lines, ...differenceLines(trace, difference)],
      data: { ...head, difference: dataOf(trace, difference) },
    };
  }
  const sockets = `${grouped(socketsOpened)} upstream sockets`;
  lines.push(`${grouped(inputs)} inputs replayed, ${sockets}: each brought what was recorded`);
  if (failure !== undefined) {
    lines.push('the last one failed then, and fails here:');
    lines.push(...linesOf(trace, failure.entry, failure));
    return { verdict: 'same', lines, data: { ...head, failure: dataOf(trace, failure) } };
  }
  if (trace.header.reason !== 'request') {
    lines.push('the run ended in a failure then, and nothing fails here');
  }
  return { verdict: 'same', lines, data: head };
}

function headOf({ header, segments, truncated }: Trace): Readonly<Record<string, unknown>> {
  const { build, runtime, writtenAt, reason } = header;
  const inputs = segments.reduce((sum, { count }) => sum + count, 0);
  return { build, runtime, writtenAt, reason, truncated, inputs, segments: segments.length };
}

function firstTime({ segments }: Trace): number {
  for (const segment of segments) {
    for (const { at } of entriesOf(segment)) return at;
  }
  return 0;
}

function headLines(trace: Trace): string[] {
  const { build, runtime, writtenAt, reason } = trace.header;
  const lines = [`written ${writtenAt} by ${build} on Node ${runtime}: ${reason}`];
  if (trace.truncated) lines.push('the file breaks off: what is whole is replayed');
  return lines;
}

function differenceLines(trace: Trace, difference: Difference): string[] {
  const { entry } = difference;
  const of = trace.segments.reduce((sum, { count }) => sum + count, 0);
  return [
    `input ${grouped(entry.number)} of ${grouped(of)} ${whatDiffers(difference)}`,
    ...linesOf(trace, entry, difference),
    `  digest then ${hex(entry.digest)}, now ${hex(difference.digest)}`,
  ];
}

function whatDiffers({ kind }: Difference): string {
  switch (kind) {
    case 'outputs':
      return 'brings something else than then:';
    case 'failed':
      return 'fails here, and did not then:';
    case 'nothing-to-hear':
      return 'is a message between the planes that nobody sends here:';
    default:
      return assertNever(kind);
  }
}

function linesOf(trace: Trace, entry: TraceEntry, { outputs, thrown }: Outcome): string[] {
  const time = (sinceStart(trace, entry) / 1e6).toFixed(6);
  const told = outputs.slice(0, OUTPUTS_TOLD_MAX).map((output) => `    ${describeOutput(output)}`);
  const untold = outputs.length - told.length;
  return [
    `  ${entry.number} at ${time} s: ${describeStep(entry.step)}`,
    ...told,
    ...(untold > 0 ? [`    and ${untold} more`] : []),
    ...(thrown === undefined ? [] : [`    ${messageOf(thrown)}`]),
  ];
}

function dataOf(trace: Trace, { entry, outputs, thrown, digest, kind }: Difference): unknown {
  return {
    kind,
    input: entry.number,
    seconds: sinceStart(trace, entry) / 1e6,
    what: describeStep(entry.step),
    recorded: hex(entry.digest),
    replayed: hex(digest),
    outputs: outputs.map(describeOutput),
    ...(thrown === undefined ? {} : { thrown: messageOf(thrown) }),
  };
}

function isListed({ number }: TraceEntry, { list }: ReportOptions): boolean {
  return list !== undefined && number >= list.from && number < list.from + list.count;
}

/** Microseconds since the first input. */
function sinceStart(trace: Trace, { at }: TraceEntry): number {
  return at - firstTime(trace);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

function hex(digest: number): string {
  return (digest >>> 0).toString(16).padStart(8, '0');
}

function grouped(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ',');
}
