/**
 * The flows of one machine from birth to end: what is held for each, what a datagram in either direction does to it, and when
 * it lingers or closes. Who gets one and which datagrams pass is decided in manager.ts.
 */
import { sameAddress, type Address } from './address.ts';
import { assert } from './assert.ts';
import { flowId, type FlowId } from './brand.ts';
import type { Backend, CloseReason, ClusterConfig, Output } from './contract.ts';
import { Deadlines } from './deadlines.ts';
import { nextPhase, teardownReason, type LingerEnd, type UdpFlow } from './flow.ts';
import { isSampled } from './flow-log.ts';
import { FlowRates } from './flow-rates.ts';
import { FlowTable } from './flow-table.ts';
import type { TableSeed } from './keyed-hash.ts';
import {
  DATAGRAM_IN,
  DATAGRAM_OUT,
  FLOW_CREATED,
  FLOW_EVICTED,
  FLOW_REBOUND,
} from './manager-outputs.ts';
import type { OutputQueue } from './output-queue.ts';
import { dgramHeader } from './proxy-protocol.ts';
import { Registry } from './registry.ts';
import { SourceLimits } from './source-limits.ts';
import { instant, until, type Instant } from './time.ts';

export interface LiveFlowsOptions {
  /** Secret: lays out the tables, without effect on any output. */
  readonly tableSeed: TableSeed;
  /** Whether the local address is part of the flow key: on a wildcard listener. */
  readonly keyedByLocal?: boolean;
  /** Numbers that were given to flows before. */
  readonly flowsBefore?: number;
}

export class LiveFlows {
  readonly table: FlowTable;
  readonly deadlines: Deadlines;
  readonly sources: SourceLimits;
  readonly rates: FlowRates;
  readonly backends: Registry<Backend> = new Registry();
  readonly configs: Registry<ClusterConfig> = new Registry();
  /** The deadline that the timer was asked for last, unless it has fired since. */
  armed: Instant | undefined;
  /** When the call that is under way was made. */
  now: Instant = instant(0);
  /** The end of one flow in so many is told; 0: of none. */
  endsOneIn = 0;
  private readonly outputs: OutputQueue<Output>;

  constructor(capacity: number, options: LiveFlowsOptions, outputs: OutputQueue<Output>) {
    const { tableSeed, keyedByLocal, flowsBefore } = options;
    this.table = new FlowTable(capacity, tableSeed, keyedByLocal ?? false, flowsBefore);
    this.deadlines = new Deadlines(capacity);
    this.sources = new SourceLimits(capacity, tableSeed);
    this.rates = new FlowRates(capacity);
    this.outputs = outputs;
  }

  /** Room for more flows. Takes time in proportion to them: not for the datagram path. */
  grow(capacity: number): void {
    this.table.grow(capacity);
    this.deadlines.grow(capacity);
    this.sources.grow(capacity);
    this.rates.grow(capacity);
  }

  /**
   * Flows will be admitted under this configuration. The first that limits sources takes time in proportion to the flows,
   * for each is counted as of the configuration that it was admitted under.
   */
  expect(config: ClusterConfig): void {
    const { table, configs, sources } = this;
    this.rates.expect(config);
    if (!sources.expect(config)) return;
    for (let slot = 0; slot < table.highWater; slot += 1) {
      if (table.isLive(slot)) sources.add(configs.get(table.configOf(slot)), table.clientOf(slot));
    }
  }

  /** A new flow, established on its backend, with nothing forwarded yet. */
  admit(
    hash: number,
    src: Address,
    local: Address | undefined,
    backend: Backend,
    config: ClusterConfig,
    now: Instant,
  ): number {
    const slot = this.table.insert(hash, src, local);
    this.table.setUpstream(slot, this.backends.acquire(backend), this.configs.acquire(config));
    this.table.setHeaderDue(slot, config.sendProxyProtocol);
    this.sources.add(config, src);
    this.deadlines.add(slot, now, config.frontTimeout);
    if (config.datagramsPerSecond !== 0) this.rates.begin(slot, config, now);
    this.outputs.push(FLOW_CREATED);
    this.outputs.push({ kind: 'OpenUpstream', flow: flowId(slot), backend });
    return slot;
  }

  /** One client datagram on a live flow (spec §2.3), the admission datagram included. */
  forward(slot: number, config: ClusterConfig, payload: Uint8Array, now: Instant): void {
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
    this.settle(slot, config, now);
  }

  /** One backend datagram that returns to the client of a live flow. */
  reply(flow: FlowId, config: ClusterConfig, payload: Uint8Array, now: Instant): void {
    this.table.countResponse(flow);
    if (!this.table.isInGrace(flow)) this.deadlines.touch(flow, now, config.backTimeout);
    this.outputs.push(DATAGRAM_OUT.of(payload.length));
    this.outputs.push({
      kind: 'SendToClient',
      flow,
      dst: this.table.clientOf(flow),
      from: this.table.localOf(flow),
      payload,
    });
    this.settle(flow, config, now);
  }

  /**
   * A flow whose backend is lost goes on with this one, unless it is the same. Its id, counts and configuration stay; the
   * new backend has not seen its PROXY header.
   */
  rebind(slot: number, config: ClusterConfig, backend: Backend): void {
    const { table } = this;
    const number = table.backendOf(slot);
    const lost = this.backends.get(number);
    if (backend.id === lost.id && sameAddress(backend.address, lost.address)) return;
    nextPhase('Established', 'Rebound');
    table.setUpstream(slot, this.backends.acquire(backend), table.configOf(slot));
    this.backends.release(number);
    table.setHeaderDue(slot, config.sendProxyProtocol);
    this.outputs.push(FLOW_REBOUND);
    this.outputs.push({ kind: 'OpenUpstream', flow: flowId(slot), backend });
  }

  /**
   * Another socket for the backend of a flow that still sends: to the backend it is a stranger's, so the PROXY header is due
   * again.
   */
  renewUpstream(slot: number): void {
    const { table } = this;
    if (table.isLingering(slot)) return;
    const config = this.configs.get(table.configOf(slot));
    table.setHeaderDue(slot, config.sendProxyProtocol);
    const backend = this.backends.get(table.backendOf(slot));
    this.outputs.push({ kind: 'OpenUpstream', flow: flowId(slot), backend });
  }

  /** Ends a live flow. */
  close(slot: number, reason: CloseReason): void {
    nextPhase(this.phaseOf(slot), reason);
    const was = this.endsOneIn === 0 ? undefined : this.sampled(slot);
    const { table } = this;
    const config = this.configs.get(table.configOf(slot));
    this.sources.subtract(config, table.clientOf(slot));
    this.backends.release(table.backendOf(slot));
    this.configs.release(table.configOf(slot));
    const lasted = until(this.deadlines.since(slot), this.now);
    this.deadlines.remove(slot);
    table.remove(slot);
    this.outputs.push(FLOW_EVICTED);
    this.outputs.push({ kind: 'CloseFlow', flow: flowId(slot), reason, lasted, was });
    this.reschedule();
  }

  /**
   * The timer fired, perhaps early: closes every flow whose deadline is not after `now`, in order of id, and arms the next
   * deadline anew even when nothing was due: the delivered timer is gone (spec §2.7).
   */
  closeDue(now: Instant): void {
    this.armed = undefined;
    const due: number[] = [];
    this.deadlines.dueBy(now, due);
    due.sort((one, other) => one - other);
    for (const slot of due) this.close(slot, this.table.endOf(slot));
    this.reschedule();
    assert(this.armed === undefined || this.armed > now, 'the next deadline is after this one');
  }

  /** A copy of what is known of a live flow. */
  view(id: number): UdpFlow {
    const { table } = this;
    return {
      serial: table.serialOf(id),
      client: table.clientOf(id),
      local: table.localOf(id),
      backend: this.backends.get(table.backendOf(id)),
      phase: this.phaseOf(id),
      createdAt: this.deadlines.since(id),
      config: this.configs.get(table.configOf(id)),
      requestsSeen: table.requestsOf(id),
      responsesSeen: table.responsesOf(id),
      idleDeadline: this.deadlines.of(id),
    };
  }

  /** Arms the earliest deadline if it is not the armed one. There is no disarming (spec §2.8). */
  reschedule(): void {
    const next = this.deadlines.earliest();
    if (next === this.armed) return;
    this.armed = next;
    if (next !== undefined) this.outputs.push({ kind: 'ArmTimer', at: next });
  }

  /** What is known of a flow whose end is to be told. */
  private sampled(slot: number): UdpFlow | undefined {
    return isSampled(this.table.serialOf(slot), this.endsOneIn) ? this.view(slot) : undefined;
  }

  /** The PROXY header this datagram carries, if one is due (spec §4). */
  private prefixFor(slot: number, config: ClusterConfig, backend: Backend): Uint8Array | undefined {
    if (!this.table.headerDue(slot)) return undefined;
    if (!config.proxyProtocolEveryDatagram) this.table.setHeaderDue(slot, false);
    return dgramHeader(this.table.clientOf(slot), backend.address);
  }

  /** After a counted datagram: see to an exhausted cap, else whether the next deadline moved. */
  private settle(slot: number, config: ClusterConfig, now: Instant): void {
    const { table } = this;
    const reason = teardownReason(config, table.requestsOf(slot), table.responsesOf(slot));
    if (reason === undefined || table.isInGrace(slot)) this.reschedule();
    else if (reason === 'RequestsReached' && config.requestsLinger) this.awaitReplies(slot);
    else this.finish(slot, config, reason, now);
  }

  /** The request cap is exhausted, and replies are still to come: only they pass from now on. */
  private awaitReplies(slot: number): void {
    if (!this.table.isLingering(slot)) {
      nextPhase('Established', 'RepliesAwaited');
      this.table.linger(slot, 'Idle');
    }
    this.reschedule();
  }

  /** Closes a flow at its cap, now, or when late replies have had their time. */
  private finish(slot: number, config: ClusterConfig, cap: LingerEnd, now: Instant): void {
    const phase = this.phaseOf(slot);
    const reason = phase === 'Lingering' ? 'RequestsReached' : cap;
    if (cap === 'RequestsReached' || config.lateReplyGrace === 0) {
      return this.close(slot, reason);
    }
    nextPhase(phase, 'RepliesComplete');
    this.table.linger(slot, reason);
    this.deadlines.touch(slot, now, config.lateReplyGrace);
    return this.reschedule();
  }

  private phaseOf(slot: number): 'Established' | 'Lingering' {
    return this.table.isLingering(slot) ? 'Lingering' : 'Established';
  }
}
