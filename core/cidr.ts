/**
 * Address blocks (CIDR, RFC 4632 and RFC 4291 §2.3), and lists of blocks whose clients are let in or kept out.
 *
 * The longest prefix that holds an address decides; where one block stands in both lists, deny wins. Blocks are nested or
 * apart, never crossed, so they cut the address space into at most 2 n + 1 ranges of which each has one deciding block: a
 * look-up is a binary search over sorted words, 15 steps for 10,000 blocks, and allocates nothing. IPv4-mapped IPv6 is
 * unmapped where a block is read; clients arrive unmapped (doc/decisions/0002-addresses.md).
 */
import {
  formatIp,
  ipv4,
  ipv6,
  isMapped,
  parseIp,
  prefixMask,
  sameAddress,
  unmap,
  type Address,
} from './address.ts';
import { assert, present } from './assert.ts';

/** A block of addresses: the first `bits` bits are those of `base`, whose other bits, port and zone are 0. */
export interface Cidr {
  readonly base: Address;
  /** 0 to 32 for IPv4, 0 to 128 for IPv6. */
  readonly bits: number;
}

export type ParsedCidr =
  | { readonly ok: true; readonly cidr: Cidr }
  | { readonly ok: false; readonly problem: string; readonly fix: string };

/** `10.0.0.0/8`, `2001:db8::/32`, or an address alone for a block of one. Problem and fix are for an operator. */
export function parseCidr(text: string): ParsedCidr {
  const slash = text.indexOf('/');
  const literal = slash < 0 ? text : text.slice(0, slash);
  const written = parseIp(literal, 0);
  if (written === undefined) {
    return refused(`"${literal}" is not an IP address`, 'write a block such as 10.0.0.0/8');
  }
  if (written.scope !== 0) return refused('a block has no zone', 'write it without %');
  const width = widthOf(written);
  const bits = slash < 0 ? width : parseBits(text.slice(slash + 1), width);
  if (bits === undefined) {
    return refused(`"${text.slice(slash + 1)}" is not a prefix length`, `write 0 to ${width}`);
  }
  const base = masked(written, bits);
  if (formatIp(base) !== formatIp(written)) {
    const meant = `${formatIp(base)}/${bits}`;
    const fix = `write ${meant}, or the address without a length`;
    return refused('bits are set behind the prefix', fix);
  }
  return { ok: true, cidr: unmapBlock({ base, bits }) };
}

/** The canonical text, with its prefix length: `10.0.0.0/8`. */
export function formatCidr({ base, bits }: Cidr): string {
  return `${formatIp(base)}/${bits}`;
}

export type AccessVerdict = 'allow' | 'deny';

export interface AccessRule {
  readonly cidr: Cidr;
  readonly verdict: AccessVerdict;
}

/** Blocks of one list at most: 0.4 MiB when all are IPv6. */
export const ACCESS_RULES_MAX = 10_000;

/** Built when the configuration changes, read for each client datagram: an operator's no ends a live flow too. */
export class AccessList {
  private readonly allow: readonly Cidr[];
  private readonly deny: readonly Cidr[];
  private readonly whenUnlisted: boolean;
  private readonly v4: RangeTable;
  private readonly v6: RangeTable;

  /** Without allowed blocks everybody is allowed who is not denied; with some, nobody else is. */
  constructor(allow: readonly Cidr[], deny: readonly Cidr[]) {
    assert(allow.length + deny.length <= ACCESS_RULES_MAX, 'there is a bound on access rules');
    this.allow = allow;
    this.deny = deny;
    this.whenUnlisted = allow.length === 0;
    // Deny last: the later of two rules with one block decides.
    const rules = [
      ...allow.map((cidr): AccessRule => ({ cidr, verdict: 'allow' })),
      ...deny.map((cidr): AccessRule => ({ cidr, verdict: 'deny' })),
    ];
    this.v4 = new RangeTable(rules.filter(({ cidr }) => cidr.base.family === 4));
    this.v6 = new RangeTable(rules.filter(({ cidr }) => cidr.base.family === 6));
  }

  /** Whether it was made from these blocks. */
  isOf(allow: readonly Cidr[], deny: readonly Cidr[]): boolean {
    return sameBlocks(allow, this.allow) && sameBlocks(deny, this.deny);
  }

  /** Whether a client may come in. Its address is unmapped. */
  allows(client: Address): boolean {
    const rule = this.ruleFor(client);
    return rule === undefined ? this.whenUnlisted : rule.verdict === 'allow';
  }

  /** The rule that decides, to explain a refusal; undefined when no block holds the address. */
  ruleFor(client: Address): AccessRule | undefined {
    return (client.family === 4 ? this.v4 : this.v6).find(client);
  }
}

/** Words of a range's first address; IPv4 uses the first. */
const STRIDE = 4;

/** Where one deciding rule ends and the next begins, over one address family. */
export class RangeTable {
  /** First addresses of ranges, ascending. Before the first range no rule decides. */
  private readonly starts: Uint32Array;
  /** The rule of each range; undefined between blocks. */
  private readonly rules: readonly (AccessRule | undefined)[];

  constructor(unsorted: readonly AccessRule[]) {
    const starts: number[] = [];
    const rules: (AccessRule | undefined)[] = [];
    const begin = (words: Words, rule: AccessRule | undefined): void => {
      // Of several ranges that begin at one address the last is the innermost, or the one that follows.
      const at = starts.length - STRIDE;
      if (at >= 0 && words.every((word, index) => starts[at + index] === word)) {
        rules[rules.length - 1] = rule;
      } else {
        starts.push(...words);
        rules.push(rule);
      }
    };
    /** Blocks around the one at hand, the innermost last. */
    const around: AccessRule[] = [];
    const leaveUntil = (cidr: Cidr | undefined): void => {
      for (let inner = around.at(-1); inner !== undefined; inner = around.at(-1)) {
        if (cidr !== undefined && holds(inner.cidr, cidr.base)) return;
        around.pop();
        const behind = wordsBehind(inner.cidr);
        if (behind !== undefined) begin(behind, around.at(-1));
      }
    };
    for (const rule of unsorted.toSorted(outerFirst)) {
      leaveUntil(rule.cidr);
      around.push(rule);
      begin(wordsOf(rule.cidr.base), rule);
    }
    leaveUntil(undefined);
    this.starts = Uint32Array.from(starts);
    this.rules = rules;
  }

  find({ a, b, c, d }: Address): AccessRule | undefined {
    let low = 0;
    let high = this.rules.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.isBehind(middle * STRIDE, a, b, c, d)) high = middle;
      else low = middle + 1;
    }
    return low === 0 ? undefined : this.rules[low - 1];
  }

  /** Whether the range at `at` begins after this address. */
  private isBehind(at: number, a: number, b: number, c: number, d: number): boolean {
    const { starts } = this;
    if (starts[at] !== a >>> 0) return (starts[at] ?? 0) > a >>> 0;
    if (starts[at + 1] !== b >>> 0) return (starts[at + 1] ?? 0) > b >>> 0;
    if (starts[at + 2] !== c >>> 0) return (starts[at + 2] ?? 0) > c >>> 0;
    return (starts[at + 3] ?? 0) > d >>> 0;
  }
}

function sameBlocks(some: readonly Cidr[], others: readonly Cidr[]): boolean {
  if (some === others) return true;
  if (some.length !== others.length) return false;
  return some.every(({ base, bits }, index) => {
    const other = others[index];
    return other !== undefined && bits === other.bits && sameAddress(base, other.base);
  });
}

type Words = readonly [number, number, number, number];

/** By first address; of blocks that begin together the wider first. Equal ones stay as they are: deny last, where it wins. */
function outerFirst(one: AccessRule, other: AccessRule): number {
  const mine = wordsOf(one.cidr.base);
  const theirs = wordsOf(other.cidr.base);
  for (const [index, word] of mine.entries()) {
    const difference = word - present(theirs[index], 'an address has four words');
    if (difference !== 0) return difference;
  }
  return one.cidr.bits - other.cidr.bits;
}

function holds({ base, bits }: Cidr, inner: Address): boolean {
  const { a, b, c, d } = masked(inner, bits);
  return a === base.a && b === base.b && c === base.c && d === base.d;
}

/** The first address behind a block; undefined behind the last block of its family. */
function wordsBehind({ base, bits }: Cidr): Words | undefined {
  const words = [...wordsOf(base)];
  let step = bits === 0 ? 2 ** 32 : 2 ** (31 - ((bits - 1) & 31));
  for (let index = Math.max(0, (bits - 1) >> 5); index >= 0; index -= 1) {
    const sum = (words[index] ?? 0) + step;
    words[index] = sum % 2 ** 32;
    if (sum < 2 ** 32) return [words[0] ?? 0, words[1] ?? 0, words[2] ?? 0, words[3] ?? 0];
    step = 1;
  }
  return undefined;
}

function wordsOf({ a, b, c, d }: Address): Words {
  return [a >>> 0, b >>> 0, c >>> 0, d >>> 0];
}

function widthOf(address: Address): number {
  return address.family === 4 ? 32 : 128;
}

/** A mapped block as the IPv4 block it means: no bit is set behind its prefix, so the prefix has the 96 bits of mapping. */
function unmapBlock({ base, bits }: Cidr): Cidr {
  return isMapped(base) ? { base: unmap(base), bits: bits - 96 } : { base, bits };
}

function masked(address: Address, bits: number): Address {
  const { a, b, c, d } = address;
  if (address.family === 4) return ipv4(a & prefixMask(bits), 0);
  return ipv6(
    [
      a & prefixMask(bits),
      b & prefixMask(bits - 32),
      c & prefixMask(bits - 64),
      d & prefixMask(bits - 96),
    ],
    0,
  );
}

function parseBits(text: string, width: number): number | undefined {
  if (!/^(?:0|[1-9][0-9]{0,2})$/.test(text)) return undefined;
  const bits = Number(text);
  return bits <= width ? bits : undefined;
}

function refused(problem: string, fix: string): ParsedCidr {
  return { ok: false, problem, fix };
}
