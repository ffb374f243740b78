/**
 * The kernel of a simulated host: descriptors, bound and connected UDP sockets, their buffers, and the refusals they hold.
 * It knows nothing of flows or turns. Every datagram it saw is in its counters, once on the way in and once on the way out.
 */
import type { Address } from '../../core/address.ts';
import { isUnanswerable, isUnspecified, sameAddress } from '../../core/address.ts';
import { DATAGRAM_BYTES_MAX } from '../../core/contract.ts';
import type { Errno } from '../../core/ports.ts';
import { microseconds } from '../../core/time.ts';
import type { Random } from '../random.ts';
import { Bindings, covers, type Binding } from './os-bindings.ts';
import { Descriptors } from './os-descriptors.ts';
import { Device } from './os-device.ts';
import { strikes } from './os-faults.ts';
import type { Host } from './os-host.ts';
import type { Datagram, Endpoint, Wire } from './wire.ts';

/** Charged to a buffer for each datagram on top of its bytes, as Linux charges what it allocates. */
export const DATAGRAM_OVERHEAD_BYTES = 512;

/** What a socket is to be. Whoever opens it hears of its events, and reacts to none of them within the call. */
export interface SocketWish extends Binding {
  /** Whom it is connected to. */
  readonly peer: Address | undefined;
  readonly receiveBuffer: number;
  readonly sendBuffer: number;
  /** A datagram or a refusal waits, or, if it is watched, there is room. */
  readonly onReady: () => void;
  readonly onLateFailure: (errno: Errno) => void;
}

/** An open socket. Its parts are the kernel's to write, but for `watched`. */
export interface KernelSocket extends SocketWish {
  readonly descriptor: number;
  readonly inbox: Datagram[];
  inboxBytes: number;
  /** Bytes that have not left the host. */
  outboxBytes: number;
  /** A refusal that nobody has heard of. */
  refused: boolean;
  /** Whether a poll sees it yet. */
  refusalShows: boolean;
  /** A send of it will never complete. */
  stalled: boolean;
  /** Somebody waits for room. */
  watched: boolean;
}

/** Datagrams in: `received` = `overflowed` + `strange` + `unheard` + `taken` + `abandoned` + those that wait. */
export interface ReceiveCounters {
  received: number;
  /** The receive buffer was full. */
  overflowed: number;
  /** From another than the peer of a connected socket, or to a socket that is gone. */
  strange: number;
  /** The machine was asleep. */
  unheard: number;
  /** By the process. */
  taken: number;
  /** Waited in a socket that closed. */
  abandoned: number;
  /** ICMP refusals that came to a connected socket. */
  refusals: number;
}

/** Datagrams out: `sends` = `left` + `failed` of every errno + `stalled` + `failedLate` + those that wait to leave. */
export interface SendCounters {
  sends: number;
  left: number;
  stalled: number;
  failedLate: number;
  /** By errno, in the order these came up first; EAGAIN and ECONNREFUSED too. */
  readonly failed: Map<Errno, number>;
}

export class Kernel implements Endpoint {
  readonly host: Host;
  readonly in: ReceiveCounters = {
    received: 0,
    overflowed: 0,
    strange: 0,
    unheard: 0,
    taken: 0,
    abandoned: 0,
    refusals: 0,
  };
  readonly out: SendCounters = { sends: 0, left: 0, stalled: 0, failedLate: 0, failed: new Map() };
  readonly descriptors: Descriptors<KernelSocket>;
  readonly #wire: Wire;
  readonly #bindings: Bindings<KernelSocket>;
  readonly #device: Device;
  readonly #memory: Random;
  readonly #stalls: Random;
  readonly #late: Random;
  readonly #notice: Random;

  constructor(host: Host, wire: Wire) {
    this.host = host;
    this.#wire = wire;
    this.descriptors = new Descriptors(host);
    this.#bindings = new Bindings(host);
    this.#device = new Device(host, wire);
    this.#memory = host.stream('buggify', 'no-buffers');
    this.#stalls = host.stream('buggify', 'stalls');
    this.#late = host.stream('buggify', 'late-failures');
    this.#notice = host.stream('buggify', 'refusals');
    host.onFaults(() => {
      for (const socket of this.descriptors.sockets()) tellRoom(this, socket);
    });
  }

  /** Datagrams that were sent and have not left the host. */
  get leaving(): number {
    return this.#device.waiting;
  }

  /** Datagrams in receive buffers. */
  get waiting(): number {
    let waiting = 0;
    for (const { inbox } of this.descriptors.sockets()) waiting += inbox.length;
    return waiting;
  }

  /** Opens and binds a socket, and connects it if it has a peer. A failure leaves nothing open. */
  open(wish: SocketWish): KernelSocket | Errno {
    const descriptor = this.descriptors.lowest();
    if (descriptor === undefined) return 'EMFILE';
    const bound = this.#bindings.choose(wish);
    if (typeof bound === 'string') return bound;
    const local = wish.peer === undefined ? bound : this.#route(bound, wish.peer);
    if (typeof local === 'string') return local;
    const { socketBuffer } = this.host.shape;
    const socket: KernelSocket = {
      peer: wish.peer,
      ipv6Only: wish.ipv6Only,
      sharing: wish.sharing,
      onReady: wish.onReady,
      onLateFailure: wish.onLateFailure,
      local,
      receiveBuffer: Math.min(wish.receiveBuffer, socketBuffer),
      sendBuffer: Math.min(wish.sendBuffer, socketBuffer),
      descriptor,
      inbox: [],
      inboxBytes: 0,
      outboxBytes: 0,
      refused: false,
      refusalShows: false,
      stalled: false,
      watched: false,
    };
    this.descriptors.take(descriptor, socket);
    const reached = this.#reachedBy(socket);
    this.#bindings.add(socket);
    for (const address of reached) this.#wire.attach(address, this);
    return socket;
  }

  /** What it had not received is gone; what it has sent leaves all the same. */
  close(socket: KernelSocket): void {
    this.in.abandoned += socket.inbox.length;
    socket.inbox.length = 0;
    forgetRefusal(socket);
    this.descriptors.release(socket.descriptor);
    this.#bindings.remove(socket);
    for (const address of this.#reachedBy(socket)) this.#wire.detach(address);
  }

  isOpen(socket: KernelSocket): boolean {
    return this.descriptors.socketAt(socket.descriptor) === socket;
  }

  /** Whether a send would not block. */
  hasRoom({ stalled, outboxBytes, sendBuffer }: KernelSocket): boolean {
    return !stalled && outboxBytes < Math.min(sendBuffer, this.host.faults.sendBuffer ?? Infinity);
  }

  /**
   * Sends header and payload as one datagram to the peer, or to `to` from `from`. The payload is the kernel's from now on,
   * unless it says why not.
   */
  send(
    socket: KernelSocket,
    header: Uint8Array | undefined,
    payload: Uint8Array,
    to: Address | undefined = socket.peer,
    from?: Address,
  ): Errno | undefined {
    this.out.sends += 1;
    const errno = this.#send(socket, joined(header, payload), to, from);
    if (errno !== undefined) this.out.failed.set(errno, (this.out.failed.get(errno) ?? 0) + 1);
    return errno;
  }

  /** The next datagram that waits. */
  receive(socket: KernelSocket): Datagram | undefined {
    const datagram = socket.inbox.shift();
    if (datagram === undefined) return undefined;
    socket.inboxBytes -= chargeOf(datagram.payload);
    this.in.taken += 1;
    return datagram;
  }

  /** Whether a poll finds a refusal; then it is forgotten. */
  takeRefusal(socket: KernelSocket): boolean {
    return socket.refusalShows && forgetRefusal(socket);
  }

  deliver(datagram: Datagram): void {
    const { faults } = this.host;
    this.in.received += 1;
    const socket = this.#bindings.receiver(datagram.src, datagram.dst);
    const isStrange = socket?.peer !== undefined && !sameAddress(socket.peer, datagram.src);
    if (faults.standstill === 'clock') {
      this.in.unheard += 1;
    } else if (socket === undefined || isStrange) {
      this.in.strange += 1;
    } else if (
      socket.inboxBytes >= Math.min(socket.receiveBuffer, faults.receiveBuffer ?? Infinity)
    ) {
      this.in.overflowed += 1;
    } else {
      socket.inbox.push(datagram);
      socket.inboxBytes += chargeOf(datagram.payload);
      socket.onReady();
    }
  }

  unreachable({ src, dst }: Datagram): void {
    const socket = this.#bindings.at(src);
    if (socket?.peer === undefined || !sameAddress(socket.peer, dst)) return;
    const { refusalDelay, standstill } = this.host.faults;
    if (standstill === 'clock') return;
    this.in.refusals += 1;
    socket.refused = true;
    if (refusalDelay === undefined) return showRefusal(socket);
    const delay = this.#notice.between('os.refusal-delay', 0, refusalDelay);
    this.host.later(microseconds(delay), () => {
      if (socket.refused) showRefusal(socket);
    });
  }

  /** By this socket, while it is not open, and by no other. */
  #reachedBy(socket: KernelSocket): Address[] {
    const addresses = this.#bindings.reachedAt(socket);
    return socket.sharing === undefined
      ? addresses
      : addresses.filter((address) => this.#bindings.at(address) === undefined);
  }

  /** A socket bound to a wildcard takes the address of the way to its peer. */
  #route(bound: Address, peer: Address): Address | Errno {
    if (isUnanswerable(peer)) return 'EACCES';
    const source = isUnspecified(bound) ? this.#bindings.sourceFor(peer.family) : bound;
    if (source === undefined || source.family !== peer.family) return 'ENETUNREACH';
    return { ...source, port: bound.port };
  }

  #send(
    socket: KernelSocket,
    payload: Uint8Array,
    to: Address | undefined,
    from: Address | undefined,
  ): Errno | undefined {
    const { faults } = this.host;
    if (to === undefined) return 'EDESTADDRREQ';
    if (payload.length > (faults.datagramBytes ?? DATAGRAM_BYTES_MAX)) return 'EMSGSIZE';
    // A stale refusal takes the place of a send, room or not.
    if (forgetRefusal(socket)) return 'ECONNREFUSED';
    if (!this.hasRoom(socket)) return 'EAGAIN';
    const src = this.#sourceOf(socket, to, from);
    if (src === undefined) return 'ENETUNREACH';
    if (strikes(faults.noBuffers, this.#memory, 'os.no-buffers')) return 'ENOBUFS';
    const stalls = socket.peer === undefined ? faults.listenerStalls : faults.upstreamStalls;
    if (strikes(stalls, this.#stalls, 'os.stall')) {
      socket.stalled = true;
      this.out.stalled += 1;
    } else if (strikes(faults.lateFailures, this.#late, 'os.late-failure')) {
      this.out.failedLate += 1;
      socket.onLateFailure('EPERM');
    } else {
      this.#leave(socket, { src, dst: to, payload });
    }
    return undefined;
  }

  #sourceOf(
    { local, ipv6Only }: KernelSocket,
    to: Address,
    from: Address | undefined,
  ): Address | undefined {
    const source = from ?? (isUnspecified(local) ? this.#bindings.sourceFor(to.family) : local);
    if (source === undefined || source.family !== to.family) return undefined;
    const src = source.port === local.port ? source : { ...source, port: local.port };
    return covers({ local, ipv6Only }, src) ? src : undefined;
  }

  #leave(socket: KernelSocket, datagram: Datagram): void {
    if (this.#device.isOpen) {
      this.out.left += 1;
      return this.#wire.send(datagram);
    }
    const charge = chargeOf(datagram.payload);
    socket.outboxBytes += charge;
    return this.#device.send(datagram, () => {
      this.out.left += 1;
      socket.outboxBytes -= charge;
      tellRoom(this, socket);
    });
  }
}

function joined(header: Uint8Array | undefined, payload: Uint8Array): Uint8Array {
  if (header === undefined) return payload;
  const bytes = new Uint8Array(header.length + payload.length);
  bytes.set(header);
  bytes.set(payload, header.length);
  return bytes;
}

function chargeOf(payload: Uint8Array): number {
  return payload.length + DATAGRAM_OVERHEAD_BYTES;
}

function tellRoom(kernel: Kernel, socket: KernelSocket): void {
  if (socket.watched && kernel.isOpen(socket) && kernel.hasRoom(socket)) socket.onReady();
}

function showRefusal(socket: KernelSocket): void {
  socket.refusalShows = true;
  socket.onReady();
}

function forgetRefusal(socket: KernelSocket): boolean {
  const { refused } = socket;
  socket.refused = false;
  socket.refusalShows = false;
  return refused;
}
