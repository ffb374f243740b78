/**
 * Network address translation (RFC 4787): private hosts share one public address, and each of their sockets has a public port
 * until it has been idle for too long. Then, or when told, or by chance, it gets another port: the client that a proxy knew has
 * become a new one, and somebody else may get its old port.
 */
import { assert } from '../../core/assert.ts';
import type { Address } from '../../core/address.ts';
import { sameAddress } from '../../core/address.ts';
import type { Duration, Instant } from '../../core/time.ts';
import type { Random } from '../random.ts';
import type { Ratio } from './faults.ts';
import type { AddressKey, Packet } from './packet.ts';
import { addressKey } from './packet.ts';
import type { Datagram } from './wire.ts';

export interface NatSettings {
  /** Public; its port is of no meaning. */
  readonly ip: Address;
  /** The public ports it hands out: `first` and the `count` − 1 after it. */
  readonly ports: { readonly first: number; readonly count: number };
  /** A mapping without a packet for so long, in either direction, ends. */
  readonly idle: Duration;
  /** One port for a socket whoever it talks to, or one for each whom it talks to (a symmetric NAT). */
  readonly mapping: 'endpoint-independent' | 'endpoint-dependent';
  /** Who may answer: everybody, or only those whom the socket has sent to. */
  readonly filtering: 'endpoint-independent' | 'endpoint-dependent';
  /** How often an outgoing datagram loses its mapping first, and so gets a new port. */
  readonly rebinding: Ratio;
}

export class Nat {
  readonly name: string;
  readonly #settings: NatSettings;
  readonly #random: Random;
  /** By the private address, and the peer where it matters. Ended mappings stay until they are replaced. */
  readonly #bySocket = new Map<string, Mapping>();
  readonly #byPort = new Map<number, Mapping>();
  #rebinding: Ratio;

  /** Takes a fork of `random` under its name. */
  constructor(name: string, settings: NatSettings, random: Random) {
    const { first, count } = settings.ports;
    assert(first >= 1 && count >= 1 && first + count <= 65_536, 'ports are 1 to 65,535');
    this.name = name;
    this.#settings = settings;
    this.#random = random.fork(name);
    this.#rebinding = settings.rebinding;
  }

  get ip(): Address {
    return this.#settings.ip;
  }

  /** Changes how often chance rebinds. */
  setRebinding(ratio: Ratio): void {
    this.#rebinding = ratio;
  }

  /** Ends the mappings of a private socket: its next datagram leaves from another port, if one is free. */
  rebind(socket: Address): void {
    for (const mapping of this.#bySocket.values()) {
      if (sameAddress(mapping.socket, socket)) mapping.until = 0;
    }
  }

  /** Forgets everything, as a restart does: old ports are as likely as any. */
  reset(): void {
    this.#bySocket.clear();
    this.#byPort.clear();
  }

  /** The public ports in use. */
  live(now: Instant): number {
    let live = 0;
    for (const mapping of this.#byPort.values()) if (unended(mapping, now)) live += 1;
    return live;
  }

  /** A packet of a private host as the public sees it; undefined when it finds no port. */
  outward(packet: Packet, now: Instant): Packet | undefined {
    const { datagram } = packet;
    if (packet.kind === 'datagram') {
      const mapping = this.#mapOutgoing(datagram, now);
      return mapping && { ...packet, datagram: { ...datagram, src: this.#public(mapping) } };
    }
    const quoted = unended(this.#bySocket.get(this.#key(datagram.dst, datagram.src)), now);
    return quoted && { ...packet, datagram: { ...datagram, dst: this.#public(quoted) } };
  }

  /** A packet to the public address as a private host sees it; undefined when no mapping lets it in. */
  inward(packet: Packet, now: Instant): Packet | undefined {
    const { datagram } = packet;
    if (packet.kind === 'datagram') {
      const mapping = unended(this.#byPort.get(datagram.dst.port), now);
      if (mapping === undefined || !this.#admits(mapping, datagram.src)) return undefined;
      mapping.until = now + this.#settings.idle;
      return { ...packet, datagram: { ...datagram, dst: mapping.socket } };
    }
    const mapping = unended(this.#byPort.get(datagram.src.port), now);
    return mapping && { ...packet, datagram: { ...datagram, src: mapping.socket } };
  }

  #mapOutgoing({ src, dst }: Datagram, now: Instant): Mapping | undefined {
    const { numerator, denominator } = this.#rebinding;
    const rebinds = this.#random.chance('nat.rebind', numerator, denominator);
    const key = this.#key(src, dst);
    const known = this.#bySocket.get(key);
    if (rebinds && known !== undefined) known.until = 0;
    const mapping = unended(known, now) ?? this.#map(key, src, known?.port, now);
    if (mapping === undefined) return undefined;
    mapping.until = now + this.#settings.idle;
    mapping.peers.add(addressKey(dst));
    return mapping;
  }

  #map(
    key: string,
    socket: Address,
    before: number | undefined,
    now: Instant,
  ): Mapping | undefined {
    const port = this.#freePort(before, now);
    if (port === undefined) return undefined;
    const mapping: Mapping = { socket, port, until: now, peers: new Set() };
    this.#bySocket.set(key, mapping);
    this.#byPort.set(port, mapping);
    return mapping;
  }

  /** The first free port from a drawn one on; the one it had before is the last choice. */
  #freePort(before: number | undefined, now: Instant): number | undefined {
    const { first, count } = this.#settings.ports;
    const start = this.#random.choose('nat.port', count);
    for (let step = 0; step < count; step++) {
      const port = first + ((start + step) % count);
      if (port !== before && this.#isFree(port, now)) return port;
    }
    return before !== undefined && this.#isFree(before, now) ? before : undefined;
  }

  #isFree(port: number, now: Instant): boolean {
    return unended(this.#byPort.get(port), now) === undefined;
  }

  #admits(mapping: Mapping, peer: Address): boolean {
    return (
      this.#settings.filtering === 'endpoint-independent' || mapping.peers.has(addressKey(peer))
    );
  }

  #key(socket: Address, peer: Address): string {
    const own = addressKey(socket);
    return this.#settings.mapping === 'endpoint-dependent'
      ? `${own}>${addressKey(peer)}`
      : `${own}`;
  }

  #public(mapping: Mapping): Address {
    return { ...this.#settings.ip, port: mapping.port };
  }
}

interface Mapping {
  readonly socket: Address;
  readonly port: number;
  /** When it ends, if nothing comes. */
  until: number;
  /** Whom the socket has sent to. */
  readonly peers: Set<AddressKey>;
}

/** The mapping, unless it has ended. */
function unended(mapping: Mapping | undefined, now: Instant): Mapping | undefined {
  return mapping !== undefined && now < mapping.until ? mapping : undefined;
}
