/**
 * Notes what both machines hear, for a trace (law 8). Pumps drive its two taps as they would drive the machines. It costs no
 * allocation for what comes with each datagram: records go into segments of a fixed size, and a full one begins anew at the
 * end of a turn, with a snapshot, because inputs without the state they met replay nothing.
 */
import type { ControlInput, ControlMachine, ControlOutput } from './control-contract.ts';
import type { GeneratedDirective, Report } from './directives.ts';
import type { DataMachine, PlaneInput, PlaneOutput, Wake } from './plane-contract.ts';
import { instant, type Instant } from './time.ts';
import type { SegmentSource } from './trace.ts';
import { ByteWriter } from './trace-bytes.ts';
import { DIGEST_START, mixControlOutput, mixPlaneOutput, mixWake } from './trace-digest.ts';
import type { SegmentStart } from './trace-header.ts';
import { ASKED, putControlStep, putDataStep, UNFINISHED, type Values } from './trace-record.ts';

/** Commands and the like in one segment, which keeps them as they are: more of them begin another. */
const VALUES_MAX = 256;
/** What one machine said and the other has not heard. More, and messages are recorded in full until the next segment. */
const UNHEARD_MAX = 1_024;
/** Turns until a snapshot that could not be had is tried again. */
const SNAPSHOT_PAUSE_TURNS = 1_024;
/** A segment wants to end when this part of it is left, so that a long turn still fits. */
const RESERVE = 8;

export interface RecorderOptions {
  /** Size of each of the two segments, bytes. */
  readonly segmentBytes: number;
  /** Both machines as they are; undefined: not now, and recording stops until it can be had. */
  readonly snapshot: () => Uint8Array | undefined;
}

/** What was recorded, and stays as it is until it is released. */
export interface Recording {
  /** Older first. */
  readonly segments: readonly SegmentSource[];
  release(): void;
}

export class Recorder {
  private readonly options: RecorderOptions;
  private readonly unheard = {
    directives: new Unheard<GeneratedDirective>(),
    reports: new Unheard<Report>(),
  };
  private readonly plane = new Lane();
  private readonly control = new Lane();
  private segment: Segment;
  private older: Segment | undefined;
  /** The buffer of a segment that is no longer wanted. */
  private spare: Uint8Array | undefined;
  private now: Instant = instant(0);
  /** Turns until the next try, after a snapshot that could not be had. */
  private pause = 0;
  private lost = 0;

  constructor(options: RecorderOptions) {
    this.options = options;
    this.segment = this.open(undefined);
  }

  /** The data plane, for its pump. It has heard nothing yet. */
  tapData(machine: DataMachine): DataMachine {
    return new DataTap(this, machine);
  }

  /** The control plane, for its pump. It has heard nothing yet. */
  tapControl(machine: ControlMachine): ControlMachine {
    return new ControlTap(this, machine);
  }

  /** Inputs that no segment has, because it was full and no snapshot could be had. */
  get missed(): number {
    return this.lost;
  }

  /** The older segment and the present one, as they are now. */
  take(): Recording {
    const { older, segment } = this;
    const present = { ...segment.source(), records: segment.records().slice() };
    if (older === undefined) return { segments: [present], release: () => undefined };
    older.holders += 1;
    return {
      segments: [older.source(), present],
      release: () => {
        older.holders -= 1;
      },
    };
  }

  dataInput(input: PlaneInput | typeof TIMEOUT, now: Instant): void {
    const isNext = input.kind === 'Directed' && this.unheard.directives.take(input.message);
    this.plane.isBusy = true;
    if (this.segment.isFull) return this.miss();
    const { out } = this.segment;
    this.plane.begins(out);
    putDataStep(out, isNext ? NEXT_DIRECTIVE : input, now - this.now, this.segment);
    return this.wrote(this.plane, now);
  }

  controlInput(input: ControlInput | typeof TIMEOUT, now: Instant): void {
    const isNext = input.kind === 'Reported' && this.unheard.reports.take(input.report);
    this.control.isBusy = true;
    if (this.segment.isFull) return this.miss();
    const { out } = this.segment;
    this.control.begins(out);
    putControlStep(out, isNext ? NEXT_REPORT : input, now - this.now, this.segment);
    return this.wrote(this.control, now);
  }

  dataOutput(output: PlaneOutput | undefined): void {
    if (output === undefined) return this.plane.drained(this.segment.out);
    this.plane.digest = mixPlaneOutput(this.plane.digest, output);
    if (output.kind === 'Report') this.unheard.reports.push(output.report);
    return undefined;
  }

  controlOutput(output: ControlOutput | undefined): void {
    if (output === undefined) return this.control.drained(this.segment.out);
    this.control.digest = mixControlOutput(this.control.digest, output);
    if (output.kind === 'Direct') this.unheard.directives.push(output.message);
    return undefined;
  }

  /** The data plane's turn is over: a segment may end here. */
  dataWake(at: Instant | undefined): void {
    this.plane.asked(this.segment.out, at);
    if (this.segment.wantsEnd) this.turn();
  }

  controlWake(at: Instant | undefined): void {
    this.control.asked(this.segment.out, at);
  }

  private miss(): void {
    this.lost += 1;
  }

  private wrote(lane: Lane, now: Instant): void {
    this.now = now;
    if (!this.segment.overran()) return;
    lane.forget();
    this.miss();
  }

  /** Begins another segment, unless a machine is in the middle of something. */
  private turn(): void {
    if (this.plane.isBusy || this.control.isBusy) return;
    if (this.pause > 0) {
      this.pause -= 1;
      return;
    }
    const snapshot = this.options.snapshot();
    if (snapshot === undefined) {
      this.pause = SNAPSHOT_PAUSE_TURNS;
      return;
    }
    const { older } = this;
    this.spare = older === undefined || older.holders > 0 ? undefined : older.out.bytes;
    this.older = this.segment;
    this.segment = this.open(snapshot);
  }

  private open(snapshot: Uint8Array | undefined): Segment {
    const bytes = this.spare ?? new Uint8Array(this.options.segmentBytes);
    this.spare = undefined;
    this.plane.start();
    this.control.start();
    const directives = this.unheard.directives.start();
    const reports = this.unheard.reports.start();
    return new Segment(bytes, { at: this.now, snapshot, directives, reports });
  }
}

const TIMEOUT = { kind: 'Timeout' } as const;
const NEXT_DIRECTIVE = { kind: 'NextDirective' } as const;
const NEXT_REPORT = { kind: 'NextReport' } as const;

/** A stretch of records in a buffer of fixed size. */
class Segment implements Values {
  readonly out: ByteWriter;
  /** Those who read it, and must not see it written over. */
  holders = 0;
  isFull = false;
  private readonly start: SegmentStart;
  private readonly values: unknown[] = [];
  private readonly limit: number;
  /** Up to where it is whole. */
  private end = 0;

  constructor(bytes: Uint8Array, start: SegmentStart) {
    this.out = new ByteWriter(bytes);
    this.start = start;
    this.limit = bytes.length - Math.floor(bytes.length / RESERVE);
  }

  keep(value: unknown): number {
    return this.values.push(value) - 1;
  }

  get wantsEnd(): boolean {
    return this.out.at > this.limit || this.values.length > VALUES_MAX || this.isFull;
  }

  /** Whether the last record did not fit: it is not there then, nor is any that comes after it. */
  overran(): boolean {
    if (this.out.at <= this.out.bytes.length) {
      this.end = this.out.at;
      return false;
    }
    this.out.at = this.end;
    this.isFull = true;
    return true;
  }

  records(): Uint8Array {
    return this.out.bytes.subarray(0, this.end);
  }

  source(): SegmentSource {
    return { start: this.start, values: [...this.values], records: this.records() };
  }
}

/** The outputs of one machine, and the record they belong to. */
class Lane {
  digest = DIGEST_START;
  /** Where the record of the last input begins; negative: there is none. */
  private record = -1;
  /** Not all outputs of its last input were taken, whether that was recorded or not. */
  isBusy = false;
  private isOpen = false;
  private isAsked = true;

  start(): void {
    this.digest = DIGEST_START;
    this.forget();
  }

  forget(): void {
    this.record = -1;
    this.isOpen = false;
    this.isAsked = true;
  }

  begins(out: ByteWriter): void {
    this.record = out.at;
    this.isOpen = true;
    this.isAsked = false;
  }

  /** All outputs of the last input were taken. */
  drained({ bytes }: ByteWriter): void {
    this.isBusy = false;
    if (!this.isOpen) return;
    this.isOpen = false;
    bytes[this.record] = (bytes[this.record] ?? 0) & ~UNFINISHED;
    this.stamp(bytes);
  }

  /** The first question after an input counts: more of them change nothing. */
  asked({ bytes }: ByteWriter, at: Instant | undefined): void {
    if (this.isOpen || this.isAsked) return;
    this.isAsked = true;
    this.digest = mixWake(this.digest, at);
    bytes[this.record] = (bytes[this.record] ?? 0) | ASKED;
    this.stamp(bytes);
  }

  private stamp(bytes: Uint8Array): void {
    const { digest, record } = this;
    bytes[record + 1] = digest;
    bytes[record + 2] = digest >>> 8;
    bytes[record + 3] = digest >>> 16;
    bytes[record + 4] = digest >>> 24;
  }
}

/** Messages on their way from one machine to the other, in order. */
class Unheard<T> {
  private messages: T[] = [];
  private isLost = false;

  push(message: T): void {
    if (this.isLost) return;
    this.messages.push(message);
    if (this.messages.length <= UNHEARD_MAX) return;
    this.isLost = true;
    this.messages = [];
  }

  /** Whether `message` is the next that is due; it no longer is then. */
  take(message: T): boolean {
    if (this.messages[0] !== message || this.messages.length === 0) return false;
    this.messages.shift();
    return true;
  }

  /** What is on its way when a segment begins. */
  start(): readonly T[] {
    this.isLost = false;
    return [...this.messages];
  }
}

class DataTap implements DataMachine {
  private readonly recorder: Recorder;
  private readonly machine: DataMachine;

  constructor(recorder: Recorder, machine: DataMachine) {
    this.recorder = recorder;
    this.machine = machine;
  }

  handleInput(input: PlaneInput, now: Instant): void {
    this.recorder.dataInput(input, now);
    this.machine.handleInput(input, now);
  }

  handleTimeout(now: Instant): void {
    this.recorder.dataInput(TIMEOUT, now);
    this.machine.handleTimeout(now);
  }

  pollOutput(): PlaneOutput | undefined {
    const output = this.machine.pollOutput();
    this.recorder.dataOutput(output);
    return output;
  }

  pollTimeout(): Wake | undefined {
    const wake = this.machine.pollTimeout();
    this.recorder.dataWake(wake?.at);
    return wake;
  }
}

class ControlTap implements ControlMachine {
  private readonly recorder: Recorder;
  private readonly machine: ControlMachine;

  constructor(recorder: Recorder, machine: ControlMachine) {
    this.recorder = recorder;
    this.machine = machine;
  }

  handleInput(input: ControlInput, now: Instant): void {
    this.recorder.controlInput(input, now);
    this.machine.handleInput(input, now);
  }

  handleTimeout(now: Instant): void {
    this.recorder.controlInput(TIMEOUT, now);
    this.machine.handleTimeout(now);
  }

  pollOutput(): ControlOutput | undefined {
    const output = this.machine.pollOutput();
    this.recorder.controlOutput(output);
    return output;
  }

  pollTimeout(): { readonly at: Instant } | undefined {
    const wake = this.machine.pollTimeout();
    this.recorder.controlWake(wake?.at);
    return wake;
  }
}
