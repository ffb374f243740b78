/**
 * The live flows of a process as its sockets show them: one from the open of its socket until the close. A socket that is
 * opened where one of the same client was closed, in answer to the same input, serves the flow that was there.
 */
import { sameAddress, type Address } from '../../../core/address.ts';
import { listenerOf, type ListenerId, type SocketId } from '../../../core/brand.ts';
import type { ClusterSettings, ListenerConfig } from '../../../core/config.ts';
import type { PlaneInput, PlaneOutput } from '../../../core/plane-contract.ts';
import type { Instant } from '../../../core/time.ts';
import { DirectedState } from './directed.ts';

export interface LiveFlow {
  readonly listener: ListenerId;
  readonly client: Address;
  readonly local: Address | undefined;
  /** As its listener and its cluster were when it was admitted. */
  readonly config: ListenerConfig | undefined;
  readonly settings: ClusterSettings | undefined;
  readonly openedAt: Instant;
  /** When a datagram last went either way. */
  touchedAt: Instant;
  /** Its socket had no room: what its client sends waits, and nobody sees it. */
  isBlocked: boolean;
}

/** Who hears of flows, if anybody wants to. */
export interface FlowWatch {
  /** `isNew`: it was admitted just now, under its listener's limits; else it goes on with another socket. */
  readonly opened?: (flow: LiveFlow, isNew: boolean, now: Instant) => void;
  readonly closed?: (flow: LiveFlow) => void;
  /** A client datagram went on in answer to its arrival. */
  readonly forwarded?: (flow: LiveFlow, now: Instant) => void;
}

const NONE = [undefined, undefined] as const;

export class LiveFlows {
  readonly directed: DirectedState = new DirectedState();
  /** The one that was silent longest first. */
  readonly bySocket: Map<SocketId, LiveFlow> = new Map();
  readonly #watch: FlowWatch;
  #input: PlaneInput | undefined;
  #now: Instant;
  /** Closed in answer to the present input. */
  #closed: LiveFlow[] = [];

  constructor(watch: FlowWatch, now: Instant) {
    this.#watch = watch;
    this.#now = now;
  }

  /** The flow that was silent longest, of those whose sockets have room. */
  get firstOpen(): readonly [SocketId, LiveFlow] | readonly [undefined, undefined] {
    for (const entry of this.bySocket) if (!entry[1].isBlocked) return entry;
    return NONE;
  }

  /** Before the outputs that it leads to. */
  hearInput(input: PlaneInput, now: Instant): void {
    this.#begin(input, now);
    if (input.kind === 'Directed') this.directed.hear(input.message);
    else if (input.kind === 'BackendArrived') this.#touch(input.socket);
    else if (input.kind === 'UpstreamWritable') this.#block(input.socket, false);
  }

  hearTimeout(now: Instant): void {
    this.#begin(undefined, now);
  }

  hearOutput(output: PlaneOutput): void {
    switch (output.kind) {
      case 'OpenUpstream':
      case 'RefuseUpstream':
        return this.#open(output.socket);
      case 'CloseUpstream':
        return this.#close(output.socket);
      case 'WatchUpstream':
        return this.#block(output.socket, true);
      case 'SendToBackend': {
        if (this.#input?.kind !== 'ClientArrived') return undefined;
        const flow = this.#touch(output.socket);
        if (flow !== undefined) this.#watch.forwarded?.(flow, this.#now);
        return undefined;
      }
      default:
        return undefined;
    }
  }

  #begin(input: PlaneInput | undefined, now: Instant): void {
    this.#input = input;
    this.#now = now;
    if (this.#closed.length > 0) this.#closed = [];
  }

  /** A second try for the socket of a flow that is there opens nothing new. */
  #open(socket: SocketId): void {
    if (this.bySocket.has(socket)) return;
    const input = this.#input;
    const before =
      input?.kind === 'ClientArrived'
        ? this.#closed.find((flow) => isOf(flow, input.src, input.local))
        : this.#closed.at(-1);
    const flow = before ?? this.#admitted(socket);
    if (flow === undefined) return;
    flow.isBlocked = false;
    this.#watch.opened?.(flow, before === undefined, this.#now);
    this.bySocket.set(socket, flow);
  }

  #admitted(socket: SocketId): LiveFlow | undefined {
    const input = this.#input;
    if (input?.kind !== 'ClientArrived') return undefined;
    const listener = listenerOf(socket);
    return {
      listener,
      client: input.src,
      local: input.local,
      config: this.directed.listeners.get(listener),
      settings: this.directed.clusterOf(listener),
      openedAt: this.#now,
      touchedAt: this.#now,
      isBlocked: false,
    };
  }

  #close(socket: SocketId): void {
    const flow = this.bySocket.get(socket);
    if (flow === undefined) return;
    this.bySocket.delete(socket);
    this.#closed.push(flow);
    this.#watch.closed?.(flow);
  }

  #block(socket: SocketId, isBlocked: boolean): void {
    const flow = this.#touch(socket);
    if (flow !== undefined) flow.isBlocked = isBlocked;
  }

  #touch(socket: SocketId): LiveFlow | undefined {
    const flow = this.bySocket.get(socket);
    if (flow === undefined) return undefined;
    flow.touchedAt = this.#now;
    this.bySocket.delete(socket);
    this.bySocket.set(socket, flow);
    return flow;
  }
}

function isOf(flow: LiveFlow, client: Address, local: Address | undefined): boolean {
  if (!sameAddress(flow.client, client)) return false;
  return flow.local === undefined || local === undefined
    ? flow.local === local
    : sameAddress(flow.local, local);
}
