/**
 * One data plane: all listeners with their flow machines, the clusters they lead to and the upstream sockets of their flows.
 * Directives go in, reports come out (law 9); whatever a worker decides is decided here, whatever it does is an output.
 */
import type { Address } from './address.ts';
import { assert, assertNever, present } from './assert.ts';
import { flowId, listenerOf, type ListenerId, type SocketId } from './brand.ts';
import { Clusters } from './clusters.ts';
import type { ManagerTrain } from './contract.ts';
import type { Directive, GeneratedDirective, Report } from './directives.ts';
import { earlier } from './earlier.ts';
import { Egress } from './egress.ts';
import { Evidence } from './evidence.ts';
import { FlowQueries } from './flow-query.ts';
import { listenerAnswered, retryListener } from './listener-opening.ts';
import { ListenerRestarts } from './listener-restarts.ts';
import { GuardedBackends, LoopGuard } from './loop-guard.ts';
import { Losses } from './losses.ts';
import type { UdpManager } from './manager.ts';
import type { ListenerCounters } from './metrics.ts';
import { OutputQueue } from './output-queue.ts';
import type { PlaneInput, PlaneOptions, PlaneOutput, PlaneTrain, Wake } from './plane-contract.ts';
import { PlaneClusters } from './plane-clusters.ts';
import type { Listener } from './plane-listener.ts';
import { isListenerDirective, Listeners } from './plane-listeners.ts';
import { drainOf, stopOf, tellDrained, type Stopping } from './plane-stop.ts';
import type { Errno, SendFailed } from './ports.ts';
import { createRandom } from './random.ts';
import { StuckSockets } from './stuck-sockets.ts';
import { TableBuilds } from './table-builds.ts';
import type { Instant } from './time.ts';
import { datagramsIn } from './train.ts';
import { Translation } from './translation.ts';
import { UpstreamSources, type OpenFailed } from './upstream-sources.ts';
import { Upstreams } from './upstreams.ts';

type ClientTrain = Extract<PlaneTrain, { kind: 'ClientTrain' }>;
type BackendTrain = Extract<PlaneTrain, { kind: 'BackendTrain' }>;

export class DataPlane {
  /** Open to readers of counters. */
  readonly listeners: Listeners;
  readonly clusters: Clusters;
  private readonly builds: TableBuilds;
  private readonly lent: GuardedBackends;
  private readonly planeClusters: PlaneClusters;
  private readonly upstreams: Upstreams;
  private readonly outputs = new OutputQueue<PlaneOutput>();
  private readonly egress = new Egress(this.outputs);
  private readonly sources = new UpstreamSources(this.outputs);
  private readonly evidence = new Evidence((report) => this.report(report));
  private readonly losses: Losses;
  private readonly queries: FlowQueries;
  private readonly translation: Translation;
  private readonly stuck: StuckSockets;
  private readonly restarts: ListenerRestarts;
  private stopping: Stopping | undefined;
  private stopped = false;
  private generation = 0;
  private staleCount = 0;

  constructor(options: PlaneOptions) {
    const loops = new LoopGuard(options.hosts ?? [], options.tableSeed);
    this.losses = new Losses((report) => this.report(report), options.closesPerTurn);
    this.lent = new GuardedBackends(loops, this.losses.fates);
    const random = createRandom(options.randomSeed);
    this.clusters = new Clusters(options.placementSeed, random, options.tableSeed);
    const { outputs, clusters, egress, evidence, losses, sources } = this;
    this.builds = new TableBuilds(clusters);
    const upstreams = new Upstreams({ outputs, clusters, egress, evidence, losses, sources });
    this.upstreams = upstreams;
    const drain = (listener: Listener, now: Instant): void => this.drain(listener, now);
    const report = (one: Report): void => this.report(one);
    this.listeners = new Listeners({
      options,
      outputs,
      clusters,
      egress,
      upstreams,
      drain,
      report,
    });
    const { listeners, lent } = this;
    const max = options.restartsPerMinute ?? 0;
    this.restarts = new ListenerRestarts({ max, listeners, lent, drain, report });
    this.planeClusters = new PlaneClusters({ clusters, listeners, losses, loops });
    const { placementSeed } = options;
    const { fates } = losses;
    this.queries = new FlowQueries({ placementSeed, listeners, clusters, fates, loops, drain });
    this.translation = new Translation({ listeners, clusters, upstreams, egress, evidence });
    this.stuck = new StuckSockets({ egress, upstreams, listeners, drain });
  }

  /** Takes one input; all outputs of earlier calls must have been polled. */
  handleInput(input: PlaneInput, now: Instant): void {
    assert(this.outputs.pending === 0, 'outputs are drained before the next call');
    switch (input.kind) {
      case 'ClientArrived':
        return this.onClientArrived(input.listener, input.src, input.local, input.payload, now);
      case 'BackendArrived':
        return this.onBackendArrived(input.socket, input.payload, now);
      case 'Refused':
        return this.onRefused(input.socket);
      case 'OpenFailed':
        return this.onOpenFailed(input, now);
      case 'ListenerAnswer':
        return this.onListenerAnswer(input.listener, input.errno, now);
      case 'SendFailed':
        return this.onSendFailed(input.failure, now);
      case 'UpstreamWritable':
      case 'ListenerWritable':
        return this.onRoom(input);
      case 'LateSendFailure':
        return this.listeners.sendFailedLate(input.listener);
      case 'Flushed':
        return this.onFlushed(now);
      case 'Directed':
        return this.onDirective(input.message, now);
      default:
        return assertNever(input);
    }
  }

  /** Takes a train at once, unless its datagrams may differ in what becomes of them: then nothing has happened. */
  handleTrain(train: PlaneTrain, now: Instant): boolean {
    assert(this.outputs.pending === 0, 'outputs are drained before the next call');
    return train.kind === 'ClientTrain'
      ? this.onClientTrain(train, now)
      : this.onBackendTrain(train, now);
  }

  /**
   * The timer fired, perhaps early: closes idle flows that are due and some of those that lost their backend, and ends a
   * drain whose deadline has come.
   */
  handleTimeout(now: Instant): void {
    assert(this.outputs.pending === 0, 'outputs are drained before the next call');
    for (const listener of this.listeners.all) {
      const retry = retryListener(listener, now);
      if (retry !== undefined) this.outputs.push(retry);
      const armed = listener.manager.pollTimeout();
      if (armed === undefined || armed > now) continue;
      this.restarts.timeout(listener, now);
    }
    this.losses.sweep.slice(this.listeners.byNumber, now, (listener) => this.drain(listener, now));
    if (this.stopping !== undefined && this.stopping.deadline <= now) this.stop(now);
    this.stuck.giveUp(now);
  }

  pollOutput(): PlaneOutput | undefined {
    return this.outputs.poll();
  }

  pollTimeout(): Wake | undefined {
    if (this.builds.wake !== undefined) return this.builds.wake;
    const deadline = this.stopped ? undefined : this.stopping?.deadline;
    let wake = earlier(undefined, deadline, 'drain-deadline');
    for (const { manager, binding } of this.listeners.all) {
      wake = earlier(wake, manager.pollTimeout(), 'flow-idle');
      wake = earlier(wake, binding.retryAt, 'bind-retry');
    }
    wake = earlier(wake, this.stuck.dueAt, 'socket-blocked');
    return earlier(wake, this.losses.sweep.at, 'sweep');
  }

  /** Live flows of all listeners. */
  get flowCount(): number {
    return this.upstreams.count;
  }

  /** Datagrams that wait for a socket: received, and not accounted for by any counter yet. */
  get waiting(): number {
    return this.egress.waiting;
  }

  /** The counters of a listener, for readers; undefined when there is no such listener. */
  countersOf(listener: ListenerId): Readonly<ListenerCounters> | undefined {
    return this.listeners.at(listener)?.counters;
  }

  /** Directives of an earlier generation than one that was obeyed: refused. */
  get staleDirectives(): number {
    return this.staleCount;
  }

  /** The flow machine of a listener, for whole-state checks. */
  managerOf(listener: ListenerId): UdpManager | undefined {
    return this.listeners.at(listener)?.manager;
  }

  private onClientArrived(
    id: ListenerId,
    src: Address,
    local: Address | undefined,
    payload: Uint8Array,
    now: Instant,
  ): void {
    const listener = this.listeners.at(id);
    if (listener === undefined) return;
    listener.counters.clientReceived += 1;
    const backends = this.backendsFor(listener, now);
    this.restarts.datagram(
      listener,
      { kind: 'ClientDatagram', src, local, payload, backends },
      now,
    );
  }

  private onClientTrain(input: ClientTrain, now: Instant): boolean {
    const { src, local, payload, unit } = input;
    const listener = this.listeners.at(input.listener);
    if (listener === undefined) return false;
    const backends = this.backendsFor(listener, now);
    const train: ManagerTrain = { kind: 'ClientTrain', src, local, payload, unit, backends };
    if (!this.restarts.train(listener, train, now)) return false;
    listener.counters.clientReceived += datagramsIn(payload, unit);
    return true;
  }

  /** What its flow machine is lent. */
  private backendsFor(listener: Listener, now: Instant): GuardedBackends {
    const { lent } = this;
    lent.cluster = this.clusters.of(listener.config);
    lent.hold = this.sources.holdFor(lent.cluster, now);
    return lent;
  }

  private onBackendArrived(socket: SocketId, payload: Uint8Array, now: Instant): void {
    const listener = this.ownerOf(socket);
    if (listener === undefined) return;
    listener.counters.backendReceived += 1;
    const slot = this.upstreams.slotOf(socket);
    if (slot === undefined) {
      listener.counters.droppedUnknownFlow += 1;
      return;
    }
    this.upstreams.answered(socket, 1);
    this.restarts.datagram(listener, { kind: 'BackendDatagram', flow: flowId(slot), payload }, now);
  }

  private onBackendTrain({ socket, payload, unit }: BackendTrain, now: Instant): boolean {
    const [listener, slot] = [this.ownerOf(socket), this.upstreams.slotOf(socket)];
    if (listener === undefined || slot === undefined) return false;
    const train: ManagerTrain = { kind: 'BackendTrain', flow: flowId(slot), payload, unit };
    if (!this.restarts.train(listener, train, now)) return false;
    const datagrams = datagramsIn(payload, unit);
    listener.counters.backendReceived += datagrams;
    this.upstreams.answered(socket, datagrams);
    return true;
  }

  private onRefused(socket: SocketId): void {
    const listener = this.ownerOf(socket);
    if (listener !== undefined) this.upstreams.refused(listener, socket);
  }

  /** The next source is tried, or the flow aborted, unless it closed in the very drain that opened it (spec §6.7, T12). */
  private onOpenFailed(failed: OpenFailed, now: Instant): void {
    const { socket, source, errno, unsent } = failed;
    const listener = this.ownerOf(socket);
    if (listener === undefined) return;
    const { counters } = listener;
    const verdict = this.upstreams.openFailed(listener, failed, now);
    counters.upstreamOpenFailed += 1;
    if (verdict.missing || !verdict.again)
      this.report({ kind: 'UpstreamFailed', listener: listener.id, errno, source });
    if (verdict.again) return;
    listener.sentToBackends -= unsent;
    if (verdict.reason === 'PortExhausted') counters.droppedPortExhausted += unsent;
    else counters.droppedUnknownFlow += unsent;
    counters.flowsShed += 1;
    const slot = this.upstreams.slotOf(socket);
    if (slot === undefined) return;
    listener.manager.abortFlow(flowId(slot), now);
    this.drain(listener, now);
  }

  private onListenerAnswer(id: ListenerId, errno: Errno | undefined, now: Instant): void {
    const listener = this.stopped ? undefined : this.listeners.at(id);
    const report = listener && listenerAnswered(listener, errno, now);
    if (report !== undefined) this.report(report);
  }

  private onSendFailed(failure: SendFailed, now: Instant): void {
    const toBackend = failure.direction === 'to-backend';
    const listener = toBackend ? this.ownerOf(failure.socket) : this.listeners.at(failure.listener);
    if (listener === undefined) return;
    const isOpen = toBackend
      ? this.upstreams.slotOf(failure.socket) !== undefined
      : !this.stopped && !this.listeners.isClosing(listener);
    const stuck = toBackend ? this.upstreams.sendFailed(listener, failure, now) : undefined;
    this.egress.failed(listener, failure, isOpen, now);
    if (stuck === undefined) return;
    listener.manager.renewUpstream(stuck, now);
    this.drain(listener, now);
    this.upstreams.renewed(listener, stuck, now);
  }

  private onRoom(
    room: Extract<PlaneInput, { kind: 'UpstreamWritable' | 'ListenerWritable' }>,
  ): void {
    const toBackend = room.kind === 'UpstreamWritable';
    const listener = toBackend ? this.ownerOf(room.socket) : this.listeners.at(room.listener);
    if (listener === undefined) return;
    if (toBackend) this.egress.upstreamWritable(listener, room.socket);
    else this.egress.listenerWritable(listener, room.listener);
  }

  /** A drain is over once no flow is left and the last reply has gone. */
  private onFlushed(now: Instant): void {
    if (this.egress.retry()) return;
    this.egress.flushed(now);
    this.planeClusters.flushed();
    this.evidence.flushed(now);
    this.losses.drains.flushed(now);
    this.builds.flushed(now);
    this.listeners.flushed();
    if (this.stopping !== undefined && this.flowCount + this.waiting === 0)
      this.emptied(this.stopping, now);
  }

  private onDirective(message: GeneratedDirective, now: Instant): void {
    const { directive, generation } = message;
    if (generation < this.generation) {
      this.staleCount += 1;
      return undefined;
    }
    this.generation = generation;
    this.builds.begin(this.listeners.isEmpty);
    if (isListenerDirective(directive)) {
      this.planeClusters.listenersChanged();
      return this.listeners.obey(directive, generation, now);
    }
    switch (directive.kind) {
      case 'SetCluster':
      case 'RemoveCluster':
        return this.planeClusters.obey(directive, now);
      case 'SetHealth':
      case 'SetBackendState':
      case 'SetProbeTime':
        return this.losses.learn(this.clusters, directive, now);
      case 'Query':
        return this.answer(directive, now);
      case 'Drain':
        return this.beginDrain(drainOf(directive, generation, this.stopping), now);
      case 'Stop':
        this.stopping = stopOf(generation, now);
        return this.stop(now);
      default:
        return assertNever(directive);
    }
  }

  private beginDrain(stopping: Stopping, now: Instant): void {
    this.stopping = stopping;
    this.listeners.stopAdmitting(now);
  }

  /** No flow is left. */
  private emptied(stopping: Stopping, now: Instant): void {
    if (stopping.whenEmpty === 'stop') this.stop(now);
    else if (stopping.whenEmpty === 'tell' && !this.stopped) this.report(tellDrained(stopping));
  }

  /** Closes whatever is open; the second time there is nothing left to do. */
  private stop(now: Instant): void {
    if (this.stopped) return;
    this.stopped = true;
    this.builds.stop();
    const flowsClosed = this.flowCount;
    this.listeners.closeAll(now);
    const generation = present(this.stopping, 'a stop was directed').generation;
    this.report({ kind: 'Stopped', generation, flowsClosed });
  }

  private drain(listener: Listener, now: Instant): void {
    this.translation.drain(listener, this.generation, now);
  }

  private answer({ request, query }: Extract<Directive, { kind: 'Query' }>, now: Instant): void {
    this.report({ kind: 'Answered', request, answer: this.queries.answer(query, now) });
  }

  private report(report: Report): void {
    this.outputs.push({ kind: 'Report', report });
  }

  /** Undefined when its listener is no more. */
  private ownerOf(socket: SocketId): Listener | undefined {
    return this.listeners.at(listenerOf(socket));
  }
}
