/**
 * What the law suite of the drivers stands on: the world a driver must be given for it, a recorder of what it says, and the
 * few moves that the laws are written in.
 */
import { afterEach, beforeEach, expect, vi, type TestContext } from 'vitest';
import { ipv4, ipv6, type Address } from '../core/address.ts';
import { present } from '../core/assert.ts';
import { LIMITS } from '../core/config.ts';
import { listenerId, socketId, type ListenerId, type SocketId } from '../core/brand.ts';
import type { Arrivals, Errno, Opened, Ports, SendFailed } from '../core/ports.ts';
import type { Duration } from '../core/time.ts';

/** A driver and the host it lives on. */
export interface World {
  readonly ports: Ports;
  /** The port an open listener is bound to. */
  portOf(listener: ListenerId): number | undefined;
  /** Sockets that the driver holds open. */
  socketCount(): number;
  /** Ends a test that this host cannot serve, with a line that says why; in CI it fails. */
  need(context: TestContext, what: 'IPv6' | 'descriptor limits'): void;
  /** A program with a socket at `at`; port 0 takes a free one. */
  peer(at: Address): Peer;
  /** Resolves where this driver ends a turn: when it knows as much of the sends in it as the flush will report. */
  endOfTurn(): Promise<void>;
  /** Resolves when whatever is on its way to the driver or a peer has had its chance to arrive. */
  settle(): Promise<void>;
  /** Lets this much time pass, and the timer fire if it is due. */
  pass(duration: Duration): Promise<void>;
  /** How many datagrams each socket takes from now on, in this turn and in each later one; the rest finds no room. */
  setRoom(count: number): void;
  /** Calls `run` while the process may not open another descriptor. */
  withoutDescriptors(run: () => void): Promise<void>;
  /** Ends what the world holds besides the sockets of the driver. */
  dispose(): Promise<void>;
}

/** What a peer does, it does before the call returns. */
export interface Peer {
  readonly address: Address;
  /** Datagrams that nobody has looked at yet. */
  readonly mailbox: Received[];
  send(to: Address, payload: Uint8Array): void;
  /** Whoever sends to a closed peer is refused. */
  close(): void;
  /** The same address again. */
  reopen(): void;
}

export interface Received {
  readonly from: Address;
  readonly payload: Uint8Array;
}

export type MakeWorld = (arrivals: Arrivals) => Promise<World>;

export const LOOPBACK = 0x7f000001;
export const LOCAL: Address = ipv4(LOOPBACK, 0);
export const LOCAL_IPV6: Address = ipv6([0, 0, 0, 1], 0);
export const FRONT: ListenerId = listenerId(0);
export const OTHER_FRONT: ListenerId = listenerId(1);
export const UPSTREAM: SocketId = socketId(1, FRONT);
export const OTHER_UPSTREAM: SocketId = socketId(2, FRONT);

export type Heard =
  | {
      readonly kind: 'client';
      readonly listener: ListenerId;
      readonly src: Address;
      readonly local: Address | undefined;
      readonly payload: Uint8Array;
    }
  | { readonly kind: 'backend'; readonly socket: SocketId; readonly payload: Uint8Array }
  | { readonly kind: 'refused'; readonly socket: SocketId }
  | { readonly kind: 'writable'; readonly socket: SocketId | ListenerId }
  | { readonly kind: 'late'; readonly listener: ListenerId; readonly errno: Errno }
  | { readonly kind: 'timer' }
  | { readonly kind: 'endTurn' };

type HeardOf<Kind extends Heard['kind']> = Extract<Heard, { kind: Kind }>;

/** A fresh world for every test of the suite that calls this. */
export function benchFor(make: MakeWorld): DriverBench {
  const bench = new DriverBench();
  beforeEach(async () => {
    bench.reset(await make(bench));
  });
  afterEach(async () => {
    bench.call(closeEverything);
    await bench.world.dispose();
    expect(bench.heardInCall, 'nothing arrives inside a port call').toBe(0);
  });
  return bench;
}

function closeEverything(ports: Ports): void {
  ports.wakeAt(undefined);
  for (const listener of [FRONT, OTHER_FRONT]) ports.closeListener(listener);
  for (const socket of [UPSTREAM, OTHER_UPSTREAM]) ports.closeUpstream(socket);
}

/** Stands where the pump stands: hears the driver, ends its turns with a flush, and keeps all of it. */
export class DriverBench implements Arrivals {
  log: Heard[] = [];
  failures: SendFailed[] = [];
  heardInCall = 0;
  private inCall = false;
  private live: World | undefined;

  reset(world: World): void {
    this.live = world;
    this.log = [];
    this.failures = [];
    this.heardInCall = 0;
  }

  get world(): World {
    return present(this.live, 'a test has a world');
  }

  /** Port calls between turns. */
  call<T>(calls: (ports: Ports) => T): T {
    this.inCall = true;
    try {
      return calls(this.world.ports);
    } finally {
      this.inCall = false;
    }
  }

  /** Port calls of one turn, to its end; what its flush could not send. */
  async turn(calls: (ports: Ports) => void): Promise<readonly SendFailed[]> {
    this.failures = [];
    this.call(calls);
    await this.world.endOfTurn();
    this.flush();
    return this.failures;
  }

  /** A turn of one datagram on UPSTREAM. */
  async forward(payload: Uint8Array): Promise<readonly SendFailed[]> {
    return this.turn((ports) => ports.sendToBackend(UPSTREAM, undefined, payload));
  }

  tryListen(listener: ListenerId, at: Address, ipv6Only: boolean): Opened {
    const { socketBuffer: size } = LIMITS;
    const socket = { ipv6Only, receiveBuffer: size, sendBuffer: size };
    return this.call((ports) => ports.openListener(listener, at, socket));
  }

  /** Opens a listener; where it is reached. */
  listen(listener: ListenerId, at: Address): Address {
    expect(this.tryListen(listener, at, false)).toBeUndefined();
    return { ...at, port: present(this.world.portOf(listener), 'an open listener has a port') };
  }

  tryConnect(socket: SocketId, backend: Address, source?: Address): Opened {
    return this.call((ports) => ports.openUpstream(socket, backend, source));
  }

  connect(socket: SocketId, backend: Address, source?: Address): void {
    expect(this.tryConnect(socket, backend, source)).toBeUndefined();
  }

  /** A client, the listener FRONT that it can ask, the socket UPSTREAM and the backend behind it. */
  pair(): { readonly client: Peer; readonly front: Address; readonly backend: Peer } {
    const backend = this.world.peer(LOCAL);
    const front = this.listen(FRONT, LOCAL);
    this.connect(UPSTREAM, backend.address);
    return { client: this.world.peer(LOCAL), front, backend };
  }

  of<Kind extends Heard['kind']>(kind: Kind): HeardOf<Kind>[] {
    return this.log.filter((heard): heard is HeardOf<Kind> => heard.kind === kind);
  }

  /** The first `count` of a kind, once that many were heard. */
  async hear<Kind extends Heard['kind']>(kind: Kind, count: number): Promise<HeardOf<Kind>[]> {
    await this.until(() => this.of(kind).length >= count, `${count} × ${kind}`);
    return this.of(kind).slice(0, count);
  }

  /** The next datagram of a peer's mailbox. */
  async receive(peer: Peer): Promise<Received> {
    await this.until(() => peer.mailbox.length > 0, 'a datagram for the peer');
    return present(peer.mailbox.shift(), 'the mailbox has one');
  }

  clientDatagram(
    listener: ListenerId,
    src: Address,
    local: Address | undefined,
    payload: Uint8Array,
  ): void {
    this.note({ kind: 'client', listener, src, local, payload: Uint8Array.from(payload) });
  }

  backendDatagram(socket: SocketId, payload: Uint8Array): void {
    this.note({ kind: 'backend', socket, payload: Uint8Array.from(payload) });
  }

  /** So a driver that pushes trains is heard datagram by datagram. */
  clientTrain(): boolean {
    return false;
  }

  backendTrain(): boolean {
    return false;
  }

  refused(socket: SocketId): void {
    this.note({ kind: 'refused', socket });
  }

  upstreamWritable(socket: SocketId): void {
    this.note({ kind: 'writable', socket });
  }

  listenerWritable(listener: ListenerId): void {
    this.note({ kind: 'writable', socket: listener });
  }

  lateSendFailure(listener: ListenerId, errno: Errno): void {
    this.note({ kind: 'late', listener, errno });
  }

  timer(): void {
    this.note({ kind: 'timer' });
  }

  endTurn(): void {
    this.note({ kind: 'endTurn' });
    this.flush();
  }

  private note(heard: Heard): void {
    if (this.inCall) this.heardInCall += 1;
    this.log.push(heard);
  }

  private flush(): void {
    this.call((ports) => ports.flush((failure) => this.failures.push(copyOf(failure))));
  }

  private async until(done: () => boolean, wanted: string): Promise<void> {
    await vi.waitFor(
      async () => {
        await this.world.settle();
        expect(done(), `waited for ${wanted}`).toBe(true);
      },
      { timeout: 10_000, interval: 1 },
    );
  }
}

/** The bytes of a blocked datagram are lent for the call that reports it. */
function copyOf(failure: SendFailed): SendFailed {
  if (failure.cause === 'error') return failure;
  const payload = failure.payload.slice();
  if (failure.direction === 'to-client') return { ...failure, payload };
  return { ...failure, header: failure.header?.slice(), payload };
}

/** Bytes that tell where they are cut and which datagram they are. */
export function bytes(size: number, salt = 0): Uint8Array {
  return Uint8Array.from({ length: size }, (_, at) => (at * 31 + salt * 7 + (at >>> 8)) & 0xff);
}
