/**
 * What each live flow did since it was opened, read from outputs alone. It knows nothing of the shadow model, so that either
 * can be wrong without the other.
 */
import { sameAddress, type Address } from '../../core/address.ts';
import type { Backend, MetricEvent, Output } from '../../core/contract.ts';
import type { Instant } from '../../core/time.ts';
import type { Observer } from '../properties.ts';
import type { DrawnCluster } from './actions.ts';
import { FlowPromises } from './flow-promises.ts';
import * as properties from './properties.ts';

interface OpenFlow {
  backend: Backend;
  readonly client: Address;
  readonly config: DrawnCluster;
  /** Undefined where the seeds' table is all it goes by. */
  readonly promises: FlowPromises | undefined;
  requests: number;
  responses: number;
  /** Datagrams sent to the backend it is on. */
  sentHere: number;
}

/** The datagram under way. */
export interface Arrival {
  /** Undefined unless a client sent it. */
  readonly client: Address | undefined;
  readonly bytes: number;
  readonly now: Instant;
}

/** The outputs of a rebind, in their order; anything else in between is wrong. */
const REBIND: readonly Output['kind'][] = ['Metric', 'OpenUpstream', 'Metric', 'SendToBackend'];

export class FlowHistory {
  created = 0;
  evicted = 0;
  /** The configuration that admissions are made under. */
  config: DrawnCluster;
  private readonly observer: Observer;
  private readonly open: (OpenFlow | undefined)[] = [];
  /** The client that held a slot before. */
  private readonly formerly: (Address | undefined)[] = [];
  /** Outputs of a rebind under way that were seen; 0: there is none. */
  private rebinding = 0;

  constructor(config: DrawnCluster, observer: Observer) {
    this.config = config;
    this.observer = observer;
  }

  backendOf(flow: number): Backend | undefined {
    return this.open[flow]?.backend;
  }

  /** Whether a flow that took an empty datagram was to take it. One that closed with it is not held against the machine. */
  forwardsEmpty(flow: number): boolean {
    const live = this.open[flow];
    return live === undefined || live.config.terms?.forwardEmpty === true;
  }

  /** Takes one output of the call in which `arrival` came. */
  take(output: Output, arrival: Arrival): void {
    if (this.rebinding > 0) this.checkRebind(output);
    switch (output.kind) {
      case 'Metric':
        return this.counted(output.event.kind);
      case 'OpenUpstream':
        return this.opened(output.flow, output.backend, arrival.client);
      case 'SendToBackend':
        return this.forwarded(output, arrival);
      case 'SendToClient':
        return this.returned(output, arrival);
      case 'CloseFlow':
        return this.closed(output, arrival.now);
      default:
        return undefined;
    }
  }

  private counted(event: MetricEvent['kind']): void {
    if (event === 'FlowCreated') this.created += 1;
    else if (event === 'FlowEvicted') this.evicted += 1;
    else if (event === 'FlowRebound') this.rebinding = 1;
  }

  private checkRebind(output: Output): void {
    this.observer.check(properties.REBOUND_IN_ORDER, output.kind === REBIND[this.rebinding]);
    this.rebinding = (this.rebinding + 1) % REBIND.length;
  }

  private closed({ flow, reason }: Extract<Output, { kind: 'CloseFlow' }>, now: Instant): void {
    this.open[flow]?.promises?.closed(reason, now);
    this.formerly[flow] = this.open[flow]?.client;
    this.open[flow] = undefined;
  }

  private opened(flow: number, backend: Backend, client: Address | undefined): void {
    if (client === undefined) return;
    const live = this.open[flow];
    if (live !== undefined) return this.rebound(live, backend);
    const former = this.formerly[flow];
    this.observer.check(properties.SLOT_REUSED, former !== undefined && former !== client);
    const { config, observer } = this;
    const { terms } = config;
    const promises = terms === undefined ? undefined : new FlowPromises(config, terms, observer);
    this.open[flow] = {
      backend,
      client,
      config,
      promises,
      requests: 0,
      responses: 0,
      sentHere: 0,
    };
  }

  /** A live flow is opened again only as part of a rebind, and on another backend. */
  private rebound(flow: OpenFlow, backend: Backend): void {
    const isTold = this.rebinding === 2;
    const isOther = !sameAddress(flow.backend.address, backend.address);
    this.observer.check(properties.REBOUND_IN_ORDER, isTold && isOther);
    flow.backend = backend;
    flow.sentHere = 0;
  }

  private forwarded(output: Extract<Output, { kind: 'SendToBackend' }>, arrival: Arrival): void {
    const flow = this.open[output.flow];
    const goesHome = flow !== undefined && sameAddress(output.dst, flow.backend.address);
    this.observer.check(properties.STICKY, goesHome);
    if (flow === undefined) return;
    flow.requests += 1;
    flow.sentHere += 1;
    flow.promises?.forwarded(arrival.bytes, arrival.now);
    const { config } = flow;
    this.observer.check(
      properties.CAPPED,
      config.requests === 0 || flow.requests <= config.requests,
    );
    const wanted = config.sendProxyProtocol && (config.everyDatagram || flow.sentHere === 1);
    this.observer.check(properties.HEADED, wanted === (output.prefix !== undefined));
    this.observer.check(properties.OLD_CONTRACT, config !== this.config);
  }

  private returned(output: Extract<Output, { kind: 'SendToClient' }>, arrival: Arrival): void {
    const flow = this.open[output.flow];
    const goesHome = flow !== undefined && sameAddress(output.dst, flow.client);
    this.observer.check(properties.OWN_CLIENT, goesHome);
    if (flow === undefined) return;
    flow.responses += 1;
    flow.promises?.returned(arrival.bytes, arrival.now);
    this.observer.check(properties.CAPPED, flow.responses <= mostResponses(flow));
  }
}

/** Replies that a flow may return at this point; late ones of a grace are not counted against it. */
function mostResponses({ config, requests }: OpenFlow): number {
  const { responses, terms } = config;
  if (responses === 0 || (terms?.graceMs ?? 0) > 0) return Infinity;
  return terms?.responsesPerRequest === true ? responses * requests : responses;
}
