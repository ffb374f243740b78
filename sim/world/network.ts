/**
 * The network between simulated hosts: a star, in which each host has a link up and a link down. It carries datagrams by
 * their destination, answers for closed ports as kernels do, and tells every packet's fate.
 */
import type { Address } from '../../core/address.ts';
import { formatAddress, isUnanswerable } from '../../core/address.ts';
import { assert, present } from '../../core/assert.ts';
import { microseconds } from '../../core/time.ts';
import type { VirtualClock } from '../clock.ts';
import type { EventQueue } from '../event-queue.ts';
import type { Random } from '../random.ts';
import type { LinkFaults } from './faults.ts';
import { FAULTLESS } from './faults.ts';
import type { IcmpLimits } from './icmp-limit.ts';
import { IcmpLimiter, LINUX_ICMP } from './icmp-limit.ts';
import { Link } from './link.ts';
import type { NatSettings } from './nat.ts';
import { Nat } from './nat.ts';
import type { AddressKey, LossCause, Packet, PacketKind, TellFate } from './packet.ts';
import { addressKey, destinationOf, ipKey } from './packet.ts';
import type { Datagram, Endpoint, Wire } from './wire.ts';

export interface NetworkOptions {
  readonly clock: VirtualClock;
  /** What is to happen; whoever drives the run calls the events when they are due. */
  readonly events: EventQueue<() => void>;
  /** The run's `net` stream. */
  readonly random: Random;
  readonly tell: TellFate;
  readonly icmp?: IcmpLimits;
}

export interface HostOptions {
  /** Its addresses, of any port; at least one, none of another host or NAT. */
  readonly ips: readonly Address[];
  /** What its links do outside of episodes. */
  readonly up: LinkFaults;
  readonly down: LinkFaults;
  /** The NAT it is behind, by name. */
  readonly nat?: string;
}

/** From a host to the others, from the others to it, or within it. */
export type LinkPlace = 'up' | 'down' | 'loopback';

/** An endpoint that also wants to hear of links that are too narrow for what it sent. */
export interface PathEndpoint extends Endpoint {
  /** An ICMP packet too big came back for this datagram; `mtu` is what the link takes, bytes of the IP packet. */
  tooBig?(datagram: Datagram, mtu: number): void;
}

export class Network implements Wire {
  readonly #options: NetworkOptions;
  readonly #hosts = new Map<string, Host>();
  readonly #nats = new Map<string, Nat>();
  readonly #byIp = new Map<AddressKey, Host | Nat>();
  readonly #endpoints = new Map<AddressKey, PathEndpoint>();
  /** Names as `from>to`. */
  readonly #cuts = new Set<string>();
  #serial = 0;

  constructor(options: NetworkOptions) {
    this.#options = options;
  }

  addNat(name: string, settings: NatSettings): Nat {
    assert(!this.#nats.has(name), 'a NAT has its name for itself');
    const nat = new Nat(name, settings, this.#options.random);
    this.#claim(settings.ip, nat);
    this.#nats.set(name, nat);
    return nat;
  }

  addHost(name: string, options: HostOptions): void {
    assert(!this.#hosts.has(name), 'a host has its name for itself');
    const { up, down, nat } = options;
    const host: Host = {
      name,
      nat: nat === undefined ? undefined : present(this.#nats.get(nat), 'NATs come first'),
      icmp: new IcmpLimiter(this.#options.icmp ?? LINUX_ICMP),
      running: true,
      up: this.#link(name, 'up', up, (packet) => this.#cross(host, packet)),
      down: this.#link(name, 'down', down, (packet) => this.#arrive(host, packet)),
      loopback: this.#link(name, 'loopback', LOOPBACK, (packet) => this.#arrive(host, packet)),
    };
    for (const ip of options.ips) this.#claim(ip, host);
    this.#hosts.set(name, host);
  }

  nat(name: string): Nat {
    return present(this.#nats.get(name), `${name} is a NAT`);
  }

  link(host: string, place: LinkPlace): Link {
    return this.#host(host)[place];
  }

  /** Takes a machine off the network, or back on it. Without it there is silence, not an ICMP error. */
  setRunning(host: string, running: boolean): void {
    this.#host(host).running = running;
  }

  /** Lets nothing get from one host to another; for both directions cut twice. What is on the second link arrives. */
  cut(from: string, to: string): void {
    this.#cuts.add(`${this.#host(from).name}>${this.#host(to).name}`);
  }

  mend(from: string, to: string): void {
    this.#cuts.delete(`${from}>${to}`);
  }

  /** Whether something may get from one host to another and back, bad luck aside. */
  connects(from: string, to: string): boolean {
    const [one, other] = [this.#host(from), this.#host(to)];
    if (!one.running || !other.running) return false;
    if (this.#cuts.has(`${from}>${to}`) || this.#cuts.has(`${to}>${from}`)) return false;
    return [one.up, one.down, other.up, other.down].every(
      ({ faults }) => !faults.partitioned && !faults.held,
    );
  }

  /** Ends all cuts and episodes. Lasting faults stay. */
  heal(): void {
    this.#cuts.clear();
    for (const { up, down, loopback } of this.#hosts.values()) {
      up.heal();
      down.heal();
      loopback.heal();
    }
  }

  /** Packets that are on some link. */
  get inFlight(): number {
    let total = 0;
    for (const { up, down, loopback } of this.#hosts.values()) {
      total += up.inFlight + down.inFlight + loopback.inFlight;
    }
    return total;
  }

  /** A concrete address of a host, nobody else's. */
  attach(address: Address, endpoint: PathEndpoint): void {
    const key = addressKey(address);
    const host = this.#byIp.get(ipKey(address));
    assert(host !== undefined && !(host instanceof Nat), `${formatAddress(address)} is a host's`);
    assert(!this.#endpoints.has(key), `${formatAddress(address)} is free`);
    this.#endpoints.set(key, endpoint);
  }

  detach(address: Address): void {
    this.#endpoints.delete(addressKey(address));
  }

  /** Sends from the host whose address the source is. The payload is copied. */
  send(datagram: Datagram): void {
    const host = this.#byIp.get(ipKey(datagram.src));
    assert(host !== undefined && !(host instanceof Nat), 'a source that lies is sent raw');
    this.#leave(host, this.#packet('datagram', copyOf(datagram), NOTHING));
  }

  /** Sends from a host under any source, past its NAT: nothing on the way looks at sources. */
  sendRaw(host: string, datagram: Datagram): void {
    const packet = this.#packet('datagram', copyOf(datagram), NOTHING);
    this.#leave(this.#host(host), { ...packet, raw: true });
  }

  #packet(
    kind: PacketKind,
    datagram: Datagram,
    { about, mtu }: Pick<Packet, 'about' | 'mtu'>,
  ): Packet {
    const serial = ++this.#serial;
    return { kind, serial, copy: false, raw: false, sent: datagram, datagram, about, mtu };
  }

  /** A packet sets out from its host. */
  #leave(host: Host, packet: Packet): void {
    this.#options.tell({ kind: 'sent', packet });
    if (!host.running) return this.#lose(packet, host.name, 'no-host');
    const local = this.#byIp.get(ipKey(destinationOf(packet))) === host;
    (local ? host.loopback : host.up).offer(packet);
  }

  /** A packet has left the host's neighbourhood, and finds the one it is for. */
  #cross(host: Host, packet: Packet): void {
    const neighbour = this.#byIp.get(ipKey(destinationOf(packet)));
    if (neighbour !== undefined && !(neighbour instanceof Nat) && neighbour.nat === host.nat) {
      return this.#descend(host, neighbour, packet);
    }
    const { nat } = host;
    if (nat === undefined || packet.raw) return this.#enterPublic(host, packet);
    const translated = nat.outward(packet, this.#options.clock.now());
    if (translated !== undefined) return this.#enterPublic(host, translated);
    this.#lose(packet, nat.name, packet.kind === 'datagram' ? 'nat-full' : 'no-mapping');
  }

  /** From here on only public addresses are known. */
  #enterPublic(host: Host, packet: Packet): void {
    const target = this.#byIp.get(ipKey(destinationOf(packet)));
    if (target === undefined) return this.#lose(packet, NOWHERE, 'no-host');
    if (!(target instanceof Nat)) {
      if (target.nat !== undefined) return this.#lose(packet, NOWHERE, 'no-host');
      return this.#descend(host, target, packet);
    }
    const translated = target.inward(packet, this.#options.clock.now());
    if (translated === undefined) return this.#lose(packet, target.name, 'no-mapping');
    const owner = this.#byIp.get(ipKey(destinationOf(translated)));
    assert(owner !== undefined && !(owner instanceof Nat), 'a mapping is of a socket of a host');
    this.#descend(host, owner, translated);
  }

  #descend(from: Host, to: Host, packet: Packet): void {
    if (this.#cuts.size > 0) {
      const pair = `${from.name}>${to.name}`;
      if (this.#cuts.has(pair)) return this.#lose(packet, pair, 'partition');
    }
    to.down.offer(packet);
  }

  #arrive(host: Host, packet: Packet): void {
    if (!host.running) return this.#lose(packet, host.name, 'no-host');
    const endpoint = this.#endpoints.get(addressKey(destinationOf(packet)));
    if (endpoint === undefined) {
      this.#lose(packet, host.name, 'no-port');
      if (packet.kind === 'datagram') this.#refuse(host, packet);
      return;
    }
    this.#options.tell({ kind: 'delivered', packet });
    const { kind, datagram, mtu } = packet;
    if (kind === 'datagram') endpoint.deliver(datagram);
    else if (kind === 'unreachable') endpoint.unreachable(datagram);
    else endpoint.tooBig?.(datagram, mtu);
  }

  /** Answers for a closed port, within the kernel's limits. There are none for what a host says to itself. */
  #refuse(host: Host, { datagram, serial }: Packet): void {
    if (isUnanswerable(datagram.src)) return;
    const peer = ipKey(datagram.src);
    const local = this.#byIp.get(peer) === host;
    if (!local && !host.icmp.allow(peer, this.#options.clock.now())) return;
    this.#leave(host, this.#packet('unreachable', datagram, { about: serial, mtu: 0 }));
  }

  /** A router at one of the host's links answers for a datagram that the link cannot take. */
  #answerTooBig(host: Host, { datagram, serial }: Packet, mtu: number): void {
    if (isUnanswerable(datagram.src)) return;
    const packet = this.#packet('too-big', datagram, { about: serial, mtu });
    this.#options.tell({ kind: 'sent', packet });
    this.#cross(host, packet);
  }

  #link(
    host: string,
    place: LinkPlace,
    faults: LinkFaults,
    arrive: (packet: Packet) => void,
  ): Link {
    const { clock, events, random, tell } = this.#options;
    return new Link({
      name: `${host}/${place}`,
      clock,
      events,
      random,
      faults,
      // Endpoints are called by events only: what they send meanwhile must not come back into them.
      atOnce: place === 'up',
      tell,
      arrive,
      tooBig: (packet, mtu) => this.#answerTooBig(this.#host(host), packet, mtu),
    });
  }

  #host(name: string): Host {
    return present(this.#hosts.get(name), `${name} is a host`);
  }

  #claim(ip: Address, owner: Host | Nat): void {
    assert(!this.#byIp.has(ipKey(ip)), `${formatAddress(ip)} is nobody else's`);
    this.#byIp.set(ipKey(ip), owner);
  }

  #lose(packet: Packet, where: string, cause: LossCause): void {
    this.#options.tell({ kind: 'lost', packet, where, cause });
  }
}

interface Host {
  readonly name: string;
  readonly nat: Nat | undefined;
  readonly icmp: IcmpLimiter;
  running: boolean;
  readonly up: Link;
  readonly down: Link;
  readonly loopback: Link;
}

/** What a packet within a host takes. */
const LOOPBACK: LinkFaults = {
  ...FAULTLESS,
  latency: { kind: 'constant', time: microseconds(10) },
};

/** Where packets to addresses of nobody are lost. */
const NOWHERE = 'nowhere';

/** What an ICMP error says beyond its kind, of a packet that is none. */
const NOTHING = { about: 0, mtu: 0 };

function copyOf({ src, dst, payload }: Datagram): Datagram {
  return { src, dst, payload: payload.slice() };
}
