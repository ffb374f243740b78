/**
 * The shadow model: what a flow machine must answer, written from the text of spec §2 with arrays and scans. It predicts the
 * whole output sequence of each input; nothing of the core's cleverness is in it to share a bug with.
 */
import type { CloseReason, DropReason, MetricEvent } from '../../core/contract.ts';
import { HEADER_FILL, SIGNATURE, type DrawnCluster, type Payload } from './actions.ts';
import type { Prediction, SelectionModel } from './model-selection.ts';
import { hostOf, subnetOf } from './pools.ts';

/** An expected output, by pool places instead of addresses. */
export type Expected =
  | { readonly kind: 'OpenUpstream'; readonly flow: number; readonly backend: number }
  | {
      readonly kind: 'SendToBackend';
      readonly flow: number;
      readonly backend: number;
      readonly source: number;
      readonly header: boolean;
    }
  | { readonly kind: 'SendToClient'; readonly flow: number; readonly source: number }
  | { readonly kind: 'ArmTimer'; readonly at: number }
  | { readonly kind: 'Metric'; readonly event: MetricEvent['kind']; readonly bytes: number }
  | { readonly kind: 'CloseFlow'; readonly flow: number; readonly reason: CloseReason }
  | { readonly kind: 'Drop'; readonly reason: DropReason };

interface ModelFlow {
  readonly source: number;
  readonly backend: number;
  readonly config: DrawnCluster;
  requests: number;
  responses: number;
  deadline: number;
}

/** One listener's flows. */
export class ShadowModel {
  readonly flows: (ModelFlow | undefined)[] = [];
  created = 0;
  evicted = 0;
  highestCap: number;
  /** The latest question put to the backends, for whoever compares it. */
  prediction: Prediction | undefined;
  private readonly selection: SelectionModel;
  private config: DrawnCluster;
  private cap: number;
  private maxRx: number;
  private draining = false;
  private armed: number | undefined;
  /** Ids given back; the latest is given out first. */
  private readonly free: number[] = [];
  private expected: Expected[] = [];

  constructor(config: DrawnCluster, cap: number, maxRx: number, selection: SelectionModel) {
    this.config = config;
    this.cap = cap;
    this.highestCap = cap;
    this.maxRx = maxRx;
    this.selection = selection;
  }

  get flowCount(): number {
    let count = 0;
    for (const flow of this.flows) if (flow !== undefined) count += 1;
    return count;
  }

  get withPort(): boolean {
    return this.config.affinityWithPort;
  }

  clientDatagram(source: number, payload: Payload, now: number): Expected[] {
    this.expected = [];
    this.prediction = undefined;
    if (payload.length > this.maxRx) return this.drop('Truncated');
    if (this.config.cluster < 0) return this.drop('NoBackend');
    if (payload.length === 0) return this.drop('Invalid');
    const known = this.flowOf(source);
    if (known >= 0) return this.onKnownClient(known, payload, now);
    if (this.draining) return this.drop('Shed');
    if (this.atSourceLimit(source)) return this.shed('FlowShedSourceLimit');
    if (this.flowCount >= this.cap) return this.shed('FlowShed');
    this.prediction = this.selection.predict(source, this.config.affinityWithPort, now);
    const { backend } = this.prediction;
    if (backend < 0) return this.drop('NoBackend');
    this.admit(source, backend, payload, now);
    return this.expected;
  }

  /** Where only the first datagram has our header, a later one that begins like a header is refused. */
  private onKnownClient(id: number, payload: Payload, now: number): Expected[] {
    const config = this.flows[id]?.config;
    const firstOnly = config?.sendProxyProtocol === true && !config.everyDatagram;
    if (firstOnly && payload.fill === HEADER_FILL && payload.length >= SIGNATURE.length) {
      this.metric('HeaderRefused', 0);
      return this.drop('Invalid');
    }
    this.forward(id, payload, now);
    return this.expected;
  }

  backendDatagram(id: number, payload: Payload, now: number): Expected[] {
    this.expected = [];
    const flow = this.flows[id];
    if (flow === undefined) return this.drop('UnknownFlow');
    flow.responses += 1;
    flow.deadline = now + flow.config.backMs * 1_000;
    this.metric('DatagramOut', payload.length);
    this.expected.push({ kind: 'SendToClient', flow: id, source: flow.source });
    this.afterDatagram(id, flow);
    return this.expected;
  }

  timeout(now: number): Expected[] {
    this.expected = [];
    this.armed = undefined;
    for (let id = 0; id < this.flows.length; id += 1) {
      if ((this.flows[id]?.deadline ?? now + 1) <= now) this.close(id, 'Idle');
    }
    this.reschedule();
    return this.expected;
  }

  abort(id: number): Expected[] {
    this.expected = [];
    if (this.flows[id] !== undefined) this.close(id, 'Aborted');
    return this.expected;
  }

  closeAll(): Expected[] {
    this.expected = [];
    for (let id = 0; id < this.flows.length; id += 1) {
      if (this.flows[id] !== undefined) this.close(id, 'Drain');
    }
    return this.expected;
  }

  setCluster(config: DrawnCluster): void {
    this.config = config;
  }

  setMaxFlows(count: number): void {
    this.cap = count;
    this.highestCap = Math.max(this.highestCap, count);
  }

  setMaxRx(bytes: number): void {
    this.maxRx = bytes;
  }

  drain(): void {
    this.draining = true;
  }

  private flowOf(source: number): number {
    for (let id = 0; id < this.flows.length; id += 1) {
      if (this.flows[id]?.source === source) return id;
    }
    return -1;
  }

  private admit(source: number, backend: number, payload: Payload, now: number): void {
    const id = this.free.pop() ?? this.flows.length;
    this.flows[id] = {
      source,
      backend,
      config: this.config,
      requests: 0,
      responses: 0,
      deadline: 0,
    };
    this.selection.opened(backend);
    this.created += 1;
    this.metric('FlowCreated', 0);
    this.expected.push({ kind: 'OpenUpstream', flow: id, backend });
    this.forward(id, payload, now);
  }

  private forward(id: number, payload: Payload, now: number): void {
    const flow = this.flows[id];
    if (flow === undefined) return;
    const { config, backend, source } = flow;
    flow.requests += 1;
    flow.deadline = now + config.frontMs * 1_000;
    const header = config.sendProxyProtocol && (config.everyDatagram || flow.requests === 1);
    this.metric('DatagramIn', payload.length);
    this.expected.push({ kind: 'SendToBackend', flow: id, backend, source, header });
    this.selection.forwarded(backend, now);
    this.afterDatagram(id, flow);
  }

  private afterDatagram(id: number, flow: ModelFlow): void {
    const { responses, requests } = flow.config;
    if (responses !== 0 && flow.responses >= responses) this.close(id, 'ResponsesReached');
    else if (requests !== 0 && flow.requests >= requests) this.close(id, 'RequestsReached');
    else this.reschedule();
  }

  private close(id: number, reason: CloseReason): void {
    const backend = this.flows[id]?.backend ?? -1;
    this.flows[id] = undefined;
    this.free.push(id);
    this.selection.closed(backend);
    this.evicted += 1;
    this.metric('FlowEvicted', 0);
    this.expected.push({ kind: 'CloseFlow', flow: id, reason });
    this.reschedule();
  }

  private reschedule(): void {
    let earliest: number | undefined;
    for (const flow of this.flows) {
      if (flow !== undefined && (earliest === undefined || flow.deadline < earliest)) {
        earliest = flow.deadline;
      }
    }
    if (earliest === this.armed) return;
    this.armed = earliest;
    if (earliest !== undefined) this.expected.push({ kind: 'ArmTimer', at: earliest });
  }

  private atSourceLimit(source: number): boolean {
    const { cluster, perIp, perSubnet } = this.config;
    let ofAddress = 0;
    let ofSubnet = 0;
    for (const flow of this.flows) {
      if (flow?.config.cluster !== cluster) continue;
      if (subnetOf(flow.source) === subnetOf(source)) ofSubnet += 1;
      if (hostOf(flow.source) === hostOf(source)) ofAddress += 1;
    }
    return (perIp !== 0 && ofAddress >= perIp) || (perSubnet !== 0 && ofSubnet >= perSubnet);
  }

  private metric(event: MetricEvent['kind'], bytes: number): void {
    this.expected.push({ kind: 'Metric', event, bytes });
  }

  private drop(reason: DropReason): Expected[] {
    this.expected.push({ kind: 'Drop', reason });
    return this.expected;
  }

  private shed(event: MetricEvent['kind']): Expected[] {
    this.metric(event, 0);
    return this.drop('Shed');
  }
}
