/**
 * What travels, and what became of it. The network tells every fate as it happens: it is the ground truth that the oracles
 * hold against what the proxy counted.
 */
import type { Address } from '../../core/address.ts';
import type { Datagram } from './wire.ts';

/** A datagram, or an ICMP error: port unreachable, or packet too big. */
export type PacketKind = 'datagram' | 'unreachable' | 'too-big';

/** One thing on its way. An immutable value: a NAT and a corruption make new ones, with the same serial number. */
export interface Packet {
  readonly kind: PacketKind;
  /** Counted up from 1 in a network. Copies share it. */
  readonly serial: number;
  /** Made by the network out of another one. */
  readonly copy: boolean;
  /** Sent raw: its source may be a lie, and no NAT translates it. */
  readonly raw: boolean;
  /** As its sender handed it in. */
  readonly sent: Datagram;
  /** As it is now. An ICMP error carries the datagram it quotes, as the sender of that one knows it. */
  readonly datagram: Datagram;
  /** The serial number of the datagram an ICMP error is about; 0 for a datagram. */
  readonly about: number;
  /** What the narrow link takes, bytes; 0 but for `too-big`. */
  readonly mtu: number;
}

/**
 * Why a packet is lost. `loss` is plain bad luck; `checksum` a corruption that the receiver notices; `no-host` an address of
 * nobody, or of a machine that is off; `no-port` a machine that has nobody at that port.
 */
export type LossCause =
  | 'partition'
  | 'too-big'
  | 'loss'
  | 'checksum'
  | 'queue-full'
  | 'no-host'
  | 'no-port'
  | 'no-mapping'
  | 'nat-full';

/** How a payload is changed. */
export type Corruption = 'flip' | 'cut' | 'extend';

/** `where` is the name of the link, host or NAT. A duplicated packet is the copy, a corrupted one what goes on from there. */
export type PacketFate =
  | { readonly kind: 'sent' | 'delivered'; readonly packet: Packet }
  | { readonly kind: 'duplicated' | 'reordered'; readonly packet: Packet; readonly where: string }
  | {
      readonly kind: 'corrupted';
      readonly packet: Packet;
      readonly where: string;
      readonly how: Corruption;
    }
  | {
      readonly kind: 'lost';
      readonly packet: Packet;
      readonly where: string;
      readonly cause: LossCause;
    };

export type TellFate = (fate: PacketFate) => void;

/** Where a packet is going: an ICMP error goes to the sender of what it quotes. */
export function destinationOf({ kind, datagram }: Packet): Address {
  return kind === 'datagram' ? datagram.dst : datagram.src;
}

/** Bytes of the whole IP packet. An ICMP error quotes no more than fits 576 bytes (RFC 1812 §4.3.2.3; 1,280 in IPv6). */
export function wireBytes({ kind, datagram }: Packet): number {
  const isIpv4 = datagram.dst.family === 4;
  const bytes = datagram.payload.length + (isIpv4 ? 28 : 48);
  if (kind === 'datagram') return bytes;
  return isIpv4 ? Math.min(bytes + 28, 576) : Math.min(bytes + 48, 1_280);
}

/** An address as a key of a map: equal addresses have equal keys. A number for IPv4, which is the usual case. */
export type AddressKey = number | string;

export function addressKey(address: Address): AddressKey {
  if (address.family === 4) return (address.a >>> 0) * 65_536 + address.port;
  return `${address.a},${address.b},${address.c},${address.d},${address.scope},${address.port}`;
}

/** The key of the address without its port. */
export function ipKey(address: Address): AddressKey {
  if (address.family === 4) return address.a >>> 0;
  return `${address.a},${address.b},${address.c},${address.d},${address.scope}`;
}

/** Sums of fates. At every instant `sent + duplicated = delivered + lost + in flight`. */
export class FateLedger {
  sent = 0;
  delivered = 0;
  duplicated = 0;
  reordered = 0;
  corrupted = 0;
  /** Losses by their causes, in the order these came up first. */
  readonly lost: Map<LossCause, number> = new Map();

  readonly tell: TellFate = (fate) => {
    if (fate.kind === 'lost') this.lost.set(fate.cause, (this.lost.get(fate.cause) ?? 0) + 1);
    else this[fate.kind] += 1;
  };

  get lostTotal(): number {
    let total = 0;
    for (const count of this.lost.values()) total += count;
    return total;
  }

  get inFlight(): number {
    return this.sent + this.duplicated - this.delivered - this.lostTotal;
  }
}
