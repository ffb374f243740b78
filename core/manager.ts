/**
 * UdpManager: the flow machine of one listener, exactly the contract of spec §2. It performs nothing: inputs go in, outputs
 * come out of one queue, time is an argument. After each call the queue is drained before the next.
 */
import { isUnanswerable, type Address } from './address.ts';
import { assert, assertNever } from './assert.ts';
import { flowId, type FlowId } from './brand.ts';
import {
  DATAGRAM_BYTES_MAX,
  type Backend,
  type BackendSource,
  type CloseReason,
  type ClusterConfig,
  type ConfigEvent,
  type DropReason,
  type ManagerInput,
  type Output,
} from './contract.ts';
import { Deadlines } from './deadlines.ts';
import { nextPhase, teardownReason, type UdpFlow } from './flow.ts';
import { FlowTable } from './flow-table.ts';
import type { Hash64 } from './hash.ts';
import { looksLikeProxyHeader } from './hostile.ts';
import type { TableSeed } from './keyed-hash.ts';
import { affinityKey } from './placement.ts';
import { dgramHeader } from './proxy-protocol.ts';
import {
  DATAGRAM_IN,
  DATAGRAM_OUT,
  DROPS,
  FLOW_CREATED,
  FLOW_EVICTED,
  FLOW_SHED,
  FLOW_SHED_SOURCE_LIMIT,
  REFUSED,
  REFUSED_HEADER,
} from './manager-outputs.ts';
import { OutputQueue } from './output-queue.ts';
import { Registry } from './registry.ts';
import { SourceLimits } from './source-limits.ts';
import { instant, type Instant } from './time.ts';

export interface ManagerOptions {
  readonly config: ClusterConfig;
  /** Live flows at most; 0 admits nothing. */
  readonly maxFlows: number;
  /** Largest client datagram, bytes. */
  readonly maxRxDatagramSize: number;
  /** Public: decides which backend a client gets, equal in every process (spec §3.2). */
  readonly placementSeed: Hash64;
  /** Secret: lays out the tables, without effect on any output. */
  readonly tableSeed: TableSeed;
  /** Whether the local address is part of the flow key: on a wildcard listener. */
  readonly keyedByLocal?: boolean;
}

export class UdpManager {
  /** Open to whole-state checks (verify.ts); nobody else reads or writes them. */
  readonly table: FlowTable;
  readonly deadlines: Deadlines;
  readonly sources: SourceLimits;
  readonly backends: Registry<Backend> = new Registry();
  readonly configs: Registry<ClusterConfig> = new Registry();

  private readonly placementSeed: Hash64;
  private config: ClusterConfig;
  private cap: number;
  private capHighWater: number;
  private maxRxDatagramSize: number;
  private draining = false;
  private armed: Instant | undefined;
  private latest: Instant = instant(0);
  private readonly outputs = new OutputQueue<Output>();

  constructor(options: ManagerOptions) {
    assertCount(options.maxFlows);
    const capacity = Math.max(1, options.maxFlows);
    this.table = new FlowTable(capacity, options.tableSeed, options.keyedByLocal ?? false);
    this.deadlines = new Deadlines(capacity);
    this.sources = new SourceLimits(capacity, options.tableSeed);
    this.placementSeed = options.placementSeed;
    this.config = options.config;
    this.cap = options.maxFlows;
    this.capHighWater = options.maxFlows;
    this.maxRxDatagramSize = options.maxRxDatagramSize;
  }

  /** Takes one input. All outputs of earlier calls must have been polled; `now` never goes back. */
  handleInput(input: ManagerInput, now: Instant): void {
    this.begin(now);
    switch (input.kind) {
      case 'ClientDatagram':
        this.onClientDatagram(input.src, input.local, input.payload, input.backends, now);
        break;
      case 'BackendDatagram':
        this.onBackendDatagram(input.flow, input.payload, now);
        break;
      case 'Config':
        this.onConfig(input.event);
        break;
      default:
        assertNever(input);
    }
  }

  /**
   * The timer fired, perhaps early. Closes every flow whose deadline is not after `now`, in order of id, and arms the next
   * deadline anew even when nothing was due: the delivered timer is gone (spec §2.7).
   */
  handleTimeout(now: Instant): void {
    this.begin(now);
    this.armed = undefined;
    const due: number[] = [];
    this.deadlines.dueBy(now, due);
    due.sort((one, other) => one - other);
    for (const slot of due) this.closeFlow(slot, 'Idle');
    this.reschedule();
    assert(this.armed === undefined || this.armed > now, 'the next deadline is after this one');
  }

  /** Closes one flow for the embedder, which could not serve it. Any id may come; one without a flow is ignored. */
  abortFlow(flow: FlowId, now: Instant, reason: CloseReason = 'Aborted'): void {
    this.begin(now);
    if (this.table.isLive(flow)) this.closeFlow(flow, reason);
  }

  /** Closes every flow, in order of id. Does not set draining. */
  closeAll(now: Instant): void {
    this.begin(now);
    for (let slot = 0; slot < this.table.highWater; slot += 1) {
      if (this.table.isLive(slot)) this.closeFlow(slot, 'Drain');
    }
  }

  /** The next output, first in first out; undefined when none is left. */
  pollOutput(): Output | undefined {
    return this.outputs.poll();
  }

  /** When `handleTimeout` wants to be called: the earliest idle deadline; undefined without live flows. */
  pollTimeout(): Instant | undefined {
    return this.armed;
  }

  get flowCount(): number {
    return this.table.count;
  }

  get maxFlows(): number {
    return this.cap;
  }

  /** The highest cap ever set: shrinking evicts nobody. */
  get maxFlowsHighWater(): number {
    return this.capHighWater;
  }

  get isDraining(): boolean {
    return this.draining;
  }

  /** Outputs not polled yet. */
  get pendingOutputs(): number {
    return this.outputs.pending;
  }

  /** A copy of what is known of a live flow. */
  flow(id: FlowId): UdpFlow | undefined {
    const { table } = this;
    if (!table.isLive(id)) return undefined;
    return {
      client: table.clientOf(id),
      local: table.localOf(id),
      backend: this.backends.get(table.backendOf(id)),
      phase: 'Established',
      config: this.configs.get(table.configOf(id)),
      requestsSeen: table.requestsOf(id),
      responsesSeen: table.responsesOf(id),
      idleDeadline: this.deadlines.of(id),
    };
  }

  private begin(now: Instant): void {
    assert(this.pendingOutputs === 0, 'outputs are drained before the next call');
    assert(now >= this.latest, 'time does not go back');
    this.latest = now;
  }

  /** The decision order of spec §2.2: the first condition that holds ends it. */
  private onClientDatagram(
    src: Address,
    local: Address | undefined,
    payload: Uint8Array,
    backends: BackendSource,
    now: Instant,
  ): void {
    if (payload.length > this.maxRxDatagramSize) return this.drop('Truncated');
    if (this.config.cluster === '') return this.drop('NoBackend');
    if (payload.length === 0 || isUnanswerable(src)) return this.drop('Invalid');
    const hash = this.table.hashOf(src, local);
    const slot = this.table.find(hash, src, local);
    if (slot !== undefined) return this.onKnownClient(slot, payload, now);
    const refusal = backends.refuses?.(src, local, now);
    if (refusal !== undefined) return this.refuse(REFUSED[refusal]);
    if (this.draining) return this.drop('Shed');
    if (this.sources.reached(this.config, src)) return this.shed(FLOW_SHED_SOURCE_LIMIT);
    if (this.table.count >= this.cap) return this.shed(FLOW_SHED);
    const key = affinityKey(this.placementSeed, src, this.config.affinityWithPort);
    const backend = backends.select(key, now);
    if (backend === undefined) return this.drop('NoBackend');
    this.forward(this.admit(hash, src, local, backend, now), payload, now);
  }

  /**
   * Where only the first datagram carries our PROXY header, a later one that begins like a header would be believed: it is
   * refused (decisions table "header injection").
   */
  private onKnownClient(slot: number, payload: Uint8Array, now: Instant): void {
    const config = this.configs.get(this.table.configOf(slot));
    const firstOnly = config.sendProxyProtocol && !config.proxyProtocolEveryDatagram;
    if (firstOnly && config.rejectClientHeader && looksLikeProxyHeader(payload)) {
      return this.refuse(REFUSED_HEADER);
    }
    this.forward(slot, payload, now);
  }

  /** A new flow, established on its backend, with nothing forwarded yet. */
  private admit(
    hash: number,
    src: Address,
    local: Address | undefined,
    backend: Backend,
    now: Instant,
  ): number {
    const { config } = this;
    const slot = this.table.insert(hash, src, local);
    this.table.setUpstream(slot, this.backends.acquire(backend), this.configs.acquire(config));
    this.table.setHeaderDue(slot, config.sendProxyProtocol);
    this.sources.add(config, src);
    this.deadlines.add(slot, now, config.frontTimeout);
    this.outputs.push(FLOW_CREATED);
    this.outputs.push({ kind: 'OpenUpstream', flow: flowId(slot), backend });
    return slot;
  }

  /** One client datagram on a live flow (spec §2.3), the admission datagram included. */
  private forward(slot: number, payload: Uint8Array, now: Instant): void {
    const config = this.configs.get(this.table.configOf(slot));
    const backend = this.backends.get(this.table.backendOf(slot));
    this.table.countRequest(slot);
    this.deadlines.touch(slot, now, config.frontTimeout);
    this.outputs.push(DATAGRAM_IN.of(payload.length));
    this.outputs.push({
      kind: 'SendToBackend',
      flow: flowId(slot),
      dst: backend.address,
      prefix: this.prefixFor(slot, config, backend),
      payload,
    });
    this.settle(slot, config);
  }

  /** The PROXY header this datagram carries, if one is due (spec §4). */
  private prefixFor(slot: number, config: ClusterConfig, backend: Backend): Uint8Array | undefined {
    if (!this.table.headerDue(slot)) return undefined;
    if (!config.proxyProtocolEveryDatagram) this.table.setHeaderDue(slot, false);
    return dgramHeader(this.table.clientOf(slot), backend.address);
  }

  private onBackendDatagram(flow: FlowId, payload: Uint8Array, now: Instant): void {
    if (payload.length > DATAGRAM_BYTES_MAX) return this.drop('Truncated');
    if (!this.table.isLive(flow)) return this.drop('UnknownFlow');
    const config = this.configs.get(this.table.configOf(flow));
    this.table.countResponse(flow);
    this.deadlines.touch(flow, now, config.backTimeout);
    this.outputs.push(DATAGRAM_OUT.of(payload.length));
    this.outputs.push({
      kind: 'SendToClient',
      flow,
      dst: this.table.clientOf(flow),
      from: this.table.localOf(flow),
      payload,
    });
    this.settle(flow, config);
  }

  /** After a counted datagram: close at a cap, else see whether the next deadline moved. */
  private settle(slot: number, config: ClusterConfig): void {
    const { table } = this;
    const reason = teardownReason(config, table.requestsOf(slot), table.responsesOf(slot));
    if (reason === undefined) this.reschedule();
    else this.closeFlow(slot, reason);
  }

  private closeFlow(slot: number, reason: CloseReason): void {
    nextPhase('Established', reason);
    const { table } = this;
    const config = this.configs.get(table.configOf(slot));
    this.sources.subtract(config, table.clientOf(slot));
    this.backends.release(table.backendOf(slot));
    this.configs.release(table.configOf(slot));
    this.deadlines.remove(slot);
    table.remove(slot);
    this.outputs.push(FLOW_EVICTED);
    this.outputs.push({ kind: 'CloseFlow', flow: flowId(slot), reason });
    this.reschedule();
  }

  /** Arms the earliest deadline if it is not the armed one. There is no disarming (spec §2.8). */
  private reschedule(): void {
    const next = this.deadlines.earliest();
    if (next === this.armed) return;
    this.armed = next;
    if (next !== undefined) this.outputs.push({ kind: 'ArmTimer', at: next });
  }

  private onConfig(event: ConfigEvent): void {
    switch (event.kind) {
      case 'SetCluster':
        this.config = event.config;
        break;
      case 'SetMaxFlows':
        this.setMaxFlows(event.count);
        break;
      case 'SetMaxRxDatagramSize':
        this.maxRxDatagramSize = event.bytes;
        break;
      case 'Drain':
        this.draining = true;
        break;
      default:
        assertNever(event);
    }
  }

  private setMaxFlows(count: number): void {
    assertCount(count);
    this.cap = count;
    this.capHighWater = Math.max(this.capHighWater, count);
    if (count <= this.table.capacity) return;
    this.table.grow(count);
    this.deadlines.grow(count);
    this.sources.grow(count);
  }

  private drop(reason: DropReason): void {
    this.outputs.push(DROPS[reason]);
  }

  private refuse(told: readonly Output[]): void {
    for (const output of told) this.outputs.push(output);
  }

  private shed(metric: Output): void {
    this.outputs.push(metric);
    this.outputs.push(DROPS.Shed);
  }
}

function assertCount(maxFlows: number): void {
  assert(Number.isSafeInteger(maxFlows) && maxFlows >= 0, 'a cap on flows is a natural number');
}
