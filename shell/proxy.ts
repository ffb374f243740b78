/**
 * The production proxy: a control plane with its pump and a prober, wherever its data planes live, and the logs of what they
 * report.
 */
import { randomBytes } from 'node:crypto';
import {
  ControlPlane,
  ControlPump,
  formatAddress,
  formatIp,
  parseIp,
  PLACEMENT_SEED,
  type Address,
  type ClusterCounters,
  type Command,
  type Config,
  type ControlPorts,
  type Hash64,
  type Instant,
  type Reply,
  type ListenerId,
  type PlaneFigures,
  type PlaneOptions,
  type Report,
} from '../core/index.ts';
import type { AccessLog } from './access-log.ts';
import { advice } from './advice.ts';
import { interfaceAddresses } from './config/environment.ts';
import { OneTimer } from './drivers/timer.ts';
import { EventHub } from './event-hub.ts';
import { logEvent } from './event-log.ts';
import {
  recorderOf,
  type DumpReason,
  type FlightRecorder,
  type RecorderSettings,
} from './flight-recorder.ts';
import { LogLimiter, type Log } from './log.ts';
import type { ListenerSocketName } from './metrics/kernel-drops.ts';
import type { Measured } from './metrics/readings.ts';
import { hostOf, type Choice } from './planes/choose.ts';
import type { PlaneHost } from './planes/host.ts';
import { Prober } from './prober.ts';
import { readinessOf, type Readiness } from './readiness.ts';

/** What a stop did. */
export interface Stopped {
  /** Flows that were still live when everything was closed. */
  readonly flowsClosed: number;
}

type ListenerReport = Extract<
  Report,
  { kind: 'ListenerOpened' | 'ListenerFailed' | 'ListenerClosed' }
>;
type ListenerClosed = Extract<Report, { kind: 'ListenerClosed' }>;
export type ListenerFailed = Extract<Report, { kind: 'ListenerFailed' }>;
type UpstreamFailed = Extract<Report, { kind: 'UpstreamFailed' }>;

type ListenerRestarted = Extract<Report, { kind: 'ListenerRestarted' }>;

type CommandAnswered = (reply: Reply, failures: readonly ListenerFailed[]) => void;

/** Listeners of a data plane that are started afresh after a bug of ours; with more of them in a minute the process ends. */
const RESTARTS_PER_MINUTE = 3;

export interface ProxyOptions {
  /** Nothing is recorded without. */
  readonly recorder?: RecorderSettings | undefined;
  /** Where the data planes live: one in this thread unless given. */
  readonly choice?: Choice | undefined;
}

/** A running proxy. Opens its listeners at once; once it has `started`, `failures` says which did not open for good. */
export class Proxy {
  /** Settles when every listener has opened or failed. */
  readonly started: Promise<void>;
  /** Settles when everything is closed after `drain` or `stop`. */
  readonly stopped: Promise<Stopped>;
  readonly failures: readonly ListenerFailed[];
  /** What happens to it, from the end of its start on. */
  readonly events: EventHub = new EventHub();
  /** Undefined: nothing is recorded. */
  readonly recorder: FlightRecorder | undefined;
  /** Where ends of flows are written, while the configuration wants them told. */
  accessLog: Pick<AccessLog, 'hear'> = { hear: () => undefined };
  private readonly log: Log;
  private readonly limiter = new LogLimiter();
  private readonly planes: PlaneHost;
  private readonly control: ControlPlane;
  private readonly controlPump: ControlPump;
  private readonly open = new Set<ListenerId>();
  /** What did not open at the start, or in the reload that is under way. */
  private failing: ListenerFailed[] | undefined = [];
  private settle: (stopped: Stopped) => void = () => undefined;

  constructor(config: Config, log: Log, { recorder, choice = IN_THIS_THREAD }: ProxyOptions = {}) {
    this.log = log;
    this.planes = hostOf(choice, planeOptions, recorder);
    const options = { plane: this.planes.options, control: { randomSeed: randomSeed() } };
    this.control = new ControlPlane(options.control);
    const machines = { data: this.planes.plane, control: this.control };
    this.recorder =
      recorder &&
      recorderOf(recorder, machines, {
        ...options,
        stopped: ({ message }) => this.onRecordingStopped(message),
      });
    const taps = this.recorder?.recorder;
    this.planes.begin({
      tap: (plane) => taps?.tapData(plane) ?? plane,
      report: (report) => this.onReport(report),
      recordingStopped: (error) => this.onRecordingStopped(error),
      failing: (error, file) => {
        log.fatal({ file, error }, 'a bug; what led to it is in the trace');
      },
    });
    const control = taps?.tapControl(this.control) ?? this.control;
    this.controlPump = new ControlPump(control, this.controlPorts(), this.planes);
    this.stopped = new Promise((resolve) => {
      this.settle = resolve;
    });
    this.failures = this.failing ?? [];
    this.controlPump.configure(config);
    this.started = new Promise((resolve) => {
      this.planes.settle(() => {
        this.failing = undefined;
        resolve();
      });
    });
  }

  /**
   * The configuration from now on: all of it, or none. `answered` hears the reply, and which listeners did not open; the
   * others serve.
   */
  reload(config: Config, answered: CommandAnswered): void {
    this.commandThatOpens({ kind: 'Reload', config }, answered);
  }

  /** Opens the listener at `address`. `answered` hears the reply, and whether it did not open. */
  activate(address: Address, answered: CommandAnswered): void {
    this.commandThatOpens({ kind: 'ActivateListener', address }, answered);
  }

  /** Anything else that can be asked; a dry run and a question may be answered later. */
  command(command: Command, answered: (reply: Reply) => void): void {
    this.controlPump.command(command, answered);
  }

  /**
   * Writes what was heard last; the paths: a trace of each worker, then that of this thread. Rejects when nothing is recorded,
   * or a file cannot be written.
   */
  async dumpTrace(reason: DumpReason = 'request'): Promise<readonly string[]> {
    const { recorder, planes } = this;
    if (recorder === undefined) throw new Error('nothing is recorded: set recorder = true');
    const others = await planes.dump(reason, recorder.configuration());
    return [...others, await recorder.dump(reason)];
  }

  /** Soft stop: admits nothing new, and closes when the last flow ended or the grace time is over. */
  drain(): void {
    this.controlPump.drain();
  }

  /** Hard stop: closes everything now. */
  stop(): void {
    this.controlPump.stop();
  }

  /** What moves the datagrams, and how many threads. */
  get about(): PlaneHost['about'] {
    return this.planes.about;
  }

  /** Reads anew what the getters below show of the data planes: as they are when this is called, or a message later. */
  refresh(): Promise<PlaneFigures> {
    return this.planes.refresh();
  }

  get figures(): PlaneFigures {
    return this.planes.figures;
  }

  /** Of each worker by itself. */
  get workers(): readonly PlaneFigures[] {
    return this.planes.each;
  }

  get readiness(): Readiness {
    return readinessOf(this.measured);
  }

  /** What metrics are read from. */
  get measured(): Measured & { readonly figures: PlaneFigures } {
    const { clusterSums, condition } = this.control;
    const { figures, trains } = this.planes;
    return { figures, trains, clusterSums, condition };
  }

  /** Open listeners as the kernel knows them, where it tells. */
  get listenerSockets(): readonly ListenerSocketName[] {
    return this.planes.sockets;
  }

  /** What the control plane counts of a cluster. */
  clusterCountersOf(cluster: string): Readonly<ClusterCounters> | undefined {
    return this.control.countersOf(cluster);
  }

  /** The clock of deadlines in events and answers. */
  now(): Instant {
    return this.planes.now();
  }

  /** The port a listener is bound to: the kernel's choice where the configuration says 0. */
  portOf(listener: ListenerId): number | undefined {
    return this.planes.portOf(listener);
  }

  private commandThatOpens(command: Command, answered: CommandAnswered): void {
    const failures: ListenerFailed[] = [];
    this.failing = failures;
    this.controlPump.command(command, (reply) => {
      this.planes.settle(() => {
        this.failing = undefined;
        answered(reply, failures);
      });
    });
  }

  private controlPorts(): ControlPorts {
    const { planes } = this;
    const prober = new Prober((probe, answer) => this.controlPump.probeAnswered(probe, answer));
    const timer = new OneTimer(
      () => planes.now(),
      () => this.controlPump.timer(),
    );
    return {
      now: () => planes.now(),
      probe: (probe) => prober.start(probe),
      cancelProbe: (probe) => prober.cancel(probe),
      wakeAt: (at) => timer.wakeAt(at),
      // Whoever hears of it may count on it: what it made the control plane direct has been done.
      event: (event) => {
        planes.settle(() => {
          logEvent(this.log, this.limiter, event);
          this.events.publish(event);
        });
      },
    };
  }

  private onReport(report: Report): void {
    this.controlPump.report(report);
    switch (report.kind) {
      case 'ListenerOpened':
      case 'ListenerFailed':
      case 'ListenerClosed':
        return this.onListenerReport(report);
      case 'ListenerRestarted':
        return this.onListenerRestarted(report);
      case 'UpstreamFailed':
        return this.logUpstreamFailure(report);
      case 'FlowEnded':
      case 'FlowEndsSuppressed':
        return this.accessLog.hear(report);
      case 'Stopped':
        return this.onStopped(report.flowsClosed);
      default:
        // For the control plane alone.
        return undefined;
    }
  }

  /** Whoever waits reads the last figures. */
  private onStopped(flowsClosed: number): void {
    void this.planes.end().then(() => this.settle({ flowsClosed }));
  }

  private onListenerReport(report: ListenerReport): void {
    this.events.publish(report);
    if (report.kind === 'ListenerClosed') return this.logListenerClosed(report);
    if (report.kind === 'ListenerFailed') {
      if (this.failing === undefined || report.retry !== undefined) this.logListenerFailed(report);
      else this.failing.push(report);
      return;
    }
    this.open.add(report.listener);
    this.log.info({ listener: formatAddress(report.address) }, 'listening');
  }

  /** What led to it is in the memory of the recorder, and has to be written before more comes. */
  private onListenerRestarted({ address, flowsClosed, claim }: ListenerRestarted): void {
    const { log } = this;
    const about = { listener: formatAddress(address), flowsClosed, claim };
    log.error(about, 'a bug; the listener was started afresh, without its flows');
    if (this.recorder === undefined) return;
    this.dumpTrace('assertion').then(
      ([file, ...others]) => log.error({ file, others }, 'what led to the bug is in the trace'),
      (error: unknown) => log.error({ error: String(error) }, 'no trace of the bug was written'),
    );
  }

  private onRecordingStopped(error: string): void {
    this.log.warn({ error }, 'recording stops: there is no memory for a snapshot');
  }

  /** One that never opened was told as a failure. */
  private logListenerClosed({ listener, address, flowsClosed }: ListenerClosed): void {
    if (!this.open.delete(listener)) return;
    this.log.info({ listener: formatAddress(address), flowsClosed }, 'no longer listening');
  }

  /** One that is tried again, or was activated by a command. */
  private logListenerFailed({ address, errno, retry }: ListenerFailed): void {
    const listener = formatAddress(address);
    const suppressed = this.limiter.admit(`${errno} ${listener}`);
    if (suppressed === undefined) return;
    const hope = retry === undefined ? '' : '; will try again until it works';
    this.log.error({ listener, errno, suppressed }, `cannot listen${advice(errno)}${hope}`);
  }

  /** Sources that are not there are told each by its own name: who mends one wants to know of the other. */
  private logUpstreamFailure({ errno, source }: UpstreamFailed): void {
    const from = source === undefined ? undefined : formatIp(source);
    const isMissing = errno === 'EADDRNOTAVAIL' && from !== undefined;
    const suppressed = this.limiter.admit(isMissing ? `${errno} ${from}` : errno);
    if (suppressed === undefined) return;
    const what = isMissing
      ? `an upstream source is not there${advice(errno)}`
      : 'an upstream socket could not be opened; flow refused';
    this.log.warn({ errno, source: from, suppressed }, what);
  }
}

const IN_THIS_THREAD: Choice = {
  driver: 'dgram',
  workers: 1,
  steer: 'tuple',
  reason: 'nothing else was asked for',
};

/** With secrets that nobody else has. */
function planeOptions(): PlaneOptions {
  return {
    placementSeed: PLACEMENT_SEED,
    tableSeed: { first: randomWord(), second: randomWord() },
    randomSeed: randomSeed(),
    hosts: hostAddresses(),
    restartsPerMinute: RESTARTS_PER_MINUTE,
  };
}

function randomSeed(): Hash64 {
  return { high: randomWord(), low: randomWord() };
}

/** This machine's addresses as they are at the start. */
function hostAddresses(): Address[] {
  return (interfaceAddresses() ?? []).flatMap((address) => parseIp(address, 0) ?? []);
}

function randomWord(): number {
  return randomBytes(4).readUInt32LE();
}
