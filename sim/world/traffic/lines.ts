/** The lines of a plane: which flow each of its sockets serves, and what each flow has had so far. */
import type { Address } from '../../../core/address.ts';
import type { SocketId } from '../../../core/brand.ts';
import { dgramHeader } from '../../../core/proxy-protocol.ts';
import type { OfPlane } from '../facts.ts';
import { flowKey } from './expectation.ts';
import type { Line, Parcel } from './parcel.ts';
import type { ToldCluster, ToldListener } from './told-plane.ts';

/** What a new line is. `before`: the line that its flow had; without, it is a new flow. */
export interface Wanted {
  readonly socket: SocketId;
  readonly backend: Address;
  readonly listener: ToldListener;
  readonly cluster: ToldCluster;
  readonly client: Address;
  readonly local: Address | undefined;
  readonly before: Line | undefined;
}

export class Lines {
  readonly #whose: OfPlane;
  readonly #bySocket = new Map<SocketId, Line>();
  readonly #closed: SocketId[] = [];

  constructor(whose: OfPlane) {
    this.#whose = whose;
  }

  /** A line that is open, or closed in this turn. */
  at(socket: SocketId): Line | undefined {
    return this.#bySocket.get(socket);
  }

  open({ socket, backend, listener, cluster, client, local, before }: Wanted): Line {
    const terms = before?.terms ?? cluster.settings;
    const key = flowKey(listener, client, local);
    const { process, plane } = this.#whose;
    const { requests, replies, firstBytes, repliedBytes } = before ?? NEW;
    const line: Line = {
      process,
      plane,
      socket,
      listener,
      key,
      client,
      local,
      backend,
      terms,
      cluster,
      requests,
      replies,
      firstBytes,
      repliedBytes,
      headerDue: terms.sendProxyProtocol,
      isOpen: true,
      isSpent: false,
      queue: undefined,
    };
    this.#bySocket.set(socket, line);
    listener.lines.add(line);
    listener.flows.set(key, line);
    return line;
  }

  close(line: Line): void {
    this.#closed.push(line.socket);
    line.isOpen = false;
    line.listener.lines.delete(line);
    forget(line);
  }

  /** When a turn is over, nobody speaks of the sockets that closed in it any more. */
  flushed(): void {
    for (const socket of this.#closed) this.#bySocket.delete(socket);
    this.#closed.length = 0;
  }
}

/** A client datagram that a plane took for this line. */
export function requestOn(line: Line, bytes: number, hash: number, isDoubtful: boolean): Parcel {
  const { terms, client, backend } = line;
  const hasHeader = line.headerDue;
  line.requests += 1;
  line.headerDue &&= terms.proxyProtocolEveryDatagram;
  if (line.requests === 1) line.firstBytes = bytes;
  spend(line);
  const headerBytes = hasHeader ? dgramHeader(client, backend).length : 0;
  return {
    line,
    toBackend: true,
    bytes,
    hash,
    hasHeader,
    headerBytes,
    isOffered: false,
    isDoubtful,
  };
}

/** A reply that a plane took for the client of this line. */
export function replyOn(line: Line, bytes: number, hash: number): Parcel {
  line.replies += 1;
  if (line.requests === 1) line.repliedBytes += bytes;
  spend(line);
  return {
    line,
    toBackend: false,
    bytes,
    hash,
    hasHeader: false,
    headerBytes: 0,
    isOffered: false,
    isDoubtful: false,
  };
}

/** Whether a reply is over what a client may have before it spoke twice. */
export function isTooMuch(
  { terms, requests, firstBytes, repliedBytes }: Line,
  bytes: number,
): boolean {
  const { factor, floor } = terms.amplification;
  if (factor === 0 || requests > 1) return false;
  return repliedBytes + bytes > Math.max(floor, factor * firstBytes);
}

/** Of a flow that has no line yet. */
const NEW = { requests: 0, replies: 0, firstBytes: 0, repliedBytes: 0 };

/** At its caps a flow closes, or stays for what still comes back; either way it takes no more requests. */
function spend(line: Line): void {
  if (line.isSpent || !isAtCap(line)) return;
  line.isSpent = true;
  forget(line);
}

/** Its client is a stranger from now on. */
function forget(line: Line): void {
  const { flows } = line.listener;
  if (flows.get(line.key) === line) flows.delete(line.key);
}

/** Whether the flow has had all its replies, or sent all its requests. */
function isAtCap({ terms, requests, replies }: Line): boolean {
  const expected = terms.responsesPerRequest ? terms.responses * requests : terms.responses;
  if (terms.responses !== 0 && replies >= expected) return true;
  return terms.requests !== 0 && requests >= terms.requests;
}
