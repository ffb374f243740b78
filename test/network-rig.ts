/** For tests of a simulated network: three hosts and, behind a NAT, two more. */
import { type Address, formatAddress, ipv4 } from '../core/address.ts';
import { assert } from '../core/assert.ts';
import { instant, microseconds, milliseconds, seconds } from '../core/time.ts';
import { VirtualClock } from '../sim/clock.ts';
import { EventQueue } from '../sim/event-queue.ts';
import { seededStreams } from '../sim/random.ts';
import { seedFromNumber } from '../sim/seed.ts';
import type { LinkFaults } from '../sim/world/faults.ts';
import { FAULTLESS } from '../sim/world/faults.ts';
import type { Nat, NatSettings } from '../sim/world/nat.ts';
import type { HostOptions } from '../sim/world/network.ts';
import { Network } from '../sim/world/network.ts';
import type { PacketFate } from '../sim/world/packet.ts';
import { FateLedger } from '../sim/world/packet.ts';
import type { Datagram } from '../sim/world/wire.ts';

const MILLISECOND: LinkFaults = {
  ...FAULTLESS,
  latency: { kind: 'constant', time: milliseconds(1) },
};

const A: Address = ipv4(0x0a000001, 0);
const B: Address = ipv4(0x0a000002, 0);
const C: Address = ipv4(0x0a000003, 0);
export const NAT_IP: Address = ipv4(0x0a0000fe, 0);
const P: Address = ipv4(0xc0a80001 | 0, 0);
const Q: Address = ipv4(0xc0a80002 | 0, 0);

/** The ports of each host. */
export const a = at(A);
export const b = at(B);
export const c = at(C);
export const p = at(P);
export const q = at(Q);

/** The ip of nobody. */
export const nobody = at(ipv4(0x0a000063, 0));

export const HOME: NatSettings = {
  ip: NAT_IP,
  ports: { first: 40_000, count: 1_000 },
  idle: seconds(30),
  mapping: 'endpoint-independent',
  filtering: 'endpoint-dependent',
  rebinding: { numerator: 0, denominator: 1 },
};

/** `at 5000: b:53 < a:1000 hello`, `at 5000: a:1000 refused b:53 hello`: what an endpoint was told. */
export class NetworkRig {
  readonly clock = new VirtualClock();
  readonly events: EventQueue<() => void>;
  readonly network: Network;
  readonly nat: Nat;
  readonly ledger = new FateLedger();
  readonly fates: PacketFate[] = [];
  readonly log: string[] = [];
  readonly heard: Datagram[] = [];
  /** Told before anything is delivered to an endpoint. */
  onDelivery: (datagram: Datagram) => void = () => {};

  constructor({
    seed = 1,
    links = MILLISECOND,
    nat = HOME,
  }: { seed?: number; links?: LinkFaults; nat?: NatSettings } = {}) {
    const { net, sched } = seededStreams(seedFromNumber(seed));
    this.events = new EventQueue(sched);
    this.network = new Network({
      clock: this.clock,
      events: this.events,
      random: net,
      tell: (fate) => {
        this.fates.push(fate);
        this.ledger.tell(fate);
      },
    });
    this.nat = this.network.addNat('home', nat);
    const plain = (ip: Address): HostOptions => ({ ips: [ip], up: links, down: links });
    for (const [name, ip] of Object.entries({ a: A, b: B, c: C })) {
      this.network.addHost(name, plain(ip));
    }
    for (const [name, ip] of Object.entries({ p: P, q: Q })) {
      this.network.addHost(name, { ...plain(ip), nat: 'home' });
    }
  }

  /** Listens at an address, and writes what it hears into the log. */
  listen(address: Address, hearsTooBig = false): void {
    const note = (what: string): void => {
      this.log.push(`${this.clock.now()}: ${formatAddress(address)} ${what}`);
    };
    const endpoint = {
      deliver: (datagram: Datagram): void => {
        this.onDelivery(datagram);
        this.heard.push(datagram);
        note(`heard ${formatAddress(datagram.src)} ${text(datagram)}`);
      },
      unreachable: (datagram: Datagram): void =>
        note(`refused at ${formatAddress(datagram.dst)} ${text(datagram)}`),
    };
    const tooBig = ({ dst }: Datagram, mtu: number): void =>
      note(`too big for ${formatAddress(dst)}: ${mtu}`);
    this.network.attach(address, hearsTooBig ? { ...endpoint, tooBig } : endpoint);
  }

  send(src: Address, dst: Address, what = ''): void {
    this.network.send(datagramOf(src, dst, what));
  }

  /** Runs the events up to an instant. After each the network's own count must be the ledger's. */
  runUntil(until: number): void {
    for (let next = this.events.nextAt(); next !== undefined; next = this.events.nextAt()) {
      if (next > until) break;
      this.clock.advanceTo(next);
      this.events.pop()?.value();
      assert(this.network.inFlight === this.ledger.inFlight, 'nothing is lost untold');
    }
    this.clock.advanceTo(instant(until));
  }

  /** Runs until nothing is to happen any more, and returns what was logged since the last time. */
  finish(): string[] {
    for (let next = this.events.nextAt(); next !== undefined; next = this.events.nextAt()) {
      this.runUntil(next);
    }
    assert(this.network.inFlight === 0, 'everything arrives or is lost');
    return this.log.splice(0);
  }

  /** Lets time pass. */
  rest(count: number): void {
    this.runUntil(this.clock.now() + microseconds(count));
  }

  /** The losses so far, by cause. */
  get lost(): Record<string, number> {
    return Object.fromEntries(this.ledger.lost);
  }
}

export function datagramOf(src: Address, dst: Address, what: string): Datagram {
  return { src, dst, payload: Uint8Array.from(what, (letter) => letter.charCodeAt(0)) };
}

function at(ip: Address): (port: number) => Address {
  return (port) => ({ ...ip, port });
}

function text({ payload }: Datagram): string {
  return String.fromCharCode(...payload);
}
