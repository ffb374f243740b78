/**
 * A data plane and its pump on ports that only take notes. Every turn ends with the checks that hold between turns:
 * invariants of each flow machine, conservation of datagrams, and one open socket for each live flow.
 */
import { expect } from 'vitest';
import { formatAddress, formatIp, parseAddress, type Address } from '../core/address.ts';
import { present } from '../core/assert.ts';
import { listenerId, listenerOf, serialOf, type ListenerId, type SocketId } from '../core/brand.ts';
import {
  CLUSTER_DEFAULTS,
  LIMITS,
  type ClusterSettings,
  type Config,
  type ListenerConfig,
} from '../core/config.ts';
import { NO_CLUSTER, type Backend } from '../core/contract.ts';
import { DataPlane } from '../core/data-plane.ts';
import { initialDirectives, type Directive, type Report } from '../core/directives.ts';
import { PLACEMENT_SEED } from '../core/hash.ts';
import { unaccountedDatagrams, type ListenerCounters } from '../core/metrics.ts';
import type { PlaneOptions } from '../core/plane-contract.ts';
import type {
  DriverCapabilities,
  Errno,
  ListenerSocket,
  Opened,
  Ports,
  SendBlocked,
  SendFailed,
} from '../core/ports.ts';
import { Pump } from '../core/pump.ts';
import { after, instant, seconds, type Instant } from '../core/time.ts';
import { checkInvariants } from '../core/verify.ts';

/** Ports that write down each call as a short line: `open u1 10.0.0.1:53`, `send u1 hello`, `flush`, `close u1`. */
export class RecordingPorts implements Ports {
  readonly capabilities: DriverCapabilities = { name: 'notes', batch: 64, localAddress: false };
  calls: string[] = [];
  clock: Instant = instant(0);
  clockReads = 0;
  /** How the next opens of upstream sockets end; then they work. */
  openResults: Opened[] = [];
  listenerResult: Opened;
  /**
   * What becomes of each send of a turn: undefined when it goes. Numbers count from 0, of all sends of the turn. A socket
   * that blocked or was refused once blocks until the flush is over; what is sent again begins with 0.
   */
  fate: (number: number, sends: number) => SendFailed['cause'] | undefined = () => undefined;
  /** What `error` says. */
  errno: Errno = 'EPERM';
  /** Called inside the flush, before it reports. */
  onFlush: () => void = () => undefined;
  wake: Instant | undefined;
  /** Every upstream socket that was ever opened. */
  readonly opened: SocketId[] = [];
  readonly open: Set<SocketId> = new Set();
  /** Those that were closed. */
  private readonly gone = new Set<SocketId>();
  readonly listening: Set<ListenerId> = new Set();
  /** An open of theirs failed: what is sent there all the same is lost (EBADF). */
  private readonly unopened = new Set<ListenerId>();
  /** Who waits to be told of room. */
  readonly watched: Set<SocketId | ListenerId> = new Set();
  /** What flushes did not fail, as `u1 hello` and `0 10.1.0.1:1000 hello`, in order. */
  readonly delivered: string[] = [];
  private sent: SendBlocked[] = [];

  now(): Instant {
    this.clockReads += 1;
    return this.clock;
  }

  openListener(
    listener: ListenerId,
    address: Address,
    { ipv6Only, receiveBuffer, sendBuffer }: ListenerSocket,
  ): Opened {
    const isPlain = receiveBuffer === LIMITS.socketBuffer && sendBuffer === LIMITS.socketBuffer;
    const how = `${ipv6Only ? ' v6only' : ''}${isPlain ? '' : ` ${receiveBuffer}/${sendBuffer}`}`;
    this.note(`listen ${listener} ${formatAddress(address)}${how}`, this.listenerResult);
    if (this.listenerResult === undefined) this.listening.add(listener);
    else this.unopened.add(listener);
    return this.listenerResult;
  }

  closeListener(listener: ListenerId): void {
    this.note(`unlisten ${listener}`);
    this.listening.delete(listener);
    this.watched.delete(listener);
  }

  openUpstream(socket: SocketId, backend: Address, source: Address | undefined): Opened {
    const result = this.openResults.shift();
    const from = source === undefined ? '' : ` from ${formatIp(source)}`;
    this.note(`open ${nameOf(socket)} ${formatAddress(backend)}${from}`, result);
    expect(this.open, 'an open socket is not opened again').not.toContain(socket);
    expect(this.gone, 'a socket id is never used twice').not.toContain(socket);
    if (this.opened.at(-1) !== socket) this.opened.push(socket);
    if (result === undefined) this.open.add(socket);
    return result;
  }

  closeUpstream(socket: SocketId): void {
    this.note(`close ${nameOf(socket)}`);
    this.open.delete(socket);
    this.gone.add(socket);
    this.watched.delete(socket);
  }

  sendToBackend(socket: SocketId, header: Uint8Array | undefined, payload: Uint8Array): void {
    expect(this.open, 'datagrams go to open sockets only').toContain(socket);
    this.note(`send ${nameOf(socket)} ${headerMark(header)}${text(payload)}`);
    this.sent.push({ direction: 'to-backend', cause: 'blocked', socket, header, payload });
  }

  sendToClient(
    listener: ListenerId,
    dst: Address,
    from: Address | undefined,
    payload: Uint8Array,
  ): void {
    if (!this.unopened.has(listener))
      expect(this.listening, 'replies leave from open listeners only').toContain(listener);
    this.note(`reply ${listener} ${formatAddress(dst)} ${text(payload)}`);
    this.sent.push({ direction: 'to-client', cause: 'blocked', listener, dst, from, payload });
  }

  watchUpstream(socket: SocketId): void {
    this.note(`watch ${nameOf(socket)}`);
    expect(this.open, 'only open sockets are watched').toContain(socket);
    this.watched.add(socket);
  }

  watchListener(listener: ListenerId): void {
    this.note(`watch ${listener}`);
    expect(this.listening, 'only open listeners are watched').toContain(listener);
    this.watched.add(listener);
  }

  flush(report: (failure: SendFailed) => void): void {
    this.note('flush');
    this.onFlush();
    const { sent } = this;
    this.sent = [];
    const failed = sent.map((_, number) => this.fate(number, sent.length));
    const full = new Set<SocketId | ListenerId>();
    for (const [number, one] of sent.entries()) {
      const socket = one.direction === 'to-backend' ? one.socket : one.listener;
      const isClosed = one.direction === 'to-client' && !this.listening.has(one.listener);
      if (isClosed) {
        report(lost(one, 'EBADF'));
        continue;
      }
      const cause = full.has(socket) ? 'blocked' : failed[number];
      if (cause === undefined) this.delivered.push(whatArrived(one));
      if (cause === 'blocked' || cause === 'refused') full.add(socket);
      if (cause === 'blocked') report(one);
      if (cause === 'refused') report(refused(one));
      if (cause === 'error') report(lost(one, this.errno));
    }
  }

  wakeAt(at: Instant | undefined): void {
    this.note(`wake ${at === undefined ? 'never' : at / 1_000_000}`);
    this.wake = at;
  }

  private note(line: string, failed?: Errno): void {
    this.calls.push(failed === undefined ? line : `${line} !${failed}`);
  }
}

export class PlaneBench {
  readonly ports: RecordingPorts = new RecordingPorts();
  readonly reports: Report[] = [];
  readonly plane: DataPlane;
  readonly pump: Pump;
  /** Every number that was ever used, and those in use. */
  private readonly listeners: Set<ListenerId> = new Set();
  private readonly added: Set<ListenerId> = new Set();

  /** Opens everything, unless `listenerResult` says that the listeners do not open. */
  constructor(config: Config, listenerResult?: Errno, more: Partial<PlaneOptions> = {}) {
    this.plane = new DataPlane({
      placementSeed: PLACEMENT_SEED,
      tableSeed: { first: 1, second: 2 },
      randomSeed: { high: 3, low: 4 },
      ...more,
    });
    this.pump = new Pump(this.plane, this.ports, (report) => this.reports.push(report));
    this.ports.listenerResult = listenerResult;
    this.turn(() => initialDirectives(config).forEach((directive) => this.direct(directive)));
  }

  /** The port calls of one turn. */
  turn(arrivals: () => void = () => undefined): string[] {
    this.ports.calls = [];
    arrivals();
    this.pump.endTurn();
    this.check();
    return this.ports.calls;
  }

  /** `10.1.0.1:1000` by default asks listener 0. */
  client(payload: string, from = '10.1.0.1:1000', listener = 0): void {
    this.pump.clientDatagram(listenerId(listener), addressOf(from), undefined, bytesOf(payload));
  }

  /** A datagram on the upstream socket that was opened as the `nth`, from 1. */
  backend(payload: string, nth = 1): void {
    this.pump.backendDatagram(this.socket(nth), bytesOf(payload));
  }

  /** Whether a listener was added and not removed since. */
  isListening(listener: ListenerId): boolean {
    return this.added.has(listener);
  }

  direct(directive: Directive): void {
    if (directive.kind === 'AddListener') {
      this.listeners.add(directive.listener);
      this.added.add(directive.listener);
    }
    if (directive.kind === 'RemoveListener') this.added.delete(directive.listener);
    this.pump.direct({ generation: 1, directive });
  }

  /** The upstream socket that was opened as the `nth` has room, or a listener has. It was watched. */
  upstreamWritable(nth = 1): void {
    const socket = this.socket(nth);
    expect(this.ports.watched.delete(socket), 'it was watched').toBe(true);
    this.pump.upstreamWritable(socket);
  }

  listenerWritable(listener = 0): void {
    expect(this.ports.watched.delete(listenerId(listener)), 'it was watched').toBe(true);
    this.pump.listenerWritable(listenerId(listener));
  }

  /** Everybody has room who waited for it. */
  allWritable(): void {
    for (const [at, socket] of this.ports.opened.entries()) {
      if (this.ports.watched.has(socket)) this.upstreamWritable(at + 1);
    }
    for (const at of this.listeners) if (this.ports.watched.has(at)) this.listenerWritable(at);
  }

  /** Lets time pass without telling anyone. */
  pass(count: number): void {
    this.ports.clock = after(this.ports.clock, seconds(count));
  }

  /** Lets time pass, then a turn of the timer. */
  timer(count = 0): string[] {
    this.pass(count);
    return this.turn(() => this.fire());
  }

  /** The timer fires; what was armed is gone. */
  fire(): void {
    this.ports.wake = undefined;
    this.pump.timer();
  }

  socket(nth: number): SocketId {
    return present(this.ports.opened[nth - 1], 'that many sockets were opened');
  }

  /** What all listeners counted, those that are gone included. */
  total(name: keyof ListenerCounters): number {
    const here = [...this.listeners].map((at) => this.plane.countersOf(at)?.[name] ?? 0);
    return here.reduce((sum, count) => sum + count, this.plane.listeners.retired[name]);
  }

  counters(listener = 0): Readonly<ListenerCounters> {
    return present(this.plane.countersOf(listenerId(listener)), 'the listener exists');
  }

  private check(): void {
    const { retired } = this.plane.listeners;
    let flows = 0;
    let taken = retired.forwarded + retired.returned;
    let unaccounted = unaccountedDatagrams(retired);
    expect(unaccounted, 'of what is gone every datagram ended').toBe(0);
    for (const at of this.listeners) {
      const manager = this.plane.managerOf(at);
      if (manager === undefined) continue;
      checkInvariants(manager);
      flows += manager.flowCount;
      const counters = this.counters(at);
      expect(unaccountedDatagrams(counters), 'some counted twice').toBeGreaterThanOrEqual(0);
      unaccounted += unaccountedDatagrams(counters);
      taken += counters.forwarded + counters.returned;
    }
    expect(taken, 'what was counted as sent').toBe(this.ports.delivered.length);
    expect(unaccounted, 'datagrams unaccounted for').toBe(this.plane.waiting);
    expect(this.ports.watched.size > 0, 'who waits is watched').toBe(this.plane.waiting > 0);
    expect(this.plane.flowCount).toBe(flows);
    expect(this.ports.open.size, 'open upstream sockets').toBe(flows);
    expect(this.ports.wake).toBe(this.plane.pollTimeout()?.at);
  }
}

/** One listener, `10.0.0.53:53`, that leads to `c`. */
export function listenerConfig(more: Partial<ListenerConfig> = {}): ListenerConfig {
  return {
    address: addressOf('10.0.0.53:53'),
    frontTimeout: seconds(30),
    backTimeout: seconds(30),
    maxRxDatagramSize: 1_500,
    maxFlows: 16,
    ipv6Only: false,
    cluster: 'c',
    ...more,
  };
}

/** A cluster `c` of backends in turn: `10.0.0.1:53`, `10.0.0.2:53` and so on. */
export function clusterSettings(more: Partial<ClusterSettings> = {}): ClusterSettings {
  return {
    ...NO_CLUSTER,
    ...CLUSTER_DEFAULTS,
    cluster: 'c',
    frontTimeout: undefined,
    backTimeout: undefined,
    loadBalancing: 'ROUND_ROBIN',
    loadMetric: 'CONNECTIONS',
    allowBackendAsClient: false,
    backends: backendsOf(1, 2),
    ...more,
  };
}

export function configOf(
  clusters: readonly ClusterSettings[] = [clusterSettings()],
  listeners: readonly ListenerConfig[] = [listenerConfig()],
): Config {
  return { listeners, clusters, grace: seconds(5) };
}

export function backendsOf(...numbers: readonly number[]): Backend[] {
  return numbers.map((n) => ({
    id: `b${n}`,
    address: addressOf(`10.0.0.${n}:53`),
    weight: 100,
    backup: false,
  }));
}

export function addressOf(words: string): Address {
  return present(parseAddress(words), 'an address');
}

function whatArrived(one: SendBlocked): string {
  if (one.direction === 'to-backend') {
    return `${nameOf(one.socket)} ${headerMark(one.header)}${text(one.payload)}`;
  }
  return `${one.listener} ${formatAddress(one.dst)} ${text(one.payload)}`;
}

/** Only an upstream socket has a peer that can refuse. */
function refused(one: SendBlocked): SendFailed {
  return one.direction === 'to-backend' ? { ...one, cause: 'refused' } : lost(one, 'EPERM');
}

function lost(one: SendBlocked, errno: Errno): SendFailed {
  const about = { cause: 'error', errno } as const;
  if (one.direction === 'to-backend') {
    return { direction: one.direction, ...about, socket: one.socket };
  }
  return { direction: one.direction, ...about, listener: one.listener };
}

/** `[28]` before a payload that has a header. */
function headerMark(header: Uint8Array | undefined): string {
  return header === undefined ? '' : `[${header.length}]`;
}

/** `u7`: the serial number alone, or `u7@1` on any but the first listener. */
function nameOf(socket: SocketId): string {
  const at = listenerOf(socket);
  return at === 0 ? `u${serialOf(socket)}` : `u${serialOf(socket)}@${at}`;
}

function bytesOf(words: string): Uint8Array {
  return Uint8Array.from(words, (letter) => letter.charCodeAt(0));
}

function text(payload: Uint8Array): string {
  return String.fromCharCode(...payload);
}
