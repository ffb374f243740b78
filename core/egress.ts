/**
 * The way out of a data plane: a datagram goes to its socket, or behind those that wait for it. Order per socket is kept
 * whatever blocks, and each datagram ends once: handed over, dropped for a reason, or still waiting (spec §6.5).
 */
import type { Address } from './address.ts';
import { BlockedSockets } from './blocked-sockets.ts';
import type { ListenerId, SocketId } from './brand.ts';
import type { Output } from './contract.ts';
import { EgressMemory, EgressQueues, FLOW_EGRESS, LISTENER_EGRESS } from './egress-queue.ts';
import { policyOf } from './error-policy.ts';
import type { ListenerCounters } from './metrics.ts';
import type { OutputQueue } from './output-queue.ts';
import type { PlaneOutput } from './plane-contract.ts';
import type { SendBlocked, SendFailed } from './ports.ts';
import type { Instant } from './time.ts';
import { datagramsIn, eachDatagram } from './train.ts';

/** What a listener counts, and what it handed to the driver in this turn that has not failed so far. */
export interface Tally {
  readonly counters: ListenerCounters;
  sentToBackends: number;
  sentToClients: number;
}

/** What goes to a backend once more. */
interface Again {
  readonly tally: Tally;
  readonly socket: SocketId;
  readonly header: Uint8Array | undefined;
  readonly payload: Uint8Array;
}

export class Egress {
  /** Who waits to be told of room, each with a queue. */
  readonly upstreamsBlocked: BlockedSockets<SocketId> = new BlockedSockets();
  readonly listenersBlocked: BlockedSockets<ListenerId> = new BlockedSockets();
  private readonly outputs: OutputQueue<PlaneOutput>;
  private readonly flows: EgressQueues<SocketId>;
  private readonly listeners: EgressQueues<ListenerId>;
  /** Of this turn's first flush: what was refused, and what came behind it where nothing waited; no more than a turn holds. */
  private readonly again: Again[] = [];
  /** The sockets where nothing waited when one was refused, until the turn is over. */
  private readonly refusing = new Set<SocketId>();
  private retrying = false;

  constructor(outputs: OutputQueue<PlaneOutput>) {
    const memory = new EgressMemory();
    this.outputs = outputs;
    this.flows = new EgressQueues(FLOW_EGRESS, memory);
    this.listeners = new EgressQueues(LISTENER_EGRESS, memory);
  }

  /** Datagrams that were received and wait for a socket. */
  get waiting(): number {
    return this.flows.waiting + this.listeners.waiting;
  }

  /** A train goes as one, or its datagrams go behind those that wait. */
  trainToBackend(tally: Tally, socket: SocketId, payload: Uint8Array, unit: number): void {
    if (this.flows.size > 0 && this.flows.has(socket))
      return eachDatagram(payload, unit, (one) => this.toBackend(tally, socket, undefined, one));
    tally.sentToBackends += datagramsIn(payload, unit);
    return this.outputs.push({ kind: 'TrainToBackend', socket, payload, unit });
  }

  trainToClient(
    tally: Tally,
    listener: ListenerId,
    { dst, from, payload, unit }: Extract<Output, { kind: 'TrainToClient' }>,
  ): void {
    if (this.listeners.size > 0 && this.listeners.has(listener))
      return eachDatagram(payload, unit, (one) => this.toClient(tally, listener, dst, from, one));
    tally.sentToClients += datagramsIn(payload, unit);
    return this.outputs.push({ kind: 'TrainToClient', listener, dst, from, payload, unit });
  }

  toBackend(
    tally: Tally,
    socket: SocketId,
    header: Uint8Array | undefined,
    payload: Uint8Array,
  ): void {
    if (this.flows.size > 0 && this.flows.has(socket)) {
      if (this.flows.push(socket, header, payload) !== undefined) tally.counters.droppedWqFull += 1;
      return;
    }
    tally.sentToBackends += 1;
    this.outputs.push({ kind: 'SendToBackend', socket, header, payload });
  }

  toClient(
    tally: Tally,
    listener: ListenerId,
    dst: Address,
    from: Address | undefined,
    payload: Uint8Array,
  ): void {
    if (this.listeners.size > 0 && this.listeners.has(listener)) {
      const refused = this.listeners.push(listener, undefined, payload, dst, from);
      if (refused !== undefined) tally.counters.droppedWqFull += 1;
      return;
    }
    tally.sentToClients += 1;
    this.outputs.push({ kind: 'SendToClient', listener, dst, from, payload });
  }

  /** A flush could not send this. `isOpen`: whether its socket still serves a flow. */
  failed(tally: Tally, failure: SendFailed, isOpen: boolean, now: Instant): void {
    if (failure.direction === 'to-backend') tally.sentToBackends -= 1;
    else tally.sentToClients -= 1;
    const { counters } = tally;
    if (failure.cause === 'error') counters[policyOf(failure.errno).drop] += 1;
    else if (failure.cause === 'blocked') {
      if (this.goesAlong(tally, failure)) return;
      if (!isOpen || !this.takeBack(failure, now)) counters.droppedWqFull += 1;
    } else if (this.retrying) counters.droppedSendError += 1;
    else {
      const { socket, header, payload } = failure;
      this.again.push({ tally, socket, header, payload });
      if (!this.flows.has(socket)) this.refusing.add(socket);
    }
  }

  /**
   * After a flush: sends once more what was refused in it, ahead of all that waits for the same socket. Whether there was
   * any: then another flush is to follow. The socket of a flow that closed in this turn is open until that is over.
   */
  retry(): boolean {
    this.retrying = this.again.length > 0;
    for (const { tally, socket, header, payload } of this.again) {
      tally.sentToBackends += 1;
      this.outputs.push({ kind: 'SendToBackend', socket, header, payload });
    }
    this.again.length = 0;
    return this.retrying;
  }

  upstreamWritable(tally: Tally, socket: SocketId): void {
    this.upstreamsBlocked.forget(socket);
    for (let next = this.flows.offer(socket); next !== undefined; next = this.flows.offer(socket)) {
      const { header, payload } = next;
      tally.sentToBackends += 1;
      this.outputs.push({ kind: 'SendToBackend', socket, header, payload });
    }
  }

  listenerWritable(tally: Tally, listener: ListenerId): void {
    const { listeners } = this;
    this.listenersBlocked.forget(listener);
    for (let next = listeners.offer(listener); next; next = listeners.offer(listener)) {
      const { dst, from, payload } = next;
      if (dst === undefined) continue;
      tally.sentToClients += 1;
      this.outputs.push({ kind: 'SendToClient', listener, dst, from, payload });
    }
  }

  /** A flow's socket closes: what still waits for it is dropped. */
  upstreamClosed(tally: Tally, socket: SocketId): void {
    if (this.flows.size === 0) return;
    this.upstreamsBlocked.forget(socket);
    tally.counters.droppedClosed += this.flows.discard(socket);
  }

  listenerClosed(tally: Tally, listener: ListenerId): void {
    this.listenersBlocked.forget(listener);
    tally.counters.droppedClosed += this.listeners.discard(listener);
  }

  /** After a flush: what was offered and did not come back is gone; a queue that is left waits for room again. */
  flushed(now: Instant): void {
    this.flows.settle((socket) => this.watchUpstream(socket, now));
    this.listeners.settle((listener) => this.watchListener(listener, now));
    if (this.refusing.size > 0) this.refusing.clear();
  }

  /** Behind one that was refused there is room, so what came there is sent again with it, however much it is. */
  private goesAlong(tally: Tally, failure: SendBlocked): boolean {
    if (failure.direction === 'to-client' || this.retrying) return false;
    const { socket, header, payload } = failure;
    if (!this.refusing.has(socket)) return false;
    // These are lent for the call.
    this.again.push({ tally, socket, header: header?.slice(), payload: new Uint8Array(payload) });
    return true;
  }

  /** Back to its place, or behind the others; a socket that had no queue is watched from now on. */
  private takeBack(failure: SendBlocked, now: Instant): boolean {
    const { payload } = failure;
    if (failure.direction === 'to-backend') {
      const { socket, header } = failure;
      const waits = this.flows.has(socket);
      // Its place was ahead of those that wait by now, and nothing goes there any more.
      if (waits && this.retrying && !this.refusing.has(socket)) return false;
      if (this.flows.takeBack(socket, header, payload) !== undefined) return false;
      if (!waits) this.watchUpstream(socket, now);
      return true;
    }
    const { listener, dst, from } = failure;
    const waits = this.listeners.has(listener);
    if (this.listeners.takeBack(listener, undefined, payload, dst, from) !== undefined)
      return false;
    if (!waits) this.watchListener(listener, now);
    return true;
  }

  private watchUpstream(socket: SocketId, now: Instant): void {
    this.upstreamsBlocked.blocked(socket, now);
    this.outputs.push({ kind: 'WatchUpstream', socket });
  }

  private watchListener(listener: ListenerId, now: Instant): void {
    this.listenersBlocked.blocked(listener, now);
    this.outputs.push({ kind: 'WatchListener', listener });
  }
}
