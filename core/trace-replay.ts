/**
 * Runs a trace through the machines again and compares, after each input, what they put out with what was put out then, so
 * that the first input that they take otherwise is named.
 */
import { assert } from './assert.ts';
import type { ControlMachine, ControlOutput } from './control-contract.ts';
import { ControlPlane, type ControlOptions } from './control-plane.ts';
import { DataPlane } from './data-plane.ts';
import type { GeneratedDirective, Report } from './directives.ts';
import type { DataMachine, PlaneOptions, PlaneOutput, PlaneTrain } from './plane-contract.ts';
import { restoreProxy } from './proxy-snapshot.ts';
import { entriesOf, type Trace, type TraceEntry, type TraceSegment } from './trace.ts';
import { DIGEST_START, mixControlOutput, mixPlaneOutput, mixWake } from './trace-digest.ts';
import type { Instant } from './time.ts';
import type { ControlStep, DataStep } from './trace-record.ts';
import { eachInput, isTrain } from './train.ts';

/** Both machines of a proxy. */
export interface Machines {
  readonly data: DataMachine;
  readonly control: ControlMachine;
}

/** Builds of the machines to replay with; those of this program unless given. */
export interface ReplayOptions {
  readonly data?: (options: PlaneOptions) => DataMachine;
  readonly control?: (options: ControlOptions) => ControlMachine;
  /** Brings new machines to where a snapshot was taken, unless both are ours. Throws where it cannot. */
  readonly restore?: (machines: Machines, snapshot: Uint8Array) => void;
  /** Hears each input once it was compared. */
  readonly onEntry?: (entry: TraceEntry, outcome: Outcome) => void;
}

/** What an input brought. */
export interface Outcome {
  readonly outputs: readonly (PlaneOutput | ControlOutput)[];
  /** What the machine threw in place of an answer. */
  readonly thrown: unknown;
  readonly digest: number;
}

export interface Difference extends Outcome {
  readonly entry: TraceEntry;
  readonly kind:
    /** Other outputs than then. */
    | 'outputs'
    /** The machine failed where it had not. */
    | 'failed'
    /** The other machine had said something here, and now says nothing. */
    | 'nothing-to-hear';
}

export interface Replayed {
  /** Inputs that were replayed, the one that differs included. */
  readonly inputs: number;
  readonly difference: Difference | undefined;
  /** The last input failed as it had then. */
  readonly failure: Difference | undefined;
  /** Upstream sockets that were asked for: one for each flow, and one for each that lost its backend. */
  readonly socketsOpened: number;
}

/** Replays every segment from its own start. Throws a TraceDamage where a snapshot cannot be restored. */
export function replayTrace(trace: Trace, options: ReplayOptions = {}): Replayed {
  let inputs = 0;
  let socketsOpened = 0;
  for (const segment of trace.segments) {
    const replay = new SegmentReplay(trace, segment, options);
    const outcome = replay.run();
    inputs += replay.inputs;
    socketsOpened += replay.socketsOpened;
    if (outcome === undefined) continue;
    const isSame = outcome.kind === 'failed' && !outcome.entry.finished;
    const [difference, failure] = isSame ? [undefined, outcome] : [outcome, undefined];
    return { inputs, difference, failure, socketsOpened };
  }
  return { inputs, difference: undefined, failure: undefined, socketsOpened };
}

/** The machines of a segment at its start. */
export function machinesOf(
  { header }: Trace,
  { start }: TraceSegment,
  { data, control, restore }: ReplayOptions,
): Machines {
  const machines = {
    data: data?.(header.plane) ?? new DataPlane(header.plane),
    control: control?.(header.control) ?? new ControlPlane(header.control),
  };
  if (start.snapshot === undefined) return machines;
  if (restore === undefined) restoreOurs(machines, start.snapshot);
  else restore(machines, start.snapshot);
  return machines;
}

function restoreOurs({ data, control }: Machines, snapshot: Uint8Array): void {
  const isOurs = data instanceof DataPlane && control instanceof ControlPlane;
  assert(isOurs, 'who brings machines of another build restores them too');
  restoreProxy({ data, control }, snapshot);
}

class SegmentReplay {
  inputs = 0;
  socketsOpened = 0;
  private readonly segment: TraceSegment;
  private readonly options: ReplayOptions;
  private readonly machines: Machines;
  private readonly directives: GeneratedDirective[];
  private readonly reports: Report[];
  private dataDigest = DIGEST_START;
  private controlDigest = DIGEST_START;
  private outputs: (PlaneOutput | ControlOutput)[] = [];

  constructor(trace: Trace, segment: TraceSegment, options: ReplayOptions) {
    this.segment = segment;
    this.options = options;
    this.machines = machinesOf(trace, segment, options);
    this.directives = [...segment.start.directives];
    this.reports = [...segment.start.reports];
  }

  /** The first input that went otherwise, or that failed. */
  run(): Difference | undefined {
    for (const entry of entriesOf(this.segment)) {
      this.inputs += 1;
      this.outputs = [];
      const heard = this.take(entry);
      const outcome = { outputs: this.outputs, thrown: heard.thrown, digest: heard.digest };
      const kind = verdict(entry, heard);
      if (kind !== undefined) return { entry, kind, ...outcome };
      this.options.onEntry?.(entry, outcome);
    }
    return undefined;
  }

  private take(entry: TraceEntry): Heard {
    const { step } = entry;
    try {
      const isHeard =
        step.machine === 'data'
          ? this.takeData(entry, step.input)
          : this.takeControl(entry, step.input);
      return { isHeard, thrown: undefined, digest: this.digestOf(entry) };
    } catch (error) {
      return { isHeard: true, thrown: error, digest: this.digestOf(entry) };
    }
  }

  private digestOf({ step }: TraceEntry): number {
    return step.machine === 'data' ? this.dataDigest : this.controlDigest;
  }

  /** False when there is nothing to hear. */
  private takeData({ at, asked }: TraceEntry, input: DataStep): boolean {
    const { data } = this.machines;
    if (input.kind === 'NextDirective') {
      const message = this.directives.shift();
      if (message === undefined) return false;
      data.handleInput({ kind: 'Directed', message }, at);
    } else if (input.kind === 'Timeout') data.handleTimeout(at);
    else if (isTrain(input)) this.takeTrain(input, at);
    else data.handleInput(input, at);
    this.drainData();
    if (asked) this.dataDigest = mixWake(this.dataDigest, data.pollTimeout()?.at);
    return true;
  }

  /** A machine in another state may not take at once what was taken so then: it gets the datagrams. */
  private takeTrain(train: PlaneTrain, at: Instant): void {
    const { data } = this.machines;
    if (data.handleTrain(train, at)) return;
    eachInput(train, (input) => {
      data.handleInput(input, at);
      this.drainData();
    });
  }

  private drainData(): void {
    const { data } = this.machines;
    for (let output = data.pollOutput(); output !== undefined; output = data.pollOutput()) {
      this.outputs.push(output);
      this.dataDigest = mixPlaneOutput(this.dataDigest, output);
      if (output.kind === 'Report') this.reports.push(output.report);
      if (output.kind === 'OpenUpstream') this.socketsOpened += 1;
    }
  }

  private takeControl({ at, asked }: TraceEntry, input: ControlStep): boolean {
    const { control } = this.machines;
    if (input.kind === 'NextReport') {
      const report = this.reports.shift();
      if (report === undefined) return false;
      control.handleInput({ kind: 'Reported', report }, at);
    } else if (input.kind === 'Timeout') control.handleTimeout(at);
    else control.handleInput(input, at);
    for (let output = control.pollOutput(); output !== undefined; output = control.pollOutput()) {
      this.outputs.push(output);
      this.controlDigest = mixControlOutput(this.controlDigest, output);
      if (output.kind === 'Direct') this.directives.push(output.message);
    }
    if (asked) this.controlDigest = mixWake(this.controlDigest, control.pollTimeout()?.at);
    return true;
  }
}

interface Heard {
  readonly isHeard: boolean;
  readonly thrown: unknown;
  readonly digest: number;
}

/** An input that was not finished then is the last of its machine, and its digest says nothing. */
function verdict(entry: TraceEntry, heard: Heard): Difference['kind'] | undefined {
  if (!heard.isHeard) return 'nothing-to-hear';
  if (heard.thrown !== undefined) return 'failed';
  if (!entry.finished) return undefined;
  return heard.digest === entry.digest ? undefined : 'outputs';
}
