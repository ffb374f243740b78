/**
 * Turns what a driver heard into inputs, and outputs into port calls. Production and simulator run this very file.
 *
 * A turn: for each arrival one input, drained at once; then one flush, whose failures are inputs too, and a second if any of
 * them is sent again; then what the turn closed is closed, and a listener may open in its own place; then one `wakeAt`. Time
 * is read once a turn. Payloads are borrowed until a turn is over.
 */
import type { Address } from './address.ts';
import { assertNever } from './assert.ts';
import type { ListenerId, SocketId } from './brand.ts';
import type { GeneratedDirective, Report } from './directives.ts';
import type { DataMachine, PlaneInput, PlaneOutput, PlaneTrain } from './plane-contract.ts';
import type { Arrivals, Errno, Ports, SendFailed } from './ports.ts';
import type { Instant } from './time.ts';
import { eachOutput, isTrainOutput, type TrainOutput } from './train.ts';

type Open = Extract<PlaneOutput, { kind: 'OpenUpstream' }>;
type OpenListener = Extract<PlaneOutput, { kind: 'OpenListener' }>;
type SendToBackend = Extract<PlaneOutput, { kind: 'SendToBackend' }>;

/** An upstream socket that did not open, and the datagrams of its flow that wait whether another try follows. */
interface FailedOpen {
  readonly open: Omit<Open, 'kind'>;
  readonly errno: Errno;
  readonly unsent: SendToBackend[];
}

export class Pump implements Arrivals {
  private readonly plane: DataMachine;
  private readonly ports: Ports;
  private readonly onReport: (report: Report) => void;
  private readonly onFailure: (failure: SendFailed) => void;
  private turn: Instant | undefined;
  /** Answers of ports that were called inside a drain: the inputs that follow it. */
  private readonly answers: PlaneInput[] = [];
  private readonly failedOpens: FailedOpen[] = [];
  /** The one that is being answered. */
  private answered: FailedOpen | undefined;
  /** What the end of the turn closes, and opens in the place of that. */
  private readonly closing: PlaneOutput[] = [];
  private readonly reports: Report[] = [];
  private armed: Instant | undefined;
  /** Something went to a backend since the last flush. */
  private unflushed = false;

  /** `onReport` is called when a turn is over, so whoever hears may direct at once. */
  constructor(plane: DataMachine, ports: Ports, onReport: (report: Report) => void) {
    this.plane = plane;
    this.ports = ports;
    this.onReport = onReport;
    this.onFailure = (failure) => this.feed({ kind: 'SendFailed', failure });
  }

  /**
   * Control enters between turns, through the same pump; the caller ends the turn. A listener's socket is closed when the
   * turn is over, and only then can another have its address, or its number: so one that is added begins a new turn.
   */
  direct(message: GeneratedDirective): void {
    const isFollowing = this.closing.some(({ kind }) => kind === 'CloseListener');
    if (isFollowing && message.directive.kind === 'AddListener') this.endTurn();
    this.feed({ kind: 'Directed', message });
  }

  clientDatagram(
    listener: ListenerId,
    src: Address,
    local: Address | undefined,
    payload: Uint8Array,
  ): void {
    this.feed({ kind: 'ClientArrived', listener, src, local, payload });
  }

  backendDatagram(socket: SocketId, payload: Uint8Array): void {
    this.feed({ kind: 'BackendArrived', socket, payload });
  }

  clientTrain(
    listener: ListenerId,
    src: Address,
    local: Address | undefined,
    payload: Uint8Array,
    unit: number,
  ): boolean {
    return this.feedTrain({ kind: 'ClientTrain', listener, src, local, payload, unit });
  }

  backendTrain(socket: SocketId, payload: Uint8Array, unit: number): boolean {
    return this.feedTrain({ kind: 'BackendTrain', socket, payload, unit });
  }

  refused(socket: SocketId): void {
    this.feed({ kind: 'Refused', socket });
  }

  upstreamWritable(socket: SocketId): void {
    this.feed({ kind: 'UpstreamWritable', socket });
  }

  listenerWritable(listener: ListenerId): void {
    this.feed({ kind: 'ListenerWritable', listener });
  }

  lateSendFailure(listener: ListenerId): void {
    this.feed({ kind: 'LateSendFailure', listener });
  }

  timer(): void {
    // The timer that fired is gone: whatever is armed next is armed anew, even for the same instant.
    this.armed = undefined;
    this.plane.handleTimeout(this.now());
    this.drain();
  }

  endTurn(): void {
    this.flush();
    if (this.unflushed) this.flush();
    for (const output of this.closing) this.close(output);
    this.closing.length = 0;
    if (this.answers.length > 0) this.drain();
    const at = this.plane.pollTimeout()?.at;
    if (at !== this.armed) {
      this.armed = at;
      this.ports.wakeAt(at);
    }
    this.turn = undefined;
    if (this.reports.length > 0) this.reports.splice(0).forEach(this.onReport);
  }

  /** What a first flush saw refused, the plane sends again. */
  private flush(): void {
    this.unflushed = false;
    this.ports.flush(this.onFailure);
    this.feed({ kind: 'Flushed' });
  }

  private now(): Instant {
    this.turn ??= this.ports.now();
    return this.turn;
  }

  private feed(input: PlaneInput): void {
    this.plane.handleInput(input, this.now());
    this.drain();
  }

  private feedTrain(train: PlaneTrain): boolean {
    const isTaken = this.plane.handleTrain(train, this.now());
    if (isTaken) this.drain();
    return isTaken;
  }

  /** Performs every output; then the answers they got are inputs of their own, until none is left. */
  private drain(): void {
    this.performAll();
    while (this.answers.length + this.failedOpens.length > 0) {
      const answers = this.answers.splice(0);
      for (const answer of answers) this.answer(answer);
      for (const failed of this.failedOpens.splice(0)) {
        const { open, errno, unsent } = failed;
        const { socket, backend, source } = open;
        this.answered = failed;
        this.answer({ kind: 'OpenFailed', socket, backend, source, errno, unsent: unsent.length });
        this.answered = undefined;
      }
    }
  }

  private answer(input: PlaneInput): void {
    this.plane.handleInput(input, this.now());
    this.performAll();
  }

  private performAll(): void {
    const { plane } = this;
    for (let output = plane.pollOutput(); output !== undefined; output = plane.pollOutput()) {
      this.perform(output);
    }
  }

  private perform(output: PlaneOutput): void {
    if (isTrainOutput(output)) return this.sendTrain(output);
    switch (output.kind) {
      case 'SendToBackend':
        return this.sendToBackend(output);
      case 'SendToClient':
        return this.ports.sendToClient(output.listener, output.dst, output.from, output.payload);
      case 'OpenUpstream':
        return this.openUpstream(output);
      case 'RefuseUpstream':
        return this.openFailed(output, output.errno);
      case 'CloseUpstream':
      case 'CloseListener':
        this.closing.push(output);
        return undefined;
      case 'OpenListener':
        return this.openNowOrLater(output);
      case 'WatchUpstream':
        return this.ports.watchUpstream(output.socket);
      case 'WatchListener':
        return this.ports.watchListener(output.listener);
      case 'Report':
        this.reports.push(output.report);
        return undefined;
      default:
        return assertNever(output);
    }
  }

  private sendToBackend(output: SendToBackend): void {
    const { socket, header, payload } = output;
    const failed = this.failedOpens.length === 0 ? undefined : this.failedOpenOf(socket);
    if (failed !== undefined) {
      failed.unsent.push(output);
      return;
    }
    this.unflushed = true;
    this.ports.sendToBackend(socket, header, payload);
  }

  /** Only a flow that lives has one, so its socket is open. */
  private sendTrain(train: TrainOutput): void {
    const { ports } = this;
    const { payload, unit } = train;
    if (train.kind === 'TrainToBackend') {
      this.unflushed = true;
      if (ports.trainToBackend !== undefined)
        return ports.trainToBackend(train.socket, payload, unit);
    } else if (ports.trainToClient !== undefined) {
      return ports.trainToClient(train.listener, train.dst, train.from, payload, unit);
    }
    return eachOutput(train, (output) => this.perform(output));
  }

  private failedOpenOf(socket: SocketId): FailedOpen | undefined {
    return this.failedOpens.find(({ open }) => open.socket === socket);
  }

  private openUpstream(open: Open): void {
    const { socket, backend, source } = open;
    const errno = this.ports.openUpstream(socket, backend, source);
    if (errno !== undefined) return this.openFailed(open, errno);
    for (const send of this.unsentOf(socket)) this.sendToBackend(send);
  }

  private openFailed(open: FailedOpen['open'], errno: Errno): void {
    this.failedOpens.push({ open, errno, unsent: this.unsentOf(open.socket) });
  }

  /** What waits for a socket whose first open failed. */
  private unsentOf(socket: SocketId): SendToBackend[] {
    return this.answered?.open.socket === socket ? this.answered.unsent : [];
  }

  /** In place of one that closes with this turn, it needs that one's address. */
  private openNowOrLater(output: OpenListener): void {
    const { closing } = this;
    if (closing.some((one) => 'listener' in one && one.listener === output.listener))
      closing.push(output);
    else this.openListener(output);
  }

  private openListener({ listener, address, socket }: OpenListener): void {
    const errno = this.ports.openListener(listener, address, socket);
    this.answers.push({ kind: 'ListenerAnswer', listener, errno });
  }

  private close(output: PlaneOutput): void {
    if (output.kind === 'CloseUpstream') this.ports.closeUpstream(output.socket);
    else if (output.kind === 'CloseListener') this.ports.closeListener(output.listener);
    else if (output.kind === 'OpenListener') this.openListener(output);
  }
}
