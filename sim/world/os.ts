/**
 * A simulated operating system behind the ports of the core. It is as unkind as a real one may be, and then some: it copies
 * payloads at the send and reads headers at the flush only, overwrites every buffer that it lent when the turn is over, gives
 * the lowest free descriptor first, and looks at its sockets in a drawn order. Whoever keeps a view too long is found out.
 */
import { isUnspecified, unmap, type Address } from '../../core/address.ts';
import { listenerOf, type ListenerId, type SocketId } from '../../core/brand.ts';
import {
  sendFailureOf,
  type Arrivals,
  type DriverCapabilities,
  type Errno,
  type ListenerSocket,
  type Opened,
  type Ports,
  type SendBlocked,
  type SendFailed,
} from '../../core/ports.ts';
import type { Instant } from '../../core/time.ts';
import type { QueuedEvent } from '../event-queue.ts';
import type { Random } from '../random.ts';
import type { Host } from './os-host.ts';
import { anywhere, type Sharing } from './os-bindings.ts';
import type { Kernel, KernelSocket, SocketWish } from './os-kernel.ts';
import { HostTimer } from './os-timer.ts';
import type { Datagram } from './wire.ts';

/** A socket of the data plane. */
type Line =
  | { readonly kind: 'listener'; readonly id: ListenerId; readonly socket: KernelSocket }
  | { readonly kind: 'upstream'; readonly id: SocketId; readonly socket: KernelSocket };

interface Outgoing {
  /** Undefined when the socket was not open. */
  readonly descriptor: number | undefined;
  /** The datagram with a payload of our own, in the words that lend it again if there is no room. */
  readonly datagram: SendBlocked;
}

/** One of several planes of a process, each with sockets of its own. */
export interface OsPlace {
  readonly plane: number;
  /** What its listeners share with those of the others. */
  readonly sharing: Sharing | undefined;
}

const ALONE: OsPlace = { plane: 0, sharing: undefined };

/** What lent bytes are overwritten with. */
export const POISON = 0xdb;

export class SimulatedOs implements Ports {
  readonly capabilities: DriverCapabilities;
  readonly kernel: Kernel;
  /** Turns so far, and those of them that brought nothing. */
  turns = 0;
  idleTurns = 0;
  readonly #host: Host;
  readonly #sharing: Sharing | undefined;
  readonly #order: Random;
  readonly #timer: HostTimer;
  readonly #listeners = new Map<ListenerId, Line>();
  readonly #upstreams = new Map<SocketId, Line>();
  #arrivals: Arrivals | undefined;
  #turn: QueuedEvent<() => void> | undefined;
  /** Lines with something to tell. */
  readonly #ready = new Set<Line>();
  readonly #late: { readonly listener: ListenerId; readonly errno: Errno }[] = [];
  readonly #outgoing: Outgoing[] = [];
  readonly #failures: SendFailed[] = [];
  /** Descriptors with a send that blocked or was refused since the last flush. */
  readonly #held = new Set<number>();
  readonly #lent: Uint8Array[] = [];

  constructor(kernel: Kernel, { plane, sharing }: OsPlace = ALONE) {
    const { host } = kernel;
    const name = plane === 0 ? '' : `${plane}`;
    const { batch, localAddress } = host.shape;
    this.capabilities = { name: 'simulated', batch, localAddress };
    this.kernel = kernel;
    this.#host = host;
    this.#sharing = sharing;
    this.#order = host.stream('sched', `sockets${name}`);
    this.#timer = new HostTimer(host, `data${name}`, () => this.#runTurn(true));
  }

  /** Says who hears of arrivals. Nothing may arrive before. */
  attach(arrivals: Arrivals): void {
    this.#arrivals = arrivals;
  }

  /** The port an open listener is bound to. */
  portOf(listener: ListenerId): number | undefined {
    return this.#listeners.get(listener)?.socket.local.port;
  }

  /** Where the socket of a flow sends from. */
  localOf(socket: SocketId): Address | undefined {
    return this.#upstreams.get(socket)?.socket.local;
  }

  /** Open listeners. */
  get listenerCount(): number {
    return this.#listeners.size;
  }

  /** Open sockets, listeners included and probes not. */
  get socketCount(): number {
    return this.#listeners.size + this.#upstreams.size;
  }

  /** Late failures that the process will hear of when it runs. */
  get failuresUntold(): number {
    return this.#late.length;
  }

  /** The process is gone: its sockets close, and nothing more is heard of it. */
  kill(): void {
    this.#timer.wakeAt(undefined);
    this.#host.cancel(this.#turn);
    this.#arrivals = undefined;
    for (const id of this.#listeners.keys()) this.closeListener(id);
    for (const id of this.#upstreams.keys()) this.closeUpstream(id);
  }

  now(): Instant {
    return this.#host.now();
  }

  openListener(id: ListenerId, local: Address, wanted: ListenerSocket): Opened {
    const socket = this.kernel.open({
      ...this.#wish(() => this.#listeners.get(id), id),
      ...wanted,
      local,
      peer: undefined,
      sharing: this.#sharing,
    });
    if (typeof socket === 'string') return socket;
    this.#listeners.set(id, { kind: 'listener', id, socket });
    return undefined;
  }

  closeListener(id: ListenerId): void {
    this.#close(this.#listeners.get(id));
    this.#listeners.delete(id);
  }

  openUpstream(id: SocketId, backend: Address, source: Address | undefined): Opened {
    const { socketBuffer } = this.#host.shape;
    const { onReady, onLateFailure } = this.#wish(() => this.#upstreams.get(id), listenerOf(id));
    const socket = this.kernel.open({
      onReady,
      onLateFailure,
      local: source === undefined ? anywhere(backend.family) : { ...source, port: 0 },
      ipv6Only: false,
      peer: backend,
      receiveBuffer: socketBuffer,
      sendBuffer: socketBuffer,
    });
    if (typeof socket === 'string') return socket;
    this.#upstreams.set(id, { kind: 'upstream', id, socket });
    return undefined;
  }

  closeUpstream(id: SocketId): void {
    this.#close(this.#upstreams.get(id));
    this.#upstreams.delete(id);
  }

  sendToBackend(socket: SocketId, header: Uint8Array | undefined, lent: Uint8Array): void {
    this.#collect(this.#upstreams.get(socket), {
      direction: 'to-backend',
      cause: 'blocked',
      socket,
      header,
      payload: lent.slice(),
    });
  }

  sendToClient(
    listener: ListenerId,
    dst: Address,
    from: Address | undefined,
    lent: Uint8Array,
  ): void {
    this.#collect(this.#listeners.get(listener), {
      direction: 'to-client',
      cause: 'blocked',
      listener,
      dst,
      from,
      payload: lent.slice(),
    });
  }

  watchUpstream(socket: SocketId): void {
    this.#watch(this.#upstreams.get(socket));
  }

  watchListener(listener: ListenerId): void {
    this.#watch(this.#listeners.get(listener));
  }

  flush(report: (failure: SendFailed) => void): void {
    this.#transmit();
    this.#held.clear();
    for (const failure of taken(this.#failures)) {
      report(failure);
      if (failure.cause === 'blocked') failure.payload.fill(POISON);
      else if (failure.cause === 'refused') this.#lent.push(failure.payload);
    }
  }

  wakeAt(at: Instant | undefined): void {
    this.#timer.wakeAt(at);
  }

  /** The callbacks of a socket, which are called before its line is known or after it is gone, too. */
  #wish(
    lineOf: () => Line | undefined,
    listener: ListenerId,
  ): Pick<SocketWish, 'onReady' | 'onLateFailure'> {
    return {
      onReady: () => this.#hasNews(lineOf()),
      onLateFailure: (errno) => {
        this.#late.push({ listener, errno });
        this.#wake();
      },
    };
  }

  #close(line: Line | undefined): void {
    if (line === undefined) return;
    this.#ready.delete(line);
    this.kernel.close(line.socket);
  }

  #watch(line: Line | undefined): void {
    if (line === undefined) return;
    line.socket.watched = true;
    if (this.kernel.hasRoom(line.socket)) this.#hasNews(line);
  }

  #hasNews(line: Line | undefined): void {
    if (line === undefined) return;
    this.#ready.add(line);
    this.#wake();
  }

  #wake(): void {
    this.#turn ??= this.#host.wake(() => this.#runTurn(false));
  }

  /** One look at everything: the timer, room, late failures, then each socket with news, in a drawn order. */
  #runTurn(timerFired: boolean): void {
    this.#host.cancel(this.#turn);
    this.#turn = undefined;
    const arrivals = this.#arrivals;
    if (arrivals === undefined) return;
    this.#poison();
    this.turns += 1;
    const lines = this.#order.shuffle('os.sockets', [...this.#ready]);
    this.#ready.clear();
    const writable = lines.filter((line) => this.#takeRoom(line));
    const late = taken(this.#late);
    if (timerFired) arrivals.timer();
    for (const line of writable) if (this.kernel.isOpen(line.socket)) tellRoom(arrivals, line);
    for (const { listener, errno } of late) arrivals.lateSendFailure(listener, errno);
    let heard = Number(timerFired) + writable.length + late.length;
    for (const line of lines) heard += this.#look(arrivals, line);
    if (heard > 0) arrivals.endTurn();
    else this.idleTurns += 1;
    this.#poison();
  }

  #takeRoom({ socket }: Line): boolean {
    if (!socket.watched || !this.kernel.hasRoom(socket)) return false;
    socket.watched = false;
    return true;
  }

  /** How much there was to hear on this line: a refusal, and datagrams up to the budget. What is left makes another turn. */
  #look(arrivals: Arrivals, line: Line): number {
    const { socket } = line;
    let heard = 0;
    if (line.kind === 'upstream' && this.kernel.takeRefusal(socket)) {
      arrivals.refused(line.id);
      heard += 1;
    }
    for (let rest = this.#host.shape.receiveBudget; rest > 0; rest--) {
      const datagram = this.kernel.receive(socket);
      if (datagram === undefined) return heard;
      this.#lend(arrivals, line, datagram);
      heard += 1;
    }
    if (socket.inbox.length > 0) this.#hasNews(line);
    return heard;
  }

  #lend(arrivals: Arrivals, { kind, id, socket }: Line, { src, dst, payload }: Datagram): void {
    const lent = payload.slice();
    this.#lent.push(lent);
    if (kind === 'upstream') return arrivals.backendDatagram(id, lent);
    const tellsLocal = this.capabilities.localAddress && isUnspecified(socket.local);
    arrivals.clientDatagram(id, src, tellsLocal ? dst : undefined, lent);
  }

  /** The turn is over: whoever still looks at what was lent sees none of it. */
  #poison(): void {
    for (const lent of this.#lent) lent.fill(POISON);
    this.#lent.length = 0;
  }

  #collect(line: Line | undefined, datagram: SendBlocked): void {
    this.#outgoing.push({ descriptor: line?.socket.descriptor, datagram });
    if (this.#outgoing.length >= this.capabilities.batch) this.#transmit();
  }

  #transmit(): void {
    for (const one of taken(this.#outgoing)) {
      const errno = this.#hand(one);
      if (errno !== undefined) this.#failures.push(sendFailureOf(one.datagram, errno));
    }
  }

  /** One datagram to the kernel: the descriptor means whatever it means at this moment. */
  #hand({ descriptor, datagram }: Outgoing): Errno | undefined {
    if (descriptor === undefined) return 'EBADF';
    const socket = this.kernel.descriptors.socketAt(descriptor);
    if (socket === undefined) return 'EBADF';
    if (this.#held.has(descriptor)) return 'EAGAIN';
    const errno =
      datagram.direction === 'to-backend'
        ? this.kernel.send(socket, datagram.header, datagram.payload)
        : this.kernel.send(socket, undefined, datagram.payload, unmap(datagram.dst), datagram.from);
    if (errno === 'EAGAIN' || errno === 'ECONNREFUSED') this.#held.add(descriptor);
    return errno;
  }
}

/** Everything out of a list, which mostly has nothing in it. */
function taken<Item>(list: Item[]): readonly Item[] {
  return list.length === 0 ? NOTHING : list.splice(0);
}

const NOTHING: readonly never[] = [];

function tellRoom(arrivals: Arrivals, line: Line): void {
  if (line.kind === 'upstream') arrivals.upstreamWritable(line.id);
  else arrivals.listenerWritable(line.id);
}
