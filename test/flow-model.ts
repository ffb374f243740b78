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
} from '../core/contract.ts';
import { instant } from '../core/time.ts';
import type { Action } from './flow-rig.ts';

export interface ModelFlow {
  readonly id: number;
  readonly client: Address;
  readonly local: Address | undefined;
  readonly backend: Backend;
  readonly config: ClusterConfig;
  requests: number;
  responses: number;
  deadline: number;
}

export interface ModelOptions {
  readonly config: ClusterConfig;
  readonly maxFlows: number;
  readonly maxRxDatagramSize: number;
  readonly keyedByLocal: boolean;
}

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
  private outputs: Output[] = [];

  constructor(options: ModelOptions) {
    this.config = options.config;
    this.cap = options.maxFlows;
    this.maxRx = options.maxRxDatagramSize;
    this.keyedByLocal = options.keyedByLocal;
  }

  /** The outputs of `action` at `now`, in microseconds. */
  perform(action: Action, now: number): Output[] {
    this.outputs = [];
    switch (action.kind) {
      case 'client':
        this.onClient(action.src, action.local, action.payload, action.serve, now);
        break;
      case 'backend':
        this.onBackend(action.flow, action.payload, now);
        break;
      case 'config':
        this.onConfig(action.event);
        break;
      case 'timeout':
        this.armed = undefined;
        for (const flow of this.byId()) if (flow.deadline <= now) this.close(flow, 'Idle');
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

  private onClient(
    client: Address,
    arrivedAt: Address | undefined,
    payload: Uint8Array,
    serve: Backend | undefined,
    now: number,
  ): void {
    const local = this.keyedByLocal ? arrivedAt : undefined;
    if (payload.length > this.maxRx) return this.drop('Truncated');
    if (this.config.cluster === '') return this.drop('NoBackend');
    if (payload.length === 0 || cannotBeAnswered(client)) return this.drop('Invalid');
    const live = this.flows.find((flow) => keyOf(flow.client, flow.local) === keyOf(client, local));
    if (live !== undefined) return this.onKnown(live, payload, now);
    if (this.draining) return this.drop('Shed');
    if (this.sourceLimitReached(client)) return this.shed({ kind: 'FlowShedSourceLimit' });
    if (this.flows.length >= this.cap) return this.shed({ kind: 'FlowShed' });
    this.selections += 1;
    if (serve === undefined) return this.drop('NoBackend');
    const { config } = this;
    const counts = { requests: 0, responses: 0, deadline: now };
    const flow: ModelFlow = { id: this.takeId(), client, local, backend: serve, config, ...counts };
    this.flows.push(flow);
    this.metric({ kind: 'FlowCreated' });
    this.outputs.push({ kind: 'OpenUpstream', flow: flowId(flow.id), backend: serve });
    this.forward(flow, payload, now);
  }

  private onKnown(flow: ModelFlow, payload: Uint8Array, now: number): void {
    const { sendProxyProtocol, proxyProtocolEveryDatagram, rejectClientHeader } = flow.config;
    const signature = [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10];
    const alike = signature.every((byte, at) => payload[at] === byte);
    if (sendProxyProtocol && !proxyProtocolEveryDatagram && rejectClientHeader && alike) {
      this.metric({ kind: 'HeaderRefused' });
      return this.drop('Invalid');
    }
    this.forward(flow, payload, now);
  }

  private forward(flow: ModelFlow, payload: Uint8Array, now: number): void {
    const { config, backend, client } = flow;
    flow.requests += 1;
    flow.deadline = now + config.frontTimeout;
    const due =
      config.sendProxyProtocol && (config.proxyProtocolEveryDatagram || flow.requests === 1);
    this.metric({ kind: 'DatagramIn', bytes: payload.length });
    this.outputs.push({
      kind: 'SendToBackend',
      flow: flowId(flow.id),
      dst: backend.address,
      prefix: due ? proxyHeader(client, backend.address) : undefined,
      payload,
    });
    this.closeAtCap(flow);
  }

  private onBackend(id: number, payload: Uint8Array, now: number): void {
    if (payload.length > RETURN_BYTES_MAX) return this.drop('Truncated');
    const flow = this.flows.find((one) => one.id === id);
    if (flow === undefined) return this.drop('UnknownFlow');
    flow.responses += 1;
    flow.deadline = now + flow.config.backTimeout;
    const { client: dst, local: from } = flow;
    this.metric({ kind: 'DatagramOut', bytes: payload.length });
    this.outputs.push({ kind: 'SendToClient', flow: flowId(id), dst, from, payload });
    this.closeAtCap(flow);
  }

  private onConfig(event: ConfigEvent): void {
    if (event.kind === 'SetCluster') this.config = event.config;
    else if (event.kind === 'SetMaxFlows') this.cap = event.count;
    else if (event.kind === 'SetMaxRxDatagramSize') this.maxRx = event.bytes;
    else this.draining = true;
  }

  private closeAtCap(flow: ModelFlow): void {
    const { requests, responses } = flow.config;
    if (responses > 0 && flow.responses >= responses) this.close(flow, 'ResponsesReached');
    else if (requests > 0 && flow.requests >= requests) this.close(flow, 'RequestsReached');
    else this.reschedule();
  }

  private close(flow: ModelFlow, reason: CloseReason): void {
    this.flows = this.flows.filter((other) => other !== flow);
    this.freed.push(flow.id);
    this.metric({ kind: 'FlowEvicted' });
    this.outputs.push({ kind: 'CloseFlow', flow: flowId(flow.id), reason });
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

  private shed(event: MetricEvent): void {
    this.metric(event);
    this.drop('Shed');
  }

  private drop(reason: DropReason): void {
    this.outputs.push({ kind: 'Drop', reason });
  }
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
