/**
 * A trace in which nobody is named: the run is replayed beside one whose addresses and names are others, and that one is
 * recorded. Hash placement sees other addresses and chooses other backends, so the digests are the other run's own; sockets,
 * listeners and probes of the one are followed in the other by what opened them.
 */
import { formatAddress, type Address } from './address.ts';
import type { Flip } from './address-disguise.ts';
import { requestId, type ListenerId, type SocketId } from './brand.ts';
import type { Command } from './commands.ts';
import type { Config } from './config.ts';
import type { ControlInput, ControlOutput } from './control-contract.ts';
import { ControlPlane } from './control-plane.ts';
import { DataPlane } from './data-plane.ts';
import type { GeneratedDirective, Report } from './directives.ts';
import type { ProbeId } from './health/probe-contract.ts';
import type { TableSeed } from './keyed-hash.ts';
import type { PlaneInput, PlaneOutput, PlaneTrain } from './plane-contract.ts';
import type { SendFailed } from './ports.ts';
import type { Status } from './status.ts';
import type { Instant } from './time.ts';
import {
  encodeTrace,
  type SegmentSource,
  type Trace,
  type TraceEntry,
  type TraceSegment,
} from './trace.ts';
import { ByteReader } from './trace-bytes.ts';
import { Disguise } from './trace-disguise.ts';
import type { TraceHeader } from './trace-header.ts';
import type { ControlStep, DataStep } from './trace-record.ts';
import { Recorder } from './trace-recorder.ts';
import { machinesOf, replayTrace, type Outcome, type Replayed } from './trace-replay.ts';
import { readCommand, readDirective, readReport } from './trace-shapes.ts';
import { eachInput, isTrain } from './train.ts';

export interface AnonymiseOptions {
  /** See address-disguise.ts: under a secret that nobody keeps. */
  readonly flip: Flip;
  /** In place of the secret one of the run. */
  readonly tableSeed: TableSeed;
}

export interface Anonymised {
  /** What came of the replay: with a difference, the rest of the trace is not there. */
  readonly replayed: Replayed;
  readonly blocks: Iterable<Uint8Array>;
  /** Inputs that bring outputs of the same kinds and lengths as they did under the true addresses. */
  readonly alike: number;
  /** Inputs of sockets, listeners or probes that the other run does not have. */
  readonly leftOut: number;
}

/** Throws where `replayTrace` does. */
export function anonymiseTrace(trace: Trace, options: AnonymiseOptions): Anonymised {
  const disguise = new Disguise(options.flip);
  const header = headerOf(trace.header, disguise, options);
  const twins: Twin[] = [];
  const follow = (entry: TraceEntry, outcome: Outcome): void => {
    const segment = trace.segments[twins.length];
    if (segment !== undefined && entry.number === segment.first) {
      twins.push(new Twin(trace, segment, header, disguise));
    }
    twins.at(-1)?.follow(entry, outcome);
  };
  const replayed = replayTrace(trace, { onEntry: follow });
  if (replayed.failure !== undefined) follow(replayed.failure.entry, replayed.failure);
  return {
    replayed,
    blocks: encodeTrace(
      header,
      twins.map((twin) => twin.recorded()),
    ),
    alike: twins.reduce((sum, { alike }) => sum + alike, 0),
    leftOut: twins.reduce((sum, { leftOut }) => sum + leftOut, 0),
  };
}

function headerOf(
  header: TraceHeader,
  disguise: Disguise,
  { tableSeed }: AnonymiseOptions,
): TraceHeader {
  const { hosts } = header.plane;
  const plane = { ...header.plane, tableSeed };
  return {
    ...header,
    configuration: '',
    plane: hosts ? { ...plane, hosts: hosts.map((host) => disguise.address(host)) } : plane,
  };
}

type ListenerNews = 'ListenerAnswer' | 'ListenerWritable' | 'LateSendFailure';
type SocketNews = 'BackendArrived' | 'BackendTrain' | 'Refused' | 'UpstreamWritable';
type Open = Extract<PlaneOutput, { kind: 'OpenUpstream' | 'RefuseUpstream' }>;

/** Room for records that are longer than their originals. */
const MORE_BYTES = 1 << 20;

/** The run of a segment under other addresses. */
class Twin {
  alike = 0;
  leftOut = 0;
  private readonly disguise: Disguise;
  private readonly recorder: Recorder;
  private readonly data;
  private readonly control;
  private readonly directives: GeneratedDirective[] = [];
  private readonly reports: Report[] = [];
  private readonly sockets = new Map<SocketId, SocketId>();
  private readonly listeners = new Map<ListenerId, ListenerId>();
  private readonly probes = new Map<ProbeId, ProbeId>();
  /** Of the twin, by address and by target: what the original's are paired with. */
  private readonly listenersByAddress = new Map<string, ListenerId>();
  private readonly probesByTarget = new Map<string, ProbeId>();
  private readonly ways = new Map<SocketId, Open>();
  /** What the original's machines have yet to hear of each other. */
  private owed = { directives: 0, reports: 0 };
  private outputs: (PlaneOutput | ControlOutput)[] = [];

  constructor(trace: Trace, segment: TraceSegment, header: TraceHeader, disguise: Disguise) {
    this.disguise = disguise;
    const segmentBytes = 2 * segment.records.length + MORE_BYTES;
    this.recorder = new Recorder({ segmentBytes, snapshot: () => undefined });
    this.data = this.recorder.tapData(new DataPlane(header.plane));
    this.control = this.recorder.tapControl(new ControlPlane(header.control));
    if (segment.start.snapshot !== undefined) this.begin(trace, segment);
    const { directives, reports } = segment.start;
    this.owed = { directives: directives.length, reports: reports.length };
  }

  recorded(): SegmentSource {
    const [segment] = this.recorder.take().segments;
    if (segment === undefined) throw new Error('a recorder has a segment');
    return segment;
  }

  /** Does what the original did, as far as there is such a thing here. */
  follow(entry: TraceEntry, outcome: Outcome): void {
    this.outputs = [];
    const { step, at } = entry;
    if (step.input.kind === 'NextDirective') this.owed.directives -= 1;
    else if (step.input.kind === 'NextReport') this.owed.reports -= 1;
    // What only the twin says is heard before whatever comes next.
    else this.deliver(at);
    for (const { kind } of outcome.outputs) {
      if (kind === 'Direct') this.owed.directives += 1;
      else if (kind === 'Report') this.owed.reports += 1;
    }
    const isDone =
      step.machine === 'data'
        ? this.followData(step.input, at)
        : this.followControl(step.input, at);
    if (!isDone) this.leftOut += 1;
    this.pair(outcome.outputs);
    if (isDone && shapeOf(this.outputs) === shapeOf(outcome.outputs)) this.alike += 1;
    if (!entry.asked) return;
    if (step.machine === 'data') this.data.pollTimeout();
    else this.control.pollTimeout();
  }

  /** A snapshot is of the true addresses: the twin starts with its configuration and without flows. */
  private begin(trace: Trace, segment: TraceSegment): void {
    const { control } = machinesOf(trace, segment, {});
    const { at } = segment.start;
    control.handleInput(
      { kind: 'Command', request: requestId(1), command: { kind: 'Status' } },
      at,
    );
    const said = control.pollOutput();
    if (said?.kind !== 'Reply' || !said.reply.ok || said.reply.answer?.kind !== 'Status') return;
    const { status } = said.reply.answer;
    this.hear({ kind: 'Command', request: requestId(1), command: reloadOf(status) }, at);
    this.deliver(at);
    for (const { config, listener } of status.listeners) {
      const twin = this.listenersByAddress.get(
        formatAddress(this.disguise.address(config.address)),
      );
      if (listener === undefined || twin === undefined) continue;
      this.listeners.set(listener, twin);
      this.feed({ kind: 'ListenerAnswer', listener: twin, errno: undefined }, at);
    }
    this.data.pollTimeout();
    this.deliver(at);
  }

  private followData(input: DataStep, at: Instant): boolean {
    if (input.kind === 'NextDirective') {
      const message = this.directives.shift();
      if (message !== undefined) this.feed({ kind: 'Directed', message }, at);
      return message !== undefined;
    }
    const translated = input.kind === 'Timeout' ? input : this.translate(input);
    if (translated === undefined) return false;
    this.feed(translated, at);
    return true;
  }

  private followControl(input: ControlStep, at: Instant): boolean {
    if (input.kind === 'Timeout') {
      this.control.handleTimeout(at);
      this.drainControl();
    } else if (input.kind === 'NextReport') {
      const report = this.reports.shift();
      if (report !== undefined) this.hear({ kind: 'Reported', report }, at, true);
      return report !== undefined;
    } else if (input.kind === 'ProbeAnswered') {
      const probe = this.probes.get(input.probe);
      if (probe === undefined) return false;
      this.hear({ ...input, probe }, at, true);
    } else this.hear(input, at);
    return true;
  }

  private deliver(at: Instant): void {
    const { directives, reports, owed } = this;
    while (directives.length > owed.directives || reports.length > owed.reports) {
      const message = directives.length > owed.directives ? directives.shift() : undefined;
      if (message !== undefined) this.feed({ kind: 'Directed', message }, at);
      const report = reports.length > owed.reports ? reports.shift() : undefined;
      if (report !== undefined) this.hear({ kind: 'Reported', report }, at, true);
    }
  }

  private feed(input: PlaneInput | PlaneTrain | { readonly kind: 'Timeout' }, at: Instant): void {
    if (isTrain(input)) {
      if (!this.data.handleTrain(input, at)) return eachInput(input, (one) => this.feed(one, at));
    } else if (input.kind === 'Timeout') this.data.handleTimeout(at);
    else this.data.handleInput(input, at);
    for (let out = this.data.pollOutput(); out !== undefined; out = this.data.pollOutput()) {
      this.outputs.push(out);
      if (out.kind === 'Report') this.reports.push(out.report);
      else if (isOpen(out)) this.ways.set(out.socket, out);
      else if (out.kind === 'OpenListener')
        this.listenersByAddress.set(formatAddress(out.address), out.listener);
    }
  }

  private hear(input: ControlInput, at: Instant, isOwn = false): void {
    this.control.handleInput(isOwn ? input : this.translateControl(input), at);
    this.drainControl();
  }

  private drainControl(): void {
    const { control } = this;
    for (let out = control.pollOutput(); out !== undefined; out = control.pollOutput()) {
      this.outputs.push(out);
      if (out.kind === 'Direct') this.directives.push(out.message);
      else if (out.kind === 'StartProbe')
        this.probesByTarget.set(`${out.cluster} ${formatAddress(out.target)}`, out.probe);
    }
  }

  /** Numbers of the original that came with these outputs belong to those of the twin. */
  private pair(outputs: Outcome['outputs']): void {
    const sockets = this.outputs.flatMap(socketIn);
    for (const [index, socket] of outputs.flatMap(socketIn).entries()) {
      const twin = sockets[index];
      if (twin !== undefined) this.sockets.set(socket, twin);
    }
    for (const output of outputs) {
      if (output.kind === 'OpenListener') {
        const name = formatAddress(this.disguise.address(output.address));
        const twin = this.listenersByAddress.get(name);
        if (twin !== undefined) this.listeners.set(output.listener, twin);
      } else if (output.kind === 'StartProbe') {
        const cluster = String(this.disguise.value(output.cluster));
        const target = formatAddress(this.disguise.address(output.target));
        const twin = this.probesByTarget.get(`${cluster} ${target}`);
        if (twin !== undefined) this.probes.set(output.probe, twin);
      }
    }
  }

  /** Undefined: what the input is about is not there. */
  private translate(input: PlaneInput | PlaneTrain): PlaneInput | PlaneTrain | undefined {
    switch (input.kind) {
      case 'Flushed':
        return input;
      case 'Directed':
        return { ...input, message: readDirective(this.disguise.value(input.message), NOWHERE) };
      case 'SendFailed': {
        const failure = this.translateFailure(input.failure);
        return failure && { kind: 'SendFailed', failure };
      }
      case 'ClientTrain':
      case 'ClientArrived': {
        const listener = this.listeners.get(input.listener);
        if (listener === undefined) return undefined;
        const [src, local] = [this.disguise.address(input.src), this.disguise.maybe(input.local)];
        return { ...input, listener, src, local };
      }
      case 'OpenFailed': {
        const way = this.wayOf(input.socket);
        if (way === undefined) return undefined;
        const { socket, backend, source } = way;
        return { ...input, socket, backend, source };
      }
      default:
        return this.translateNews(input);
    }
  }

  private translateNews(
    input: Extract<PlaneInput | PlaneTrain, { kind: ListenerNews | SocketNews }>,
  ): PlaneInput | PlaneTrain | undefined {
    switch (input.kind) {
      case 'ListenerAnswer':
      case 'ListenerWritable':
      case 'LateSendFailure': {
        const listener = this.listeners.get(input.listener);
        return listener === undefined ? undefined : { ...input, listener };
      }
      default: {
        const socket = this.sockets.get(input.socket);
        return socket === undefined ? undefined : { ...input, socket };
      }
    }
  }

  private wayOf(socket: SocketId): Open | undefined {
    const twin = this.sockets.get(socket);
    return twin === undefined ? undefined : this.ways.get(twin);
  }

  private translateFailure(failure: SendFailed): SendFailed | undefined {
    if (failure.direction === 'to-backend') {
      const socket = this.sockets.get(failure.socket);
      if (socket === undefined) return undefined;
      if (failure.cause === 'error') return { ...failure, socket };
      return { ...failure, socket, header: this.disguise.header(failure.header) };
    }
    const listener = this.listeners.get(failure.listener);
    if (listener === undefined) return undefined;
    if (failure.cause === 'error') return { ...failure, listener };
    const dst: Address = this.disguise.address(failure.dst);
    return { ...failure, listener, dst, from: this.disguise.maybe(failure.from) };
  }

  private translateControl(input: ControlInput): ControlInput {
    const { disguise } = this;
    if (input.kind === 'Command') {
      const { request, command } = input;
      return { kind: 'Command', ...readCommand(disguise.value({ request, command }), NOWHERE) };
    }
    if (input.kind === 'ProbeAnswered') return input;
    return { kind: 'Reported', report: readReport(disguise.value(input.report), NOWHERE) };
  }
}

/** Where damage would be, if what was read once could be damaged. */
const NOWHERE = new ByteReader(new Uint8Array(0));

function reloadOf({ grace, listeners, clusters }: Status): Command {
  const config: Config = {
    grace,
    listeners: listeners.filter(({ active }) => active).map((one) => one.config),
    clusters: clusters.map(({ settings, backends }) => ({
      ...settings,
      backends: backends.map(({ backend }) => backend),
    })),
  };
  return { kind: 'Reload', config };
}

function socketIn(output: PlaneOutput | ControlOutput): readonly SocketId[] {
  const isSend = output.kind === 'SendToBackend' || output.kind === 'TrainToBackend';
  return isSend || isOpen(output) ? [output.socket] : [];
}

function isOpen(output: PlaneOutput | ControlOutput): output is Open {
  return output.kind === 'OpenUpstream' || output.kind === 'RefuseUpstream';
}

/** Kinds and lengths. */
function shapeOf(outputs: readonly (PlaneOutput | ControlOutput)[]): string {
  return outputs
    .map((one) => ('payload' in one ? `${one.kind} ${one.payload?.length ?? 0}` : one.kind))
    .join();
}
