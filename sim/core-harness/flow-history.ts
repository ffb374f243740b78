/**
 * What each live flow did since it was opened, read from outputs alone. It knows nothing of the shadow model, so that either
 * can be wrong without the other.
 */
import { sameAddress, type Address } from '../../core/address.ts';
import type { Backend, Output } from '../../core/contract.ts';
import type { Observer } from '../properties.ts';
import type { DrawnCluster } from './actions.ts';
import * as properties from './properties.ts';

interface OpenFlow {
  readonly backend: Backend;
  readonly client: Address;
  readonly config: DrawnCluster;
  requests: number;
  responses: number;
}

export class FlowHistory {
  created = 0;
  evicted = 0;
  /** The configuration that admissions are made under. */
  config: DrawnCluster;
  private readonly observer: Observer;
  private readonly open: (OpenFlow | undefined)[] = [];
  /** The client that held a slot before. */
  private readonly formerly: (Address | undefined)[] = [];

  constructor(config: DrawnCluster, observer: Observer) {
    this.config = config;
    this.observer = observer;
  }

  backendOf(flow: number): Backend | undefined {
    return this.open[flow]?.backend;
  }

  /** Takes one output; `client` is who sent the datagram under way, if one is. */
  take(output: Output, client: Address | undefined): void {
    switch (output.kind) {
      case 'Metric':
        if (output.event.kind === 'FlowCreated') this.created += 1;
        else if (output.event.kind === 'FlowEvicted') this.evicted += 1;
        return undefined;
      case 'OpenUpstream':
        return this.opened(output.flow, output.backend, client);
      case 'SendToBackend':
        return this.forwarded(output);
      case 'SendToClient':
        return this.returned(output);
      case 'CloseFlow':
        this.formerly[output.flow] = this.open[output.flow]?.client;
        this.open[output.flow] = undefined;
        return undefined;
      default:
        return undefined;
    }
  }

  private opened(flow: number, backend: Backend, client: Address | undefined): void {
    if (client === undefined) return;
    const former = this.formerly[flow];
    this.observer.check(properties.SLOT_REUSED, former !== undefined && former !== client);
    this.open[flow] = { backend, client, config: this.config, requests: 0, responses: 0 };
  }

  private forwarded(output: Extract<Output, { kind: 'SendToBackend' }>): void {
    const flow = this.open[output.flow];
    const goesHome = flow !== undefined && sameAddress(output.dst, flow.backend.address);
    this.observer.check(properties.STICKY, goesHome);
    if (flow === undefined) return;
    flow.requests += 1;
    const { config } = flow;
    this.observer.check(
      properties.CAPPED,
      config.requests === 0 || flow.requests <= config.requests,
    );
    const wanted = config.sendProxyProtocol && (config.everyDatagram || flow.requests === 1);
    this.observer.check(properties.HEADED, wanted === (output.prefix !== undefined));
    this.observer.check(properties.OLD_CONTRACT, config !== this.config);
  }

  private returned(output: Extract<Output, { kind: 'SendToClient' }>): void {
    const flow = this.open[output.flow];
    const goesHome = flow !== undefined && sameAddress(output.dst, flow.client);
    this.observer.check(properties.OWN_CLIENT, goesHome);
    if (flow === undefined) return;
    flow.responses += 1;
    const { responses } = flow.config;
    this.observer.check(properties.CAPPED, responses === 0 || flow.responses <= responses);
  }
}
