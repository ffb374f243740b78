/**
 * Turns what a driver heard into inputs, and outputs into port calls. Production and simulator run this very file.
 *
 * A turn: for each arrival one input, drained at once; then one flush, whose failures are inputs too; then what the turn
 * closed is closed; then one `wakeAt`. Time is read once a turn. Payloads are borrowed until the flush.
 */
import type { Address } from './address.ts';
import { assertNever } from './assert.ts';
import type { ListenerId, SocketId } from './brand.ts';
import type { DataPlane } from './data-plane.ts';
import type { GeneratedDirective, Report } from './directives.ts';
import type { PlaneInput, PlaneOutput } from './plane-contract.ts';
import type { Arrivals, Errno, Ports, SendFailed } from './ports.ts';
import type { Instant } from './time.ts';

/** An upstream socket that did not open, and how many datagrams of its flow the same drain held for it. */
interface FailedOpen {
  readonly socket: SocketId;
  readonly errno: Errno;
  unsent: number;
}

export class Pump implements Arrivals {
  private readonly plane: DataPlane;
  private readonly ports: Ports;
  private readonly onReport: (report: Report) => void;
  private readonly onFailure: (failure: SendFailed) => void;
  private turn: Instant | undefined;
  /** Answers of ports that were called inside a drain: the inputs that follow it. */
  private readonly answers: PlaneInput[] = [];
  private readonly failedOpens: FailedOpen[] = [];
  private readonly closing: PlaneOutput[] = [];
  private readonly reports: Report[] = [];
  private armed: Instant | undefined;

  /** `onReport` is called when a turn is over, so whoever hears may direct at once. */
  constructor(plane: DataPlane, ports: Ports, onReport: (report: Report) => void) {
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
    this.ports.flush(this.onFailure);
    this.feed({ kind: 'Flushed' });
    for (const output of this.closing) this.close(output);
    this.closing.length = 0;
    const at = this.plane.pollTimeout()?.at;
    if (at !== this.armed) {
      this.armed = at;
      this.ports.wakeAt(at);
    }
    this.turn = undefined;
    if (this.reports.length > 0) this.reports.splice(0).forEach(this.onReport);
  }

  private now(): Instant {
    this.turn ??= this.ports.now();
    return this.turn;
  }

  private feed(input: PlaneInput): void {
    this.plane.handleInput(input, this.now());
    this.drain();
  }

  /** Performs every output; then the answers they got are inputs of their own, until none is left. */
  private drain(): void {
    this.performAll();
    while (this.answers.length + this.failedOpens.length > 0) {
      const answers = this.answers.splice(0);
      for (const { socket, errno, unsent } of this.failedOpens.splice(0)) {
        answers.push({ kind: 'OpenFailed', socket, errno, unsent });
      }
      for (const answer of answers) {
        this.plane.handleInput(answer, this.now());
        this.performAll();
      }
    }
  }

  private performAll(): void {
    const { plane } = this;
    for (let output = plane.pollOutput(); output !== undefined; output = plane.pollOutput()) {
      this.perform(output);
    }
  }

  private perform(output: PlaneOutput): void {
    switch (output.kind) {
      case 'SendToBackend':
        return this.sendToBackend(output.socket, output.header, output.payload);
      case 'SendToClient':
        return this.ports.sendToClient(output.listener, output.dst, output.from, output.payload);
      case 'OpenUpstream':
        return this.openUpstream(output.socket, output.backend);
      case 'CloseUpstream':
      case 'CloseListener':
        this.closing.push(output);
        return undefined;
      case 'OpenListener':
        return this.openListener(output.listener, output.address, output.ipv6Only);
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

  private sendToBackend(
    socket: SocketId,
    header: Uint8Array | undefined,
    payload: Uint8Array,
  ): void {
    const failed = this.failedOpens.find((one) => one.socket === socket);
    if (failed === undefined) this.ports.sendToBackend(socket, header, payload);
    else failed.unsent += 1;
  }

  private openUpstream(socket: SocketId, backend: Address): void {
    const errno = this.ports.openUpstream(socket, backend);
    if (errno !== undefined) this.failedOpens.push({ socket, errno, unsent: 0 });
  }

  private openListener(listener: ListenerId, address: Address, ipv6Only: boolean): void {
    const errno = this.ports.openListener(listener, address, ipv6Only);
    this.answers.push({ kind: 'ListenerAnswer', listener, errno });
  }

  private close(output: PlaneOutput): void {
    if (output.kind === 'CloseUpstream') this.ports.closeUpstream(output.socket);
    else if (output.kind === 'CloseListener') this.ports.closeListener(output.listener);
  }
}
