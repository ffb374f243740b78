/**
 * Notes what both machines hear, for a trace (law 8). Pumps drive its two taps as they would drive the machines. It costs no
 * allocation for what comes with each datagram: records go into segments of a fixed size, and a full one begins anew at the
 * end of a turn, with a snapshot, because inputs without the state they met replay nothing.
 */
import type { ControlInput, ControlMachine, ControlOutput } from './control-contract.ts';
import type { GeneratedDirective, Report } from './directives.ts';
import type { DataMachine, PlaneInput, PlaneOutput, PlaneTrain, Wake } from './plane-contract.ts';
import type { SnapshotDraft } from './snapshot-machines.ts';
import { SnapshotMemory } from './snapshot-memory.ts';
import { instant, type Instant } from './time.ts';
import type { SegmentSource } from './trace.ts';
import { ByteWriter } from './trace-bytes.ts';
import { mixControlOutput, mixPlaneOutput } from './trace-digest.ts';
import { Lane, Unheard } from './trace-lane.ts';
import { putControlStep, putDataStep, type Values } from './trace-record.ts';

/** Commands and the like in one segment, which keeps them as they are: more of them begin another. */
const VALUES_MAX = 256;
/** Turns until a snapshot that could not be had is tried again. */
const SNAPSHOT_PAUSE_TURNS = 1_024;
/** A segment wants to end when this part of it is left, so that a long turn still fits. */
const RESERVE = 8;
/**
 * A segment is at least this part of the snapshot that it begins with: 100,000 flows are copied in the time of two hundred
 * questions, and then there is room for 100,000.
 */
const SNAPSHOT_PART = 4;
/** So many times in a segment, memory is prepared for the snapshot that follows it. */
const PREPARATIONS = 64;

export interface RecorderOptions {
  /** Size of each of the two segments, bytes; of one that begins with a long snapshot, a quarter of that. */
  readonly segmentBytes: number;
  /** Both machines as they are, perhaps in this memory; undefined: not now, and recording stops until it can be had. */
  readonly snapshot: (memory: SnapshotMemory) => Uint8Array | SnapshotDraft | undefined;
  /** How long the next snapshot will be, about, bytes. */
  readonly expectedBytes?: () => number;
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
  /** For a snapshot, where none can be used again. */
  private fresh = new SnapshotMemory();
  /** Where in the segment that is prepared next. */
  private preparation = 0;
  private now: Instant = instant(0);
  /** Turns until the next try, after a snapshot that could not be had. */
  private pause = 0;
  private lost = 0;
  private hearsData = false;

  constructor(options: RecorderOptions) {
    this.options = options;
    this.segment = this.open(undefined, undefined);
  }

  /** The data plane, for its pump. It has heard nothing yet. */
  tapData(machine: DataMachine): DataMachine {
    this.hearsData = true;
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
    const held = older === undefined ? [segment] : [older, segment];
    for (const one of held) one.holders += 1;
    const present = { ...segment.source(), records: segment.records().slice() };
    return {
      segments: older === undefined ? [present] : [older.source(), present],
      release: () => {
        for (const one of held) one.holders -= 1;
      },
    };
  }

  dataInput(input: PlaneInput | PlaneTrain | typeof TIMEOUT, now: Instant): void {
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
    else if (this.segment.out.at >= this.preparation) this.prepare();
  }

  /** Where no data plane is heard, a segment ends here. */
  controlWake(at: Instant | undefined): void {
    this.control.asked(this.segment.out, at);
    if (!this.hearsData && this.segment.wantsEnd) this.turn();
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
    const memory = this.memoryForNext();
    const snapshot = this.options.snapshot(memory);
    if (snapshot === undefined) {
      this.pause = SNAPSHOT_PAUSE_TURNS;
      return;
    }
    if (memory === this.fresh) this.fresh = new SnapshotMemory();
    this.spare = this.retired?.out.bytes;
    this.older = this.segment;
    this.segment = this.open(snapshot, memory);
  }

  /** The older segment, if nobody would miss it when another begins. */
  private get retired(): Segment | undefined {
    return this.older?.holders === 0 ? this.older : undefined;
  }

  /** The older snapshot's, unless another was prepared because that is too small. */
  private memoryForNext(): SnapshotMemory {
    const { fresh } = this;
    const used = this.retired?.memory;
    return used === undefined || used.length < fresh.length ? fresh : used;
  }

  /** Memory for the next snapshot, a little at a time, so that the system need not hand it out in the middle of that. */
  private prepare(): void {
    const { out, limit } = this.segment;
    this.preparation = out.at + limit / PREPARATIONS;
    const expected = this.options.expectedBytes?.() ?? 0;
    const used = this.retired?.memory;
    if (used === undefined || used.length < expected) this.fresh.prepare(expected);
  }

  private open(snapshot: SegmentSource['start']['snapshot'], memory: Segment['memory']): Segment {
    const size = Math.max(
      this.options.segmentBytes,
      Math.ceil((snapshot?.length ?? 0) / SNAPSHOT_PART),
    );
    const { spare } = this;
    const bytes = spare !== undefined && spare.length >= size ? spare : new Uint8Array(size);
    this.spare = undefined;
    this.preparation = 0;
    this.plane.start();
    this.control.start();
    const directives = this.unheard.directives.start();
    const reports = this.unheard.reports.start();
    return new Segment(bytes, { at: this.now, snapshot, directives, reports }, memory);
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
  /** Where its snapshot stands, if it has any. */
  readonly memory: SnapshotMemory | undefined;
  /** Beyond this it wants to end. */
  readonly limit: number;
  private readonly start: SegmentSource['start'];
  private readonly values: unknown[] = [];
  /** Up to where it is whole. */
  private end = 0;

  constructor(bytes: Uint8Array, start: SegmentSource['start'], memory: Segment['memory']) {
    this.out = new ByteWriter(bytes);
    this.start = start;
    this.memory = memory;
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

  /** One that is not taken is no input. One that fails is. */
  handleTrain(train: PlaneTrain, now: Instant): boolean {
    let isTaken = true;
    try {
      isTaken = this.machine.handleTrain(train, now);
    } finally {
      if (isTaken) this.recorder.dataInput(train, now);
    }
    return isTaken;
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
