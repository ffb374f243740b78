/**
 * The listeners of a data plane: opened, changed and closed as the control plane directs. One that is removed stays until the
 * turn is over, because what its last sends come to is told at the flush; then it is gone, what it counted is kept with the
 * rest, and what is heard of its sockets is nobody's.
 */
import { formatAddress } from './address.ts';
import { assert, assertNever } from './assert.ts';
import type { ListenerId } from './brand.ts';
import type { Clusters } from './clusters.ts';
import type { AccessLogSettings, ListenerConfig } from './config.ts';
import type { ConfigEvent, Output } from './contract.ts';
import type { Directive, Report } from './directives.ts';
import type { Egress } from './egress.ts';
import { FlowLog, newLedger } from './flow-log.ts';
import { LastingSums } from './lasting-sums.ts';
import { openListener } from './listener-opening.ts';
import { addCounters, newCounters, type ListenerCounters } from './metrics.ts';
import type { OutputQueue } from './output-queue.ts';
import type { PlaneOptions, PlaneOutput } from './plane-contract.ts';
import { newListener, renewManager, updateListener, type Listener } from './plane-listener.ts';
import type { Instant } from './time.ts';
import type { Upstreams } from './upstreams.ts';

type ListenerDirective = Extract<
  Directive,
  { kind: 'AddListener' | 'UpdateListener' | 'RemoveListener' | 'SetAccessLog' }
>;

const LISTENER_DIRECTIVES: ReadonlySet<string> = new Set<ListenerDirective['kind']>([
  'AddListener',
  'UpdateListener',
  'RemoveListener',
  'SetAccessLog',
]);

export function isListenerDirective(directive: Directive): directive is ListenerDirective {
  return LISTENER_DIRECTIVES.has(directive.kind);
}

export interface ListenersOptions {
  readonly options: PlaneOptions;
  readonly clusters: Clusters;
  readonly upstreams: Upstreams;
  readonly egress: Egress;
  readonly outputs: OutputQueue<PlaneOutput>;
  /** Takes and performs what a listener's flow machine has to say. */
  readonly drain: (listener: Listener, now: Instant) => void;
  readonly report: (report: Report) => void;
}

export class Listeners {
  /** In the order of arrival, those that are leaving included. */
  readonly all: Listener[] = [];
  /** What listeners counted that are no more, so that no total ever shrinks. */
  readonly retired: ListenerCounters = newCounters();
  /** With holes. A listener keeps its place for as long as it is there. */
  readonly byNumber: (Listener | undefined)[] = [];
  private readonly flowLog: FlowLog;
  private readonly leaving = new Set<Listener>();
  /** By address. */
  private readonly lasting = new LastingSums(newCounters, addCounters);
  private readonly tools: ListenersOptions;
  /** A stop has begun: nothing more is opened; or is over: nothing is left to close. */
  private stop: 'begun' | 'over' | undefined;

  constructor(tools: ListenersOptions) {
    this.tools = tools;
    this.flowLog = new FlowLog(tools.report);
  }

  /** What all counted, those included that are no more. */
  get totals(): Readonly<ListenerCounters> {
    const sum = { ...this.retired };
    for (const { counters } of this.all) addCounters(sum, counters);
    return sum;
  }

  /** The same by address, where a listener that came back counts on. Those beyond a bound share the name `OTHER_NAMES`. */
  get totalsByAddress(): ReadonlyMap<string, Readonly<ListenerCounters>> {
    return this.lasting.including(this.all.map((one) => [nameOf(one), one.counters] as const));
  }

  /** How often an address found no sum of its own. */
  get addressesBeyondBound(): number {
    return this.lasting.beyondBound;
  }

  /** Undefined when there is none of that number, or no more. */
  at(id: ListenerId): Listener | undefined {
    return this.byNumber[id];
  }

  /** What was counted as sent is lost, perhaps after its listener was removed: then it is counted with those that are gone. */
  sendFailedLate(id: ListenerId): void {
    const counters = this.at(id)?.counters ?? this.retired;
    counters.sendFailedLate += 1;
  }

  /** Whether it was removed in this turn: its socket is about to close. */
  isLeaving(listener: Listener): boolean {
    return this.leaving.has(listener);
  }

  /** Whether nothing can wait for its socket: that closes, or has closed. */
  isClosing(listener: Listener): boolean {
    return listener.binding.givenUp || this.isLeaving(listener);
  }

  get isEmpty(): boolean {
    return this.all.length === 0;
  }

  /** The configurations of those that stay. */
  get configs(): ListenerConfig[] {
    return this.staying.map(({ config }) => config);
  }

  obey(directive: ListenerDirective, generation: number, now: Instant): void {
    switch (directive.kind) {
      case 'AddListener':
        return this.add(directive.listener, directive.config, generation, now);
      case 'UpdateListener':
        return this.update(directive.listener, directive.config, now);
      case 'RemoveListener':
        return this.remove(directive.listener, generation, now);
      case 'SetAccessLog':
        return this.setAccessLog(directive.settings, now);
      default:
        return assertNever(directive);
    }
  }

  /** Those that lead to a cluster of this name, there or not, work by what it says now. */
  clusterChanged(name: string, now: Instant): void {
    for (const listener of this.all) {
      if (listener.config.cluster === name) this.configure(listener, now);
    }
  }

  /** Soft stop: no new flows on any. */
  stopAdmitting(now: Instant): void {
    this.stop ??= 'begun';
    for (const listener of this.all) {
      // One that was given up comes back: the flows that are left need it for their replies.
      if (!listener.binding.givenUp) listener.binding.retryAt = undefined;
      this.tell(listener, { kind: 'Drain' }, now);
    }
  }

  /**
   * Gives up a socket that is of no use any more. It closes when the turn is over, and then another is opened in its place.
   * The flows stay.
   */
  reopen(id: ListenerId): void {
    const listener = this.at(id);
    if (listener === undefined) return;
    listener.counters.socketsGivenUp += 1;
    listener.binding.givenUp = true;
    this.closeSocket(listener);
    this.tools.outputs.push(openListener(listener));
  }

  /**
   * Closes the flows of a listener whose flow machine failed in the middle of something, and starts it afresh. Its socket
   * stays. How many flows those were.
   */
  restart(listener: Listener, now: Instant): number {
    const { clusters, options, upstreams } = this.tools;
    const { counters } = listener;
    counters.restarts += 1;
    // Told by what it opened, and not by what it says itself.
    const flowsClosed = upstreams.closeAll(listener);
    counters.flowsEvicted += flowsClosed;
    counters.closedAborted += flowsClosed;
    renewManager(listener, clusters.configFor(listener.config), options);
    if (this.flowLog.oneIn !== 0) this.tellEnds(listener, now);
    if (this.stop !== undefined) this.tell(listener, { kind: 'Drain' }, now);
    return flowsClosed;
  }

  closeAll(now: Instant): void {
    this.stop = 'over';
    for (const listener of this.staying) this.close(listener, now);
    this.flowLog.flush();
  }

  /** What a flow machine said, for the access log; called only while there is one. */
  logFlow(listener: Listener, output: Output, generation: number, now: Instant): void {
    this.flowLog.heard(listener, output, generation, now);
  }

  /** The turn is over: what was handed over and did not fail was sent, and who was leaving is gone. */
  flushed(): void {
    for (const listener of this.all) {
      listener.counters.forwarded += listener.sentToBackends;
      listener.counters.returned += listener.sentToClients;
      listener.sentToBackends = 0;
      listener.sentToClients = 0;
    }
    for (const listener of this.leaving) {
      addCounters(this.retired, listener.counters);
      this.lasting.keep(nameOf(listener), listener.counters);
      this.byNumber[listener.id] = undefined;
      this.all.splice(this.all.indexOf(listener), 1);
    }
    this.leaving.clear();
  }

  private add(id: ListenerId, config: ListenerConfig, generation: number, now: Instant): void {
    if (this.stop !== undefined) return;
    assert(this.byNumber[id] === undefined, 'a number is given to one listener at a time');
    const { options, clusters, outputs } = this.tools;
    const listener = newListener({ id, config, generation }, clusters.configFor(config), options);
    this.byNumber[id] = listener;
    this.lasting.begin(nameOf(listener));
    this.all.push(listener);
    this.makeRoom();
    if (this.flowLog.oneIn !== 0) this.tellEnds(listener, now);
    outputs.push(openListener(listener));
  }

  /** Other limits, times or cluster: its socket and its live flows stay. */
  private update(id: ListenerId, config: ListenerConfig, now: Instant): void {
    const listener = this.at(id);
    if (listener === undefined) return;
    const { maxFlows: count, maxRxDatagramSize: bytes } = config;
    updateListener(listener, config);
    this.makeRoom();
    this.tell(listener, { kind: 'SetMaxFlows', count }, now);
    this.tell(listener, { kind: 'SetMaxRxDatagramSize', bytes }, now);
    this.configure(listener, now);
  }

  private remove(id: ListenerId, generation: number, now: Instant): void {
    const listener = this.at(id);
    if (listener === undefined || this.isLeaving(listener) || this.stop === 'over') return;
    const flowsClosed = listener.manager.flowCount;
    const { address } = listener.config;
    this.close(listener, now);
    this.leaving.add(listener);
    const about = { generation, listener: id, address, flowsClosed };
    this.tools.report({ kind: 'ListenerClosed', ...about });
  }

  private get staying(): Listener[] {
    return this.all.filter((listener) => !this.isLeaving(listener));
  }

  /** Admits nothing more, and closes flows and socket; what was sent in this turn leaves first. */
  private close(listener: Listener, now: Instant): void {
    listener.binding.retryAt = undefined;
    this.tell(listener, { kind: 'Drain' }, now);
    listener.manager.closeAll(now);
    this.tools.drain(listener, now);
    this.closeSocket(listener);
  }

  private closeSocket(listener: Listener): void {
    const { egress, outputs } = this.tools;
    egress.listenerClosed(listener, listener.id);
    outputs.push({ kind: 'CloseListener', listener: listener.id });
  }

  private setAccessLog(settings: AccessLogSettings | undefined, now: Instant): void {
    this.flowLog.configure(settings);
    for (const listener of this.all) this.tellEnds(listener, now);
  }

  private tellEnds(listener: Listener, now: Instant): void {
    const { oneIn } = this.flowLog;
    const size = listener.sockets.length;
    listener.ledger = oneIn === 0 ? undefined : (listener.ledger ?? newLedger(size));
    this.tell(listener, { kind: 'TellEnds', oneIn }, now);
  }

  private configure(listener: Listener, now: Instant): void {
    const config = this.tools.clusters.configFor(listener.config);
    this.tell(listener, { kind: 'SetCluster', config }, now);
  }

  private tell(listener: Listener, event: ConfigEvent, now: Instant): void {
    listener.manager.handleInput({ kind: 'Config', event }, now);
    this.tools.drain(listener, now);
  }

  /** A table never shrinks, so flows that live above a lowered cap have room too. */
  private makeRoom(): void {
    this.tools.upstreams.grow(this.all.reduce((sum, { sockets }) => sum + sockets.length, 0));
  }
}

function nameOf({ config }: Listener): string {
  return formatAddress(config.address);
}
