/**
 * The shadow model: what a flow machine must answer, written from the text of spec §2 with arrays and scans. It predicts the
 * whole output sequence of each input; nothing of the core's cleverness is in it to share a bug with.
 */
import type { CloseReason, DropReason, MetricEvent, Refusal } from '../../core/contract.ts';
import { HEADER_FILL, SIGNATURE, type DrawnCluster, type Payload } from './actions.ts';
import { awaited, newFlow, takesDatagram, type ModelFlow } from './model-flow.ts';
import { metric, refusedWith, type Expected } from './model-expected.ts';
import type { GuardModel } from './model-guards.ts';
import type { Prediction, SelectionModel } from './model-selection.ts';
import { hostOf, subnetOf } from './pools.ts';

/** One listener's flows. */
export class ShadowModel {
  readonly flows: (ModelFlow | undefined)[] = [];
  created = 0;
  evicted = 0;
  highestCap: number;
  /** The latest question put to the backends, for whoever compares it. */
  prediction: Prediction | undefined;
  /** Whether the port took part in it. */
  withPort = false;
  private readonly selection: SelectionModel;
  private readonly guards: GuardModel;
  private config: DrawnCluster;
  private cap: number;
  private maxRx: number;
  private draining = false;
  private armed: number | undefined;
  /** Ids given back; the latest is given out first. */
  private readonly free: number[] = [];
  private expected: Expected[] = [];

  constructor(
    config: DrawnCluster,
    cap: number,
    maxRx: number,
    selection: SelectionModel,
    guards: GuardModel,
  ) {
    this.guards = guards;
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

  clientDatagram(source: number, payload: Payload, now: number): Expected[] {
    this.expected = [];
    this.prediction = undefined;
    if (payload.length > this.maxRx) return this.drop('Truncated');
    if (this.config.cluster < 0) return this.drop('NoBackend');
    const id = this.idOf(source);
    const flow = this.flows[id];
    const isWanted = payload.length > 0 || flow?.config.terms?.forwardEmpty === true;
    if (!isWanted) return this.drop('Invalid');
    if (this.guards.denies(source)) return this.drop('Denied');
    if (flow !== undefined) return this.onKnownClient(id, flow, payload, now);
    return this.onUnknownClient(source, payload, now);
  }

  private onUnknownClient(source: number, payload: Payload, now: number): Expected[] {
    if (payload.length === 0) return this.drop('Invalid');
    const refusal = this.guards.refusalAt(now);
    if (refusal !== undefined) return this.refuse(refusal);
    if (this.draining) return this.drop('Shed');
    if (this.atSourceLimit(source)) return this.shed('FlowShedSourceLimit');
    if (this.flowCount >= this.cap) return this.shed('FlowShed');
    const backend = this.ask(source, this.config, now);
    if (backend < 0) return this.drop('NoBackend');
    this.admit(source, backend, payload, now);
    return this.expected;
  }

  /** Where only the first datagram has our header, a later one that begins like a header is refused. */
  private onKnownClient(id: number, flow: ModelFlow, payload: Payload, now: number): Expected[] {
    const { sendProxyProtocol, everyDatagram } = flow.config;
    const firstOnly = sendProxyProtocol && !everyDatagram;
    if (firstOnly && payload.fill === HEADER_FILL && payload.length >= SIGNATURE.length) {
      this.expected.push(metric('HeaderRefused', 0));
      return this.drop('Invalid');
    }
    if (!takesDatagram(flow, now)) return this.drop('DatagramRate');
    const fate = this.guards.fateOf(flow.backend, this.selection.isLost(flow.backend));
    if (fate === 'rebind') return this.rebind(id, flow, payload, now);
    if (fate === 'close') return this.reopen(id, flow, payload, now);
    this.forward(id, flow, payload, now);
    return this.expected;
  }

  /** Loads follow the outputs of a call, so the question it ends in still counts the flow that it closed. */
  private reopen(id: number, flow: ModelFlow, payload: Payload, now: number): Expected[] {
    this.close(id, 'BackendLost');
    this.selection.opened(flow.backend);
    this.onUnknownClient(flow.source, payload, now);
    this.selection.closed(flow.backend);
    return this.expected;
  }

  private rebind(id: number, flow: ModelFlow, payload: Payload, now: number): Expected[] {
    const backend = this.ask(flow.source, flow.config, now);
    if (backend < 0) return this.drop('NoBackend');
    if (backend !== flow.backend) {
      this.selection.closed(flow.backend);
      this.selection.opened(backend);
      flow.backend = backend;
      flow.headerDue = flow.config.sendProxyProtocol;
      this.expected.push(metric('FlowRebound', 0), { kind: 'OpenUpstream', flow: id, backend });
    }
    this.forward(id, flow, payload, now);
    return this.expected;
  }

  backendDatagram(id: number, payload: Payload, now: number): Expected[] {
    this.expected = [];
    const flow = this.flows[id];
    if (flow === undefined) return this.drop('UnknownFlow');
    if (payload.length > flow.credit) return this.drop('Amplification');
    flow.credit -= payload.length;
    flow.responses += 1;
    if (flow.done === undefined) flow.deadline = now + flow.config.backMs * 1_000;
    this.expected.push(metric('DatagramOut', payload.length));
    this.expected.push({ kind: 'SendToClient', flow: id, source: flow.source });
    this.afterDatagram(id, flow, now);
    return this.expected;
  }

  timeout(now: number): Expected[] {
    this.expected = [];
    this.armed = undefined;
    for (let id = 0; id < this.flows.length; id += 1) {
      const flow = this.flows[id];
      if (flow !== undefined && flow.deadline <= now) this.close(id, flow.done ?? 'Idle');
    }
    this.reschedule();
    return this.expected;
  }

  abort(id: number, reason: CloseReason): Expected[] {
    this.expected = [];
    if (this.flows[id] !== undefined) this.close(id, reason);
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

  /** The ids of the flows on a backend. */
  flowsOn(backend: number): number[] {
    return [...this.flows.keys()].filter((id) => this.flows[id]?.backend === backend);
  }

  /** The flow with this serial. */
  flowOf(serial: number): ModelFlow | undefined {
    return this.flows.find((flow) => flow?.serial === serial);
  }

  /** The flow that takes the datagrams of a client. */
  private idOf(source: number): number {
    for (let id = 0; id < this.flows.length; id += 1) {
      const flow = this.flows[id];
      if (flow?.source === source && !flow.lingers) return id;
    }
    return -1;
  }

  private ask(source: number, config: DrawnCluster, now: number): number {
    this.withPort = config.affinityWithPort;
    this.prediction = this.selection.predict(source, this.withPort, now);
    return this.prediction.backend;
  }

  private admit(source: number, backend: number, payload: Payload, now: number): void {
    const id = this.free.pop() ?? this.flows.length;
    this.created += 1;
    const { config, created: serial } = this;
    const flow = newFlow({ source, backend, config, serial }, payload.length, now);
    this.flows[id] = flow;
    this.selection.opened(backend);
    this.expected.push(metric('FlowCreated', 0), { kind: 'OpenUpstream', flow: id, backend });
    this.forward(id, flow, payload, now);
  }

  private forward(id: number, flow: ModelFlow, payload: Payload, now: number): void {
    const { config, backend, source, headerDue: header } = flow;
    flow.requests += 1;
    if (flow.requests === 2) flow.credit = Infinity;
    if (!config.everyDatagram) flow.headerDue = false;
    flow.deadline = now + config.frontMs * 1_000;
    this.expected.push(metric('DatagramIn', payload.length));
    this.expected.push({ kind: 'SendToBackend', flow: id, backend, source, header });
    this.selection.forwarded(backend, now);
    this.afterDatagram(id, flow, now);
  }

  private afterDatagram(id: number, flow: ModelFlow, now: number): void {
    const { requests, terms } = flow.config;
    const left = awaited(flow);
    if (flow.done !== undefined) return this.reschedule();
    if (left !== undefined && left <= 0) {
      return this.finish(id, flow, flow.lingers ? 'RequestsReached' : 'ResponsesReached', now);
    }
    if (requests !== 0 && flow.requests >= requests) {
      if (terms?.requestsLinger !== true) return this.close(id, 'RequestsReached');
      flow.lingers = true;
    }
    return this.reschedule();
  }

  /** Every reply came: the flow closes, or returns late ones for a while. */
  private finish(id: number, flow: ModelFlow, reason: CloseReason, now: number): void {
    const graceMs = flow.config.terms?.graceMs ?? 0;
    if (graceMs === 0) return this.close(id, reason);
    flow.lingers = true;
    flow.done = reason;
    flow.deadline = now + graceMs * 1_000;
    return this.reschedule();
  }

  private close(id: number, reason: CloseReason): void {
    const backend = this.flows[id]?.backend ?? -1;
    this.flows[id] = undefined;
    this.free.push(id);
    this.selection.closed(backend);
    this.evicted += 1;
    this.expected.push(metric('FlowEvicted', 0), { kind: 'CloseFlow', flow: id, reason });
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

  private refuse(refusal: Refusal): Expected[] {
    this.expected.push(...refusedWith(refusal));
    return this.expected;
  }

  private drop(reason: DropReason): Expected[] {
    this.expected.push({ kind: 'Drop', reason });
    return this.expected;
  }

  private shed(event: MetricEvent['kind']): Expected[] {
    this.expected.push(metric(event, 0));
    return this.drop('Shed');
  }
}
