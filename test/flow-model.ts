/**
 * What a flow machine should answer, told naively from spec §2: arrays, scans and strings, nothing of the core but its types
 * and the makers of branded numbers. It predicts the whole output sequence of each call.
 */
import type { Address } from '../core/address.ts';
import { flowId } from '../core/brand.ts';
import type {
  Backend,
  CloseReason,
  ClusterConfig,
  ConfigEvent,
  DropReason,
  MetricEvent,
  Output,
  Refusal,
} from '../core/contract.ts';
import { instant, microseconds } from '../core/time.ts';
import type { Action } from './flow-rig.ts';

export interface ModelFlow {
  readonly id: number;
  readonly serial: number;
  readonly born: number;
  readonly client: Address;
  readonly local: Address | undefined;
  backend: Backend;
  readonly config: ClusterConfig;
  requests: number;
  responses: number;
  deadline: number;
  headerDue: boolean;
  /** Whether it lingers; then why it closes at its deadline, and whether all its replies are there. */
  lingers: boolean;
  end: CloseReason;
  /** Reply bytes that are left; no number once the client has spoken twice, or without a limit. */
  credit: number | undefined;
  /** Microseconds that its rate has granted it and that are not spent, as they were at `granted`. */
  allowance: number;
  granted: number;
}

export interface ModelOptions {
  readonly config: ClusterConfig;
  readonly maxFlows: number;
  readonly maxRxDatagramSize: number;
  readonly keyedByLocal: boolean;
}

type ClientAction = Extract<Action, { readonly kind: 'client' }>;

const RETURN_BYTES_MAX = 65_507;

export class FlowModel {
  flows: ModelFlow[] = [];
  armed: number | undefined;
  draining = false;
  /** How often a backend should have been asked for. */
  selections = 0;
  private config: ClusterConfig;
  private cap: number;
  private maxRx: number;
  private readonly keyedByLocal: boolean;
  /** Ids that were used and are free, in the order in which they became so. */
  private readonly freed: number[] = [];
  private idsUsed = 0;
  private serials = 0;
  private outputs: Output[] = [];
  private now = 0;

  constructor(options: ModelOptions) {
    this.config = options.config;
    this.cap = options.maxFlows;
    this.maxRx = options.maxRxDatagramSize;
    this.keyedByLocal = options.keyedByLocal;
  }

  /** The outputs of `action` at `now`, in microseconds. */
  perform(action: Action, now: number): Output[] {
    this.outputs = [];
    this.now = now;
    switch (action.kind) {
      case 'client':
        this.onClient(action, now);
        break;
      case 'backend':
        this.onBackend(action.flow, action.payload, now);
        break;
      case 'config':
        this.onConfig(action.event);
        break;
      case 'timeout':
        this.armed = undefined;
        for (const flow of this.byId()) if (flow.deadline <= now) this.close(flow, flow.end);
        this.reschedule();
        break;
      case 'abort':
        for (const flow of this.flows.filter(({ id }) => id === action.flow)) {
          this.close(flow, action.reason);
        }
        break;
      case 'closeAll':
        for (const flow of this.byId()) this.close(flow, 'Drain');
        break;
    }
    return this.outputs;
  }

  private onClient(action: ClientAction, now: number): void {
    const { src: client, payload } = action;
    const local = this.keyedByLocal ? action.local : undefined;
    const key = keyOf(client, local);
    const live = this.flows.find((flow) => !flow.lingers && keyOf(flow.client, flow.local) === key);
    const mayBeEmpty = live?.config.forwardEmptyDatagrams === true;
    if (payload.length > this.maxRx) return this.drop('Truncated');
    if (this.config.cluster === '') return this.drop('NoBackend');
    if (cannotBeAnswered(client)) return this.drop('Invalid');
    if (payload.length === 0 && !mayBeEmpty) return this.drop('Invalid');
    if (action.denied === true) return this.drop('Denied');
    return live === undefined
      ? this.onUnknown(action, local, now)
      : this.onKnown(live, action, local, now);
  }

  private onKnown(
    live: ModelFlow,
    action: ClientAction,
    local: Address | undefined,
    now: number,
  ): void {
    const { payload, serve, fates } = action;
    if (this.looksForged(live, payload)) {
      this.metric({ kind: 'HeaderRefused' });
      return this.drop('Invalid');
    }
    if (!spendRate(live, now)) return this.drop('DatagramRate');
    const fate = live.backend.id === '10.0.0.1:53' ? fates?.one : fates?.other;
    if (fate === 'close') {
      this.close(live, 'BackendLost');
      return payload.length === 0 ? this.drop('Invalid') : this.onUnknown(action, local, now);
    }
    if (fate === 'rebind') {
      this.selections += 1;
      if (serve === undefined) return this.drop('NoBackend');
      if (serve.id !== live.backend.id) this.rebind(live, serve);
    }
    live.credit = undefined;
    return this.forward(live, payload, now);
  }

  private onUnknown(action: ClientAction, local: Address | undefined, now: number): void {
    const { src: client, payload, serve, refusal } = action;
    if (refusal !== undefined) return this.refuse(refusal);
    if (this.draining) return this.drop('Shed');
    if (this.sourceLimitReached(client)) return this.shed({ kind: 'FlowShedSourceLimit' });
    if (this.flows.length >= this.cap) return this.shed({ kind: 'FlowShed' });
    this.selections += 1;
    if (serve === undefined) return this.drop('NoBackend');
    const flow = this.born(client, local, serve, payload.length, now);
    spendRate(flow, now);
    this.flows.push(flow);
    this.metric({ kind: 'FlowCreated' });
    this.outputs.push({ kind: 'OpenUpstream', flow: flowId(flow.id), backend: serve });
    return this.forward(flow, payload, now);
  }

  private born(
    client: Address,
    local: Address | undefined,
    backend: Backend,
    firstLength: number,
    now: number,
  ): ModelFlow {
    const { config } = this;
    const { factor, floor } = config.amplification;
    this.serials += 1;
    return {
      id: this.takeId(),
      serial: this.serials,
      born: now,
      client,
      local,
      backend,
      config,
      requests: 0,
      responses: 0,
      deadline: now,
      headerDue: config.sendProxyProtocol,
      lingers: false,
      end: 'Idle',
      credit: factor === 0 ? undefined : Math.max(floor, factor * firstLength),
      allowance: burstOf(config),
      granted: now,
    };
  }

  private looksForged(flow: ModelFlow, payload: Uint8Array): boolean {
    const { sendProxyProtocol, proxyProtocolEveryDatagram, rejectClientHeader } = flow.config;
    const signature = [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10];
    const alike = signature.every((byte, at) => payload[at] === byte);
    return sendProxyProtocol && !proxyProtocolEveryDatagram && rejectClientHeader && alike;
  }

  private rebind(flow: ModelFlow, backend: Backend): void {
    flow.backend = backend;
    flow.headerDue = flow.config.sendProxyProtocol;
    this.metric({ kind: 'FlowRebound' });
    this.outputs.push({ kind: 'OpenUpstream', flow: flowId(flow.id), backend });
  }

  private forward(flow: ModelFlow, payload: Uint8Array, now: number): void {
    const { config, backend, client } = flow;
    flow.requests += 1;
    flow.deadline = now + config.frontTimeout;
    this.metric({ kind: 'DatagramIn', bytes: payload.length });
    this.outputs.push({
      kind: 'SendToBackend',
      flow: flowId(flow.id),
      dst: backend.address,
      prefix: flow.headerDue ? proxyHeader(client, backend.address) : undefined,
      payload,
    });
    flow.headerDue &&= config.proxyProtocolEveryDatagram;
    this.endIfOver(flow, now);
  }

  private onBackend(id: number, payload: Uint8Array, now: number): void {
    if (payload.length > RETURN_BYTES_MAX) return this.drop('Truncated');
    const flow = this.flows.find((one) => one.id === id);
    if (flow === undefined) return this.drop('UnknownFlow');
    if (flow.credit !== undefined) {
      if (payload.length > flow.credit) return this.drop('Amplification');
      flow.credit -= payload.length;
    }
    const complete = flow.end !== 'Idle';
    flow.responses += 1;
    if (!complete) flow.deadline = now + flow.config.backTimeout;
    const { client: dst, local: from } = flow;
    this.metric({ kind: 'DatagramOut', bytes: payload.length });
    this.outputs.push({ kind: 'SendToClient', flow: flowId(id), dst, from, payload });
    if (complete) this.reschedule();
    else this.endIfOver(flow, now);
  }

  private onConfig(event: ConfigEvent): void {
    if (event.kind === 'SetCluster') this.config = event.config;
    else if (event.kind === 'SetMaxFlows') this.cap = event.count;
    else if (event.kind === 'SetMaxRxDatagramSize') this.maxRx = event.bytes;
    else this.draining = true;
  }

  /** Of a flow that may still await replies. */
  private endIfOver(flow: ModelFlow, now: number): void {
    const { requests, responses, responsesPerRequest, requestsLinger, lateReplyGrace } =
      flow.config;
    const outstanding = responses * (responsesPerRequest ? flow.requests : 1) - flow.responses;
    if (responses > 0 && outstanding <= 0) {
      const reason = flow.lingers ? 'RequestsReached' : 'ResponsesReached';
      if (lateReplyGrace === 0) return this.close(flow, reason);
      flow.lingers = true;
      flow.end = reason;
      flow.deadline = now + lateReplyGrace;
    } else if (requests > 0 && flow.requests >= requests) {
      if (!requestsLinger) return this.close(flow, 'RequestsReached');
      flow.lingers = true;
    }
    return this.reschedule();
  }

  private close(flow: ModelFlow, reason: CloseReason): void {
    this.flows = this.flows.filter((other) => other !== flow);
    this.freed.push(flow.id);
    this.metric({ kind: 'FlowEvicted' });
    const lasted = microseconds(this.now - flow.born);
    this.outputs.push({ kind: 'CloseFlow', flow: flowId(flow.id), reason, lasted });
    this.reschedule();
  }

  private reschedule(): void {
    const next =
      this.flows.length === 0 ? undefined : Math.min(...this.flows.map((flow) => flow.deadline));
    if (next !== undefined && next !== this.armed) {
      this.outputs.push({ kind: 'ArmTimer', at: instant(next) });
    }
    this.armed = next;
  }

  private sourceLimitReached(client: Address): boolean {
    const { maxFlowsPerIp, maxFlowsPerSubnet, cluster } = this.config;
    const rivals = this.flows.filter((flow) => flow.config.cluster === cluster);
    const ofAddress = rivals.filter((flow) => bitsOf(flow.client) === bitsOf(client)).length;
    const subnet = subnetOf(client, this.config);
    const ofSubnet = rivals.filter((flow) => subnetOf(flow.client, flow.config) === subnet).length;
    return (
      (maxFlowsPerIp > 0 && ofAddress >= maxFlowsPerIp) ||
      (maxFlowsPerSubnet > 0 && ofSubnet >= maxFlowsPerSubnet)
    );
  }

  private takeId(): number {
    const freed = this.freed.pop();
    if (freed !== undefined) return freed;
    this.idsUsed += 1;
    return this.idsUsed - 1;
  }

  private byId(): ModelFlow[] {
    return [...this.flows].sort((one, other) => one.id - other.id);
  }

  private metric(event: MetricEvent): void {
    this.outputs.push({ kind: 'Metric', event });
  }

  private refuse(refusal: Refusal): void {
    if (refusal === 'Loop') this.metric({ kind: 'LoopRefused' });
    if (refusal === 'NoDescriptor' || refusal === 'PortExhausted')
      this.metric({ kind: 'FlowShed' });
    if (refusal === 'Loop') this.drop('Invalid');
    else this.drop(refusal === 'NoDescriptor' ? 'Shed' : refusal);
  }

  private shed(event: MetricEvent): void {
    this.metric(event);
    this.drop('Shed');
  }

  private drop(reason: DropReason): void {
    this.outputs.push({ kind: 'Drop', reason });
  }
}

/** A bucket of microseconds: a datagram takes as many as lie between two at the flow's rate. */
function spendRate(flow: ModelFlow, now: number): boolean {
  const rate = flow.config.datagramsPerSecond;
  if (rate === 0) return true;
  const earned = flow.allowance + now - flow.granted;
  flow.allowance = Math.min(burstOf(flow.config), earned);
  flow.granted = now;
  if (flow.allowance < 1_000_000 / rate) return false;
  flow.allowance -= 1_000_000 / rate;
  return true;
}

function burstOf({ datagramsPerSecond, datagramsBurst }: ClusterConfig): number {
  return datagramsPerSecond === 0
    ? 0
    : (Math.max(1, datagramsBurst) * 1_000_000) / datagramsPerSecond;
}

function keyOf(client: Address, local: Address | undefined): string {
  const at = local === undefined ? 'anywhere' : `${bitsOf(local)} ${local.port}`;
  return `${bitsOf(client)} ${client.port} ${client.scope} ${at}`;
}

function bitsOf(address: Address): string {
  const { family, a, b, c, d } = address;
  const words = family === 4 ? [a] : [a, b, c, d];
  return words.map((word) => (word >>> 0).toString(2).padStart(32, '0')).join('');
}

function subnetOf(address: Address, config: ClusterConfig): string {
  const length = address.family === 4 ? config.subnetPrefixIpv4 : config.subnetPrefixIpv6;
  return `${address.family}/${length} ${bitsOf(address).slice(0, length)}`;
}

function cannotBeAnswered(address: Address): boolean {
  const bits = bitsOf(address);
  const multicast = address.family === 4 ? '1110' : '11111111';
  const broadcast = address.family === 4 && !bits.includes('0');
  return address.port === 0 || !bits.includes('1') || bits.startsWith(multicast) || broadcast;
}

/** PROXY protocol version 2, PROXY command, datagram (proxy-protocol.txt §2.2). */
function proxyHeader(source: Address, destination: Address): Uint8Array {
  const v4 = source.family === 4 && destination.family === 4;
  const octets = (address: Address): number[] => {
    const bits =
      (!v4 && address.family === 4 ? '1'.repeat(16).padStart(96, '0') : '') + bitsOf(address);
    return Array.from({ length: bits.length / 8 }, (_, at) =>
      Number.parseInt(bits.slice(8 * at, 8 * at + 8), 2),
    );
  };
  const ports = [source.port, destination.port].flatMap((port) => [port >> 8, port & 255]);
  const signature = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a];
  const addresses = [...octets(source), ...octets(destination), ...ports];
  return Uint8Array.of(...signature, 0x21, v4 ? 0x12 : 0x22, 0, addresses.length, ...addresses);
}
