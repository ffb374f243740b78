/**
 * UdpManager: the flow machine of one listener, exactly the contract of spec §2. It performs nothing: inputs go in, outputs
 * come out of one queue, time is an argument. After each call the queue is drained before the next.
 */
import { isUnanswerable, type Address } from './address.ts';
import { creditAfterReply, firstCredit, mayReply, VALIDATED } from './amplification.ts';
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
  type ManagerTrain,
  type Output,
} from './contract.ts';
import type { Deadlines } from './deadlines.ts';
import type { UdpFlow } from './flow.ts';
import type { FlowRates } from './flow-rates.ts';
import { nextSlotOn, slotOfSerial } from './flow-scans.ts';
import type { FlowTable } from './flow-table.ts';
import type { Hash64 } from './hash.ts';
import { looksLikeProxyHeader } from './hostile.ts';
import type { TableSeed } from './keyed-hash.ts';
import { FlowTrains } from './flow-trains.ts';
import { LiveFlows } from './live-flows.ts';
import { affinityKey } from './placement.ts';
import {
  DROPS,
  FLOW_SHED,
  FLOW_SHED_SOURCE_LIMIT,
  REFUSED,
  REFUSED_HEADER,
} from './manager-outputs.ts';
import { OutputQueue } from './output-queue.ts';
import type { Registry } from './registry.ts';
import type { SourceLimits } from './source-limits.ts';
import type { Instant } from './time.ts';

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
  /** Flows of an earlier machine, at most: numbers of these go on behind them. */
  readonly flowsBefore?: number;
}

export class UdpManager {
  /** Open to whole-state checks (verify.ts); nobody else reads or writes them. */
  readonly table: FlowTable;
  readonly deadlines: Deadlines;
  readonly sources: SourceLimits;
  readonly backends: Registry<Backend>;
  readonly configs: Registry<ClusterConfig>;

  private readonly flows: LiveFlows;
  private readonly rates: FlowRates;
  private readonly trains: FlowTrains;
  private readonly placementSeed: Hash64;
  private config: ClusterConfig;
  private cap: number;
  private capHighWater: number;
  private maxRxDatagramSize: number;
  private draining = false;
  private readonly outputs = new OutputQueue<Output>();

  constructor(options: ManagerOptions) {
    assertCount(options.maxFlows);
    const capacity = Math.max(1, options.maxFlows);
    this.flows = new LiveFlows(capacity, options, this.outputs);
    this.table = this.flows.table;
    this.deadlines = this.flows.deadlines;
    this.sources = this.flows.sources;
    this.backends = this.flows.backends;
    this.configs = this.flows.configs;
    this.rates = this.flows.rates;
    this.trains = new FlowTrains(this.flows, this.outputs);
    this.flows.expect(options.config);
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
   * Takes all datagrams of a train at once, if each of them would go the same way and change nothing for the next: a live flow
   * whose cluster counts none of them. False: nothing has happened, and they are inputs one by one. Calls as for `handleInput`.
   */
  handleTrain(train: ManagerTrain, now: Instant): boolean {
    this.begin(now);
    return this.trains.take(train, this.config, this.maxRxDatagramSize, now);
  }

  /**
   * The timer fired, perhaps early. Closes every flow whose deadline is not after `now`, in order of id, and arms the next
   * deadline anew even when nothing was due: the delivered timer is gone (spec §2.7).
   */
  handleTimeout(now: Instant): void {
    this.begin(now);
    this.flows.closeDue(now);
  }

  /** Closes one flow for the embedder, which could not serve it. Any id may come; one without a flow is ignored. */
  abortFlow(flow: FlowId, now: Instant, reason: CloseReason = 'Aborted'): void {
    this.begin(now);
    if (this.table.isLive(flow)) this.flows.close(flow, reason);
  }

  /** No way leads out of the socket of a live flow: it gets another, for the same backend. Any id may come. */
  renewUpstream(flow: FlowId, now: Instant): void {
    this.begin(now);
    if (this.table.isLive(flow)) this.flows.renewUpstream(flow);
  }

  /** Closes every flow, in order of id. Does not set draining. */
  closeAll(now: Instant): void {
    this.begin(now);
    for (let slot = 0; slot < this.table.highWater; slot += 1) {
      if (this.table.isLive(slot)) this.flows.close(slot, 'Drain');
    }
  }

  /** The next output, first in first out; undefined when none is left. */
  pollOutput(): Output | undefined {
    return this.outputs.poll();
  }

  /** When `handleTimeout` wants to be called: the earliest idle deadline; undefined without live flows. */
  pollTimeout(): Instant | undefined {
    return this.flows.armed;
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
    return this.table.isLive(id) ? this.flows.view(id) : undefined;
  }

  /** The live flow with this serial number. A scan of all flows. */
  slotOfSerial(serial: number): FlowId | undefined {
    const slot = slotOfSerial(this.table, serial);
    return slot === undefined ? undefined : flowId(slot);
  }

  /** The first flow from slot `from` on that is on this backend, the very object. A scan; it allocates nothing. */
  nextFlowOn(backend: Backend, from: number): FlowId | undefined {
    const number = this.backends.find(backend);
    const slot = number === undefined ? undefined : nextSlotOn(this.table, number, from);
    return slot === undefined ? undefined : flowId(slot);
  }

  private begin(now: Instant): void {
    assert(this.pendingOutputs === 0, 'outputs are drained before the next call');
    assert(now >= this.flows.now, 'time does not go back');
    this.flows.now = now;
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
    if (isUnanswerable(src)) return this.drop('Invalid');
    if (payload.length === 0 && !this.takesEmpty(src, local)) return this.drop('Invalid');
    if (backends.denies?.(src) === true) return this.drop('Denied');
    const hash = this.table.hashOf(src, local);
    const slot = this.table.find(hash, src, local);
    if (slot === undefined) return this.onUnknownClient(hash, src, local, payload, backends, now);
    if (this.onKnownClient(slot, payload, backends, now)) return undefined;
    if (payload.length === 0) return this.drop('Invalid');
    return this.onUnknownClient(hash, src, local, payload, backends, now);
  }

  /** Whether this client has a flow on which empty datagrams go on. */
  private takesEmpty(src: Address, local: Address | undefined): boolean {
    const slot = this.table.find(this.table.hashOf(src, local), src, local);
    return slot !== undefined && this.configs.get(this.table.configOf(slot)).forwardEmptyDatagrams;
  }

  private onUnknownClient(
    hash: number,
    src: Address,
    local: Address | undefined,
    payload: Uint8Array,
    backends: BackendSource,
    now: Instant,
  ): void {
    const refusal = backends.refuses?.(src, local, now);
    if (refusal !== undefined) return this.refuse(REFUSED[refusal]);
    if (this.draining) return this.drop('Shed');
    if (this.sources.reached(this.config, src)) return this.shed(FLOW_SHED_SOURCE_LIMIT);
    if (this.table.count >= this.cap) return this.shed(FLOW_SHED);
    const key = affinityKey(this.placementSeed, src, this.config.affinityWithPort);
    const backend = backends.select(key, now);
    if (backend === undefined) return this.drop('NoBackend');
    const slot = this.flows.admit(hash, src, local, backend, this.config, now);
    this.table.setCredit(slot, firstCredit(this.config.amplification, payload.length));
    return this.flows.forward(slot, this.config, payload, now);
  }

  /**
   * False when the flow closed instead, for its backend is lost: then the client is an unknown one. Where only the first
   * datagram carries our PROXY header, a later one that begins like a header would be believed: it is refused (decisions
   * table "header injection").
   */
  private onKnownClient(
    slot: number,
    payload: Uint8Array,
    backends: BackendSource,
    now: Instant,
  ): boolean {
    const config = this.configs.get(this.table.configOf(slot));
    const firstOnly = config.sendProxyProtocol && !config.proxyProtocolEveryDatagram;
    if (firstOnly && config.rejectClientHeader && looksLikeProxyHeader(payload)) {
      this.refuse(REFUSED_HEADER);
      return true;
    }
    if (config.datagramsPerSecond !== 0 && !this.rates.take(slot, config, now)) {
      this.drop('DatagramRate');
      return true;
    }
    const fate = backends.fateOf?.(this.backends.get(this.table.backendOf(slot))) ?? 'keep';
    if (fate === 'close') {
      this.flows.close(slot, 'BackendLost');
      return false;
    }
    if (fate === 'rebind' && !this.rebind(slot, config, backends, now)) {
      this.drop('NoBackend');
      return true;
    }
    this.table.setCredit(slot, VALIDATED);
    this.flows.forward(slot, config, payload, now);
    return true;
  }

  /** Whether a flow whose backend is lost can go on: with another one, or with the same where selection finds no better. */
  private rebind(
    slot: number,
    config: ClusterConfig,
    backends: BackendSource,
    now: Instant,
  ): boolean {
    const client = this.table.clientOf(slot);
    const key = affinityKey(this.placementSeed, client, config.affinityWithPort);
    const backend = backends.select(key, now);
    if (backend === undefined) return false;
    this.flows.rebind(slot, config, backend);
    return true;
  }

  private onBackendDatagram(flow: FlowId, payload: Uint8Array, now: Instant): void {
    if (payload.length > DATAGRAM_BYTES_MAX) return this.drop('Truncated');
    if (!this.table.isLive(flow)) return this.drop('UnknownFlow');
    const config = this.configs.get(this.table.configOf(flow));
    const credit = this.table.creditOf(flow);
    if (!mayReply(credit, payload.length)) return this.drop('Amplification');
    this.table.setCredit(flow, creditAfterReply(credit, payload.length));
    return this.flows.reply(flow, config, payload, now);
  }

  private onConfig(event: ConfigEvent): void {
    switch (event.kind) {
      case 'SetCluster':
        this.config = event.config;
        this.flows.expect(event.config);
        break;
      case 'SetMaxFlows':
        this.setMaxFlows(event.count);
        break;
      case 'SetMaxRxDatagramSize':
        this.maxRxDatagramSize = event.bytes;
        break;
      case 'TellEnds':
        this.flows.endsOneIn = event.oneIn;
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
    if (count > this.table.capacity) this.flows.grow(count);
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
