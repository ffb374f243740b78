/**
 * Other addresses in place of those in a trace: equal ones stay equal, and two that share their first bits share as many
 * afterwards (Xu et al., "Prefix-preserving IP address anonymization", 2002). What an address means stays: loopback, multicast,
 * unspecified and mapped ones are so afterwards. Ports and zones stay.
 */
import { ipv4, ipv6, isMapped, prefixMask, type Address } from './address.ts';

/** Whether the bit after a prefix is turned over; a function of the prefix under a secret. `4:0101`, `6:`, … */
export type Flip = (prefix: string) => boolean;

interface Block {
  readonly bits: string;
  /** Addresses in it stay; else only the bits that make them its members. */
  readonly stays: boolean;
}

const IPV4_BLOCKS: readonly Block[] = [
  { bits: '00000000', stays: true },
  { bits: '01111111', stays: true },
  { bits: '111', stays: true },
];
const IPV6_BLOCKS: readonly Block[] = [
  { bits: '0'.repeat(96), stays: true },
  { bits: '11111111', stays: true },
  { bits: '1111111010', stays: false },
];

export class AddressDisguise {
  private readonly flip: Flip;
  private readonly known = new Map<string, string>();

  constructor(flip: Flip) {
    this.flip = flip;
  }

  address(address: Address): Address {
    const { port, scope } = address;
    if (isMapped(address)) {
      const { a } = this.address(ipv4(address.d, port));
      return ipv6([0, 0, 0xffff, a], port, scope);
    }
    if (address.family === 4) return ipv4(wordOf(this.bits('4', bitsOf(address.a)), 0), port);
    const bits = this.bits('6', [address.a, address.b, address.c, address.d].map(bitsOf).join(''));
    return ipv6([wordOf(bits, 0), wordOf(bits, 1), wordOf(bits, 2), wordOf(bits, 3)], port, scope);
  }

  /** A block of addresses: the block of those that its members become. */
  block(base: Address, length: number): Address {
    const moved = this.address(base);
    const word = (value: number, at: number): number => value & prefixMask(length - 32 * at);
    if (moved.family === 4) return ipv4(word(moved.a, 0), moved.port);
    const words = [moved.a, moved.b, moved.c, moved.d].map(word);
    const [a = 0, b = 0, c = 0, d = 0] = words;
    return ipv6([a, b, c, d], moved.port, moved.scope);
  }

  private bits(family: '4' | '6', bits: string): string {
    const known = this.known.get(family + bits);
    if (known !== undefined) return known;
    const blocks = family === '4' ? IPV4_BLOCKS : IPV6_BLOCKS;
    const isFixed = blocks.some((block) => block.stays && bits.startsWith(block.bits));
    const moved = isFixed ? bits : this.move(family, bits, blocks);
    this.known.set(family + bits, moved);
    return moved;
  }

  /** Bits on the way to a block stay, so that nothing gets in or out of it. */
  private move(family: string, bits: string, blocks: readonly Block[]): string {
    let moved = '';
    for (let length = 0; length < bits.length; length += 1) {
      const prefix = bits.slice(0, length);
      const bit = bits.charAt(length);
      const leads = blocks.some((block) => {
        return block.bits.length > length && block.bits.startsWith(prefix);
      });
      moved += !leads && this.flip(`${family}:${prefix}`) ? (bit === '0' ? '1' : '0') : bit;
    }
    return moved;
  }
}

function bitsOf(word: number): string {
  return (word >>> 0).toString(2).padStart(32, '0');
}

function wordOf(bits: string, at: number): number {
  return Number.parseInt(bits.slice(32 * at, 32 * at + 32), 2) | 0;
}
