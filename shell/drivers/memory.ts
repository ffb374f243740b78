/**
 * A driver without a kernel, for tests of whatever stands on `Ports`. It batches: sends collect until the flush or until the
 * batch is full, and their bytes are read only then. It names descriptors by the lowest free number, bounds them, and can
 * refuse sends. Time, room, deliveries and peers are moved by hand. Nothing here is random: the simulator's world is elsewhere.
 */
import {
  after,
  DATAGRAM_BYTES_MAX,
  formatAddress,
  instant,
  ipv4,
  ipv6,
  isLoopback,
  isUnanswerable,
  isUnspecified,
  sameAddress,
  sendFailureOf,
  unmap,
  type Address,
  type Arrivals,
  type DriverCapabilities,
  type Duration,
  type Errno,
  type Instant,
  type ListenerId,
  type ListenerSocket,
  type Opened,
  type Ports,
  type SendBlocked,
  type SendFailed,
  type SocketId,
} from '../../core/index.ts';

export interface MemoryOptions {
  /** Sends that leave together, default 32. */
  readonly batch?: number;
}

export interface Received {
  readonly from: Address;
  readonly payload: Uint8Array;
}

/** A program at the other end: a mailbox that can send. */
export interface MemoryPeer {
  readonly address: Address;
  readonly mailbox: Received[];
  /** Told of each datagram once the mailbox has it. */
  heard: (received: Received) => void;
  send(to: Address, payload: Uint8Array): void;
  /** Whoever sends to a closed peer is refused. */
  close(): void;
  reopen(): void;
}

type Endpoint = ListenerEndpoint | UpstreamEndpoint;

interface ListenerEndpoint {
  readonly kind: 'listener';
  readonly id: ListenerId;
  readonly address: Address;
  readonly ipv6Only: boolean;
}

interface UpstreamEndpoint {
  readonly kind: 'upstream';
  readonly id: SocketId;
  readonly address: Address;
  readonly backend: Address;
  /** A refusal that nobody has heard of yet. */
  refused: boolean;
}

interface Outgoing {
  readonly descriptor: number | undefined;
  /** The datagram, in the words that lend it again if there is no room. */
  readonly datagram: SendBlocked;
}

interface Incoming extends Received {
  readonly endpoint: Endpoint;
  readonly to: Address;
}

const POISON = 0xdb;
const FULL = -1;
const LOOPBACK = 0x7f000001;

export class MemoryDriver implements Ports {
  readonly capabilities: DriverCapabilities;
  /** Descriptors there may be at once. */
  descriptorsMax = 1_024;
  /** Datagrams that each socket takes in one turn. The rest of the turn fails with `jam`. */
  room: number = Infinity;
  /** `EAGAIN` is a socket without room, which is told of when there is some; everything else is an error for good. */
  jam: Errno = 'EAGAIN';
  /** The time to be woken at, as last asked. */
  wake: Instant | undefined;
  private arrivals: Arrivals | undefined;
  private clock = instant(1_000_000);
  private portsGiven = 49_152;
  private readonly descriptors: (Endpoint | undefined)[] = [];
  private readonly peers = new Map<string, MemoryPeer>();
  private readonly outgoing: Outgoing[] = [];
  private readonly incoming: Incoming[] = [];
  private readonly lent: Uint8Array[] = [];
  private readonly failures: SendFailed[] = [];
  private readonly takenByDescriptor = new Map<number, number>();
  private readonly watched = new Set<Endpoint>();
  /** Descriptors with a send that was refused since the last flush. */
  private readonly refused = new Set<number>();

  constructor({ batch = 32 }: MemoryOptions = {}) {
    this.capabilities = { name: 'memory', batch, localAddress: true };
  }

  attach(arrivals: Arrivals): void {
    this.arrivals = arrivals;
  }

  get socketCount(): number {
    return this.descriptors.filter((endpoint) => endpoint !== undefined).length;
  }

  portOf(listener: ListenerId): number | undefined {
    const descriptor = this.find('listener', listener);
    return descriptor === undefined ? undefined : this.descriptors[descriptor]?.address.port;
  }

  /** A peer at `at`; port 0 takes a free one. */
  peer(at: Address): MemoryPeer {
    const address = at.port === 0 ? { ...at, port: this.freePort() } : at;
    const peer: MemoryPeer = {
      address,
      mailbox: [],
      heard: () => undefined,
      send: (to, payload) => this.carry(address, to, Uint8Array.from(payload)),
      close: () => void this.peers.delete(formatAddress(address)),
      reopen: () => void this.peers.set(formatAddress(address), peer),
    };
    peer.reopen();
    return peer;
  }

  /** One turn with whatever is waiting; false when that is nothing. Lent bytes are overwritten when it is over. */
  deliver(): boolean {
    const { arrivals } = this;
    const refusals = this.takeRefusals();
    const writable = this.takeWritable();
    const incoming = this.incoming.splice(0);
    const total = refusals.length + writable.length + incoming.length;
    if (arrivals === undefined || total === 0) return false;
    for (const socket of refusals) arrivals.refused(socket);
    for (const one of writable) {
      if (one.kind === 'upstream') arrivals.upstreamWritable(one.id);
      else arrivals.listenerWritable(one.id);
    }
    for (const one of incoming) {
      if (this.descriptors.includes(one.endpoint)) this.lend(arrivals, one);
    }
    arrivals.endTurn();
    for (const buffer of this.lent.splice(0)) buffer.fill(POISON);
    return true;
  }

  /** Moves the clock. A timer that is due fires in a turn of its own. */
  pass(duration: Duration): void {
    this.clock = after(this.clock, duration);
    if (this.wake !== undefined && this.wake <= this.clock) this.fireTimer();
  }

  /** Fires the timer now, early or not. */
  fireTimer(): void {
    this.wake = undefined;
    this.arrivals?.timer();
    this.arrivals?.endTurn();
  }

  now(): Instant {
    return this.clock;
  }

  openListener(id: ListenerId, wanted: Address, { ipv6Only }: ListenerSocket): Opened {
    if (!isLoopback(wanted) && !isUnspecified(wanted)) return 'EADDRNOTAVAIL';
    const address = wanted.port === 0 ? { ...wanted, port: this.freePort() } : wanted;
    const wish: ListenerEndpoint = { kind: 'listener', id, address, ipv6Only };
    const taken = [...this.descriptors, ...this.peers.values()];
    if (taken.some((one) => one !== undefined && overlaps(wish, one))) return 'EADDRINUSE';
    return this.open(wish);
  }

  closeListener(listener: ListenerId): void {
    this.close(this.find('listener', listener));
  }

  openUpstream(id: SocketId, backend: Address, source: Address | undefined): Opened {
    if (isUnanswerable(backend)) return 'EACCES';
    if (source !== undefined && !isLoopback(source)) return 'EADDRNOTAVAIL';
    const address = { ...(source ?? loopback(backend.family, 0)), port: this.freePort() };
    return this.open({ kind: 'upstream', id, address, backend, refused: false });
  }

  closeUpstream(socket: SocketId): void {
    this.close(this.find('upstream', socket));
  }

  sendToBackend(socket: SocketId, header: Uint8Array | undefined, payload: Uint8Array): void {
    const about = { direction: 'to-backend', cause: 'blocked' } as const;
    this.collect(this.find('upstream', socket), { ...about, socket, header, payload });
  }

  sendToClient(
    listener: ListenerId,
    dst: Address,
    from: Address | undefined,
    payload: Uint8Array,
  ): void {
    const about = { direction: 'to-client', cause: 'blocked' } as const;
    this.collect(this.find('listener', listener), { ...about, listener, dst, from, payload });
  }

  watchUpstream(socket: SocketId): void {
    this.watch(this.find('upstream', socket));
  }

  watchListener(listener: ListenerId): void {
    this.watch(this.find('listener', listener));
  }

  flush(report: (failure: SendFailed) => void): void {
    this.transmit();
    this.takenByDescriptor.clear();
    this.refused.clear();
    for (const failure of this.failures.splice(0)) report(failure);
  }

  wakeAt(at: Instant | undefined): void {
    this.wake = at;
  }

  private freePort(): number {
    this.portsGiven += 1;
    return this.portsGiven;
  }

  private open(endpoint: Endpoint): Opened {
    const gap = this.descriptors.indexOf(undefined);
    const descriptor = gap < 0 ? this.descriptors.length : gap;
    if (descriptor >= this.descriptorsMax) return 'EMFILE';
    this.descriptors[descriptor] = endpoint;
    return undefined;
  }

  private close(descriptor: number | undefined): void {
    if (descriptor === undefined) return;
    const endpoint = this.descriptors[descriptor];
    if (endpoint !== undefined) this.watched.delete(endpoint);
    this.descriptors[descriptor] = undefined;
  }

  private watch(descriptor: number | undefined): void {
    const endpoint = descriptor === undefined ? undefined : this.descriptors[descriptor];
    if (endpoint !== undefined) this.watched.add(endpoint);
  }

  /** Sockets that hear of a refusal before a send does. */
  private takeRefusals(): SocketId[] {
    return this.descriptors.flatMap((one) =>
      one?.kind === 'upstream' && takeRefusal(one) ? one.id : [],
    );
  }

  /** Whoever is watched and has room, and is not watched any more. */
  private takeWritable(): readonly Endpoint[] {
    if (this.room === 0 && this.jam === 'EAGAIN') return [];
    const writable = [...this.watched];
    this.watched.clear();
    return writable;
  }

  private find(kind: Endpoint['kind'], id: ListenerId | SocketId): number | undefined {
    const at = this.descriptors.findIndex((one) => one?.kind === kind && one.id === id);
    return at < 0 ? undefined : at;
  }

  private collect(descriptor: number | undefined, datagram: SendBlocked): void {
    this.outgoing.push({ descriptor, datagram });
    if (this.outgoing.length >= this.capabilities.batch) this.transmit();
  }

  private transmit(): void {
    for (const one of this.outgoing.splice(0)) {
      const errno = this.hand(one);
      if (errno !== undefined) this.failures.push(sendFailureOf(one.datagram, errno));
    }
  }

  /** One datagram to the kernel that is not there: the descriptor means whatever it means at this moment. */
  private hand({ descriptor, datagram }: Outgoing): Errno | undefined {
    const endpoint = descriptor === undefined ? undefined : this.descriptors[descriptor];
    if (descriptor === undefined || endpoint === undefined) return 'EBADF';
    const bytes = bytesOf(datagram);
    if (bytes.length > DATAGRAM_BYTES_MAX) return 'EMSGSIZE';
    if (this.refused.has(descriptor)) return 'EAGAIN';
    if (!this.takeRoom(descriptor)) return this.jam;
    if (endpoint.kind === 'upstream') {
      // A stale refusal takes the place of a send, as it does in a kernel.
      if (takeRefusal(endpoint)) {
        this.refused.add(descriptor);
        return 'ECONNREFUSED';
      }
      endpoint.refused = !this.carry(endpoint.address, endpoint.backend, bytes);
    } else if (datagram.direction === 'to-client') {
      const to = unmap(datagram.dst);
      this.carry(datagram.from ?? sourceFor(endpoint.address, to), to, bytes);
    }
    return undefined;
  }

  /** Whether there was room for one more. A socket that was full stays so until the flush, whatever `room` says by then. */
  private takeRoom(descriptor: number): boolean {
    const taken = this.takenByDescriptor.get(descriptor) ?? 0;
    const isFull = taken === FULL || taken >= this.room;
    this.takenByDescriptor.set(descriptor, isFull ? FULL : taken + 1);
    return !isFull;
  }

  /** Whether somebody was there to take it. A connected socket hears its own peer only. */
  private carry(from: Address, to: Address, payload: Uint8Array): boolean {
    const peer = this.peers.get(formatAddress(to));
    if (peer !== undefined) {
      const received = { from, payload };
      peer.mailbox.push(received);
      peer.heard(received);
      return true;
    }
    const endpoint = this.descriptors.find((one) => one !== undefined && isAt(one, to));
    if (endpoint === undefined) return false;
    const stranger = endpoint.kind === 'upstream' && !sameAddress(endpoint.backend, from);
    if (!stranger) this.incoming.push({ endpoint, from, to, payload });
    return true;
  }

  private lend(arrivals: Arrivals, { endpoint, from, to, payload }: Incoming): void {
    this.lent.push(payload);
    if (endpoint.kind === 'upstream') return arrivals.backendDatagram(endpoint.id, payload);
    const local = isUnspecified(endpoint.address) ? to : undefined;
    arrivals.clientDatagram(endpoint.id, unmap(from), local, payload);
  }
}

function bytesOf(datagram: SendBlocked): Uint8Array {
  const header = datagram.direction === 'to-backend' ? datagram.header : undefined;
  return Uint8Array.from([...(header ?? []), ...datagram.payload]);
}

function loopback(family: 4 | 6, port: number): Address {
  return family === 4 ? ipv4(LOOPBACK, port) : ipv6([0, 0, 0, 1], port);
}

/** What a datagram to `to` leaves from: a wildcard stands for whichever address leads there. */
function sourceFor(bound: Address, to: Address): Address {
  return isUnspecified(bound) ? loopback(to.family, bound.port) : bound;
}

function takeRefusal(endpoint: UpstreamEndpoint): boolean {
  const { refused } = endpoint;
  endpoint.refused = false;
  return refused;
}

/** Whether a datagram to `to` reaches this endpoint. */
function isAt(endpoint: Endpoint, to: Address): boolean {
  if (endpoint.kind === 'upstream') return sameAddress(endpoint.address, to);
  return overlaps(endpoint, { address: to });
}

/** Whether a listener would hear what is meant for `other`: the same address, or a wildcard on the same port. */
function overlaps(
  listener: ListenerEndpoint,
  other: ListenerEndpoint | { address: Address },
): boolean {
  if (listener.address.port !== other.address.port) return false;
  return covers(listener, other.address) || ('kind' in other && covers(other, listener.address));
}

function covers({ address, ipv6Only }: ListenerEndpoint, other: Address): boolean {
  if (!isUnspecified(address)) return sameAddress(address, other);
  return address.family === other.family || (address.family === 6 && !ipv6Only);
}
