/**
 * The trace of a run as a file: what was configured, and all that either machine heard, in order. It replays
 * the run: whatever the outside answered is an input, and the core adds nothing of its own. A file is a row of blocks, each
 * with its length and checksum, so that damage is told from a difference.
 */
import { SnapshotDraft } from './snapshot-machines.ts';
import { instant, type Instant } from './time.ts';
import { ByteReader, ByteWriter, TraceDamage } from './trace-bytes.ts';
import { checksum } from './trace-checksum.ts';
import { takeRecord, type KnownValues, type TraceRecord } from './trace-record.ts';
import type { SegmentStart, TraceHeader } from './trace-header.ts';
import { readCommand, readDirective, readHeader, readReport, readStart } from './trace-shapes.ts';
import { encodeValue, takeValue } from './trace-value.ts';

/** What a file begins with: a name, and the version of the format. */
const MAGIC = Uint8Array.of(0x53, 0x4f, 0x5a, 0x55, 0x54, 0x52, 0x43, 1);
const VERSION_AT = MAGIC.length - 1;

const HEADER = 1;
const START = 2;
/** A piece of the snapshot that the segment begins with. */
const SNAPSHOT = 3;
const VALUE = 4;
const RECORDS = 5;
const END = 6;

/** Tag, length, checksum. */
const BLOCK_HEAD_BYTES = 9;
/** A larger thing goes into several blocks, so that whoever writes a file can do it in slices. */
const BLOCK_BYTES_MAX = 65_536;

/** A stretch of inputs without a gap. */
export interface SegmentSource {
  readonly start: Omit<SegmentStart, 'snapshot'> & {
    readonly snapshot: Uint8Array | SnapshotDraft | undefined;
  };
  readonly values: readonly unknown[];
  readonly records: Uint8Array;
}

export interface TraceSegment extends SegmentSource {
  readonly start: SegmentStart;
  /** Inputs, the last perhaps unfinished. */
  readonly count: number;
  /** Number of the first input, counted over the whole trace from 1. */
  readonly first: number;
}

export interface Trace {
  readonly header: TraceHeader;
  /** Older first. */
  readonly segments: readonly TraceSegment[];
  /** The file ends before its end, as one does that was written while the process died: these are the whole inputs. */
  readonly truncated: boolean;
}

export interface TraceEntry extends TraceRecord {
  /** Counted over the whole trace from 1. */
  readonly number: number;
  readonly at: Instant;
}

export type Decoded =
  | { readonly ok: true; readonly trace: Trace }
  | { readonly ok: false; readonly offset: number; readonly problem: string; readonly fix: string };

/** The file, block by block: each at most 64 KiB and a few bytes, but for values, which are as long as what they say. */
export function* encodeTrace(
  header: TraceHeader,
  segments: Iterable<SegmentSource>,
): Generator<Uint8Array> {
  yield MAGIC;
  yield block(HEADER, encodeValue(header));
  for (const { start, values, records } of segments) {
    const { at, directives, reports, snapshot } = start;
    yield block(START, encodeValue({ at, directives, reports, snapshot: snapshot !== undefined }));
    if (snapshot instanceof SnapshotDraft) {
      for (const slice of snapshot.slices()) yield block(SNAPSHOT, slice);
    } else if (snapshot !== undefined) yield* blocks(SNAPSHOT, snapshot);
    for (const value of values) yield block(VALUE, encodeValue(value));
    yield* blocks(RECORDS, records);
  }
  yield block(END, new Uint8Array(0));
}

/** Reads a whole file; never throws, and allocates by no length that it has not checked. */
export function decodeTrace(bytes: Uint8Array): Decoded {
  try {
    return { ok: true, trace: readTrace(bytes) };
  } catch (error) {
    if (!(error instanceof TraceDamage)) throw error;
    const { offset, message } = error;
    return { ok: false, offset, problem: message, fix: fixFor(bytes) };
  }
}

/** The inputs of a segment, in order. */
export function* entriesOf(segment: TraceSegment): Generator<TraceEntry> {
  let number = segment.first;
  for (const entry of recordsOf(segment, new ByteReader(segment.records))) {
    yield { ...entry, number };
    number += 1;
  }
}

function* recordsOf(
  { start, values }: SegmentSource,
  from: ByteReader,
): Generator<Omit<TraceEntry, 'number'>> {
  const known = new SegmentValues(values, from);
  let at: number = start.at;
  while (from.left > 0) {
    const record = takeRecord(from, known);
    at += record.delta;
    if (at < 0 || !Number.isSafeInteger(at)) throw from.damage('a time that is none');
    yield { ...record, at: instant(at) };
  }
}

function* blocks(tag: number, bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += BLOCK_BYTES_MAX) {
    yield block(tag, bytes.subarray(at, at + BLOCK_BYTES_MAX));
  }
}

function block(tag: number, content: Uint8Array): Uint8Array {
  const out = new ByteWriter(new Uint8Array(BLOCK_HEAD_BYTES + content.length));
  out.byte(tag);
  out.word(content.length);
  out.word(checksum(content, tag));
  out.raw(content);
  return out.bytes;
}

interface Block {
  readonly tag: number;
  readonly content: ByteReader;
}

interface Draft {
  readonly start: SegmentStart;
  readonly hasSnapshot: boolean;
  readonly snapshot: Uint8Array[];
  readonly values: unknown[];
  readonly records: ByteReader[];
}

function readTrace(bytes: Uint8Array): Trace {
  const from = new ByteReader(bytes);
  if (!MAGIC.subarray(0, VERSION_AT).every((byte, at) => bytes[at] === byte)) {
    throw from.damage('not a trace of sozu-udp');
  }
  from.at = VERSION_AT;
  const version = bytes[VERSION_AT];
  if (version !== MAGIC[VERSION_AT]) throw from.damage(`format ${version ?? 'missing'}`);
  from.at = MAGIC.length;
  const first = takeBlock(from);
  if (first?.tag !== HEADER) throw from.damage('the header is missing');
  const header = readHeader(valueOf(first), first.content);
  const drafts: Draft[] = [];
  let next = takeBlock(from);
  while (next !== undefined && next.tag !== END) {
    readBlock(next, drafts);
    next = takeBlock(from);
  }
  const ended = next !== undefined;
  if (ended && from.left > 0) throw from.damage('bytes behind the end');
  return { header, segments: segmentsOf(drafts, !ended), truncated: !ended };
}

function readBlock(next: Block, drafts: Draft[]): void {
  const { tag, content } = next;
  const draft = drafts.at(-1);
  if (tag === START) {
    const { snapshot, ...start } = readStart(valueOf(next), content);
    const empty = { snapshot: [], values: [], records: [] };
    drafts.push({ start: { ...start, snapshot: undefined }, hasSnapshot: snapshot, ...empty });
  } else if (draft === undefined) {
    throw content.damage('a segment has no start');
  } else if (tag === SNAPSHOT) {
    draft.snapshot.push(content.bytes);
  } else if (tag === VALUE) {
    draft.values.push(valueOf(next));
  } else if (tag === RECORDS) {
    draft.records.push(content);
  } else {
    throw content.damage(`a block of kind ${tag}`);
  }
}

/** Undefined at the end, and where what is left is not a whole block. */
function takeBlock(from: ByteReader): Block | undefined {
  if (from.left < BLOCK_HEAD_BYTES) return undefined;
  const [tag, length, expected] = [from.byte(), from.word() >>> 0, from.word()];
  if (length > from.left) {
    from.at -= BLOCK_HEAD_BYTES;
    return undefined;
  }
  const offset = from.at;
  const bytes = from.raw(length);
  const content = new ByteReader(bytes, offset);
  if (checksum(bytes, tag) !== expected) throw content.damage('a block with a wrong checksum');
  return { tag, content };
}

function valueOf({ content }: Block): unknown {
  const value = takeValue(content);
  if (content.left > 0) throw content.damage('bytes behind a value');
  return value;
}

function segmentsOf(drafts: readonly Draft[], truncated: boolean): TraceSegment[] {
  const segments: TraceSegment[] = [];
  let first = 1;
  for (const [index, draft] of drafts.entries()) {
    const mayBreakOff = truncated && index === drafts.length - 1;
    const [firstBlock] = draft.records;
    // Records stand last in a segment: without any, its snapshot may have broken off.
    if (mayBreakOff && firstBlock === undefined) break;
    const snapshot = draft.hasSnapshot ? join(draft.snapshot) : undefined;
    const whole = join(draft.records.map(({ bytes }) => bytes));
    const source = { start: { ...draft.start, snapshot }, values: draft.values, records: whole };
    const { count, end } = measure(source, firstBlock?.origin ?? 0, mayBreakOff);
    segments.push({ ...source, records: whole.subarray(0, end), count, first });
    first += count;
  }
  return segments;
}

/** Reads every record once, so that damage is told before anything is replayed. Where the whole ones end, and their count. */
function measure(
  source: SegmentSource,
  origin: number,
  mayBreakOff: boolean,
): { readonly count: number; readonly end: number } {
  const from = new ByteReader(source.records, origin);
  let count = 0;
  let end = 0;
  try {
    for (const _ of recordsOf(source, from)) {
      count += 1;
      end = from.at;
    }
  } catch (error) {
    const isBrokenOff = error instanceof TraceDamage && from.left === 0;
    if (!mayBreakOff || !isBrokenOff) throw error;
  }
  return { count, end };
}

function join(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new ByteWriter(new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0)));
  for (const part of parts) whole.raw(part);
  return whole.bytes;
}

/** What records of a segment point at. */
class SegmentValues implements KnownValues {
  private readonly values: readonly unknown[];
  private readonly from: ByteReader;

  constructor(values: readonly unknown[], from: ByteReader) {
    this.values = values;
    this.from = from;
  }

  directed(at: number): ReturnType<KnownValues['directed']> {
    return { kind: 'Directed', message: readDirective(this.at(at), this.from) };
  }

  reported(at: number): ReturnType<KnownValues['reported']> {
    return { kind: 'Reported', report: readReport(this.at(at), this.from) };
  }

  command(at: number): ReturnType<KnownValues['command']> {
    return { kind: 'Command', ...readCommand(this.at(at), this.from) };
  }

  private at(at: number): unknown {
    if (at >= this.values.length) throw this.from.damage(`value ${at} of ${this.values.length}`);
    return this.values[at];
  }
}

function fixFor(bytes: Uint8Array): string {
  const isTrace = MAGIC.subarray(0, VERSION_AT).every((byte, at) => bytes[at] === byte);
  if (!isTrace) return 'name a file that the flight recorder wrote';
  if (bytes[VERSION_AT] !== MAGIC[VERSION_AT]) return 'replay it with the version that wrote it';
  return 'copy the file again from where it was written; a damaged one cannot be replayed';
}
