/**
 * Addresses as integers. IPv4 is one word, IPv6 four, each a signed 32-bit integer because V8 keeps those unboxed.
 * IPv4-mapped IPv6 is unmapped at the boundary, so that identity, limits, affinity and PROXY headers see IPv4
 * (doc/decisions/0002-addresses.md).
 */

/** `ip:port`. Immutable. For IPv4 the address is in `a`, and `b`, `c`, `d` and `scope` are 0. */
export interface Address {
  readonly family: 4 | 6;
  readonly a: number;
  readonly b: number;
  readonly c: number;
  readonly d: number;
  readonly port: number;
  /** IPv6 zone index (RFC 4007), 0 when there is none. */
  readonly scope: number;
}

/** 127.0.0.1 as a word, and so on: the four octets in network order. */
export function ipv4(word: number, port: number): Address {
  return { family: 4, a: word | 0, b: 0, c: 0, d: 0, port, scope: 0 };
}

/** Four words in network order. */
export function ipv6(
  words: readonly [number, number, number, number],
  port: number,
  scope = 0,
): Address {
  const [a, b, c, d] = words;
  return { family: 6, a: a | 0, b: b | 0, c: c | 0, d: d | 0, port, scope };
}

/** `10.0.0.1:53`, `[2001:db8::1]:53`, `[fe80::1%3]:53`; undefined for anything else, a host name included. */
export function parseAddress(text: string): Address | undefined {
  const colon = text.lastIndexOf(':');
  const port = parsePort(text.slice(colon + 1));
  if (colon < 1 || port === undefined) return undefined;
  const host = text.slice(0, colon);
  if (host.startsWith('[')) {
    return host.endsWith(']') ? parseIpv6(host.slice(1, -1), port) : undefined;
  }
  return parseIpv4(host, port);
}

/** An IP literal without a port. IPv6 may carry a numeric zone (`fe80::1%3`). */
export function parseIp(text: string, port: number): Address | undefined {
  return text.includes(':') ? parseIpv6(text, port) : parseIpv4(text, port);
}

function parsePort(text: string): number | undefined {
  if (!/^[0-9]{1,5}$/.test(text)) return undefined;
  const port = Number(text);
  return port <= 65_535 ? port : undefined;
}

const DOT = 46;
const ZERO = 48;

/** Written by hand because a driver calls it for every datagram. Leading zeros are refused: some read them as octal. */
function parseIpv4(text: string, port: number): Address | undefined {
  let word = 0;
  let octet = -1;
  let dots = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === DOT) {
      if (octet < 0 || dots === 3) return undefined;
      word = (word << 8) | octet;
      octet = -1;
      dots += 1;
      continue;
    }
    const digit = code - ZERO;
    if (digit < 0 || digit > 9 || octet === 0) return undefined;
    octet = octet < 0 ? digit : octet * 10 + digit;
    if (octet > 255) return undefined;
  }
  if (dots !== 3 || octet < 0) return undefined;
  return ipv4((word << 8) | octet, port);
}

function parseIpv6(text: string, port: number): Address | undefined {
  const percent = text.indexOf('%');
  const scope = percent < 0 ? 0 : parseScope(text.slice(percent + 1));
  if (scope === undefined) return undefined;
  const groups = parseGroups(percent < 0 ? text : text.slice(0, percent));
  if (groups === undefined) return undefined;
  const word = (index: number): number => ((groups[index] ?? 0) << 16) | (groups[index + 1] ?? 0);
  return ipv6([word(0), word(2), word(4), word(6)], port, scope);
}

function parseScope(text: string): number | undefined {
  if (!/^[0-9]{1,10}$/.test(text)) return undefined;
  const scope = Number(text);
  return scope <= 0x7fffffff ? scope : undefined;
}

/** The eight 16-bit groups of an IPv6 literal (RFC 4291 §2.2), `::` filled with zeros. */
function parseGroups(text: string): number[] | undefined {
  const halves = text.split('::');
  if (halves.length > 2) return undefined;
  const head = parseHalf(halves[0] ?? '', halves.length === 1);
  const tail = halves.length === 2 ? parseHalf(halves[1] ?? '', true) : [];
  if (head === undefined || tail === undefined) return undefined;
  if (halves.length === 1) return head.length === 8 ? head : undefined;
  const missing = 8 - head.length - tail.length;
  if (missing < 1) return undefined;
  return [...head, ...Array.from({ length: missing }, () => 0), ...tail];
}

/** Groups between two `::`; the last may be a dotted quad when `last` says that the literal ends here. */
function parseHalf(text: string, last: boolean): number[] | undefined {
  if (text === '') return [];
  const parts = text.split(':');
  const groups: number[] = [];
  for (const [index, part] of parts.entries()) {
    if (last && index === parts.length - 1 && part.includes('.')) {
      const quad = parseIpv4(part, 0);
      if (quad === undefined) return undefined;
      groups.push((quad.a >>> 16) & 0xffff, quad.a & 0xffff);
    } else if (/^[0-9a-fA-F]{1,4}$/.test(part)) {
      groups.push(Number.parseInt(part, 16));
    } else {
      return undefined;
    }
  }
  return groups;
}

/** `10.0.0.1:53` or `[2001:db8::1]:53`. */
export function formatAddress(address: Address): string {
  const ip = formatIp(address);
  return address.family === 4 ? `${ip}:${address.port}` : `[${ip}]:${address.port}`;
}

/** The IP alone, IPv6 in the canonical form of RFC 5952, with its zone index if it has one. */
export function formatIp(address: Address): string {
  if (address.family === 4) return formatWord(address.a);
  const zone = address.scope === 0 ? '' : `%${address.scope}`;
  if (isMapped(address)) return `::ffff:${formatWord(address.d)}${zone}`;
  const groups = [address.a, address.b, address.c, address.d].flatMap((word) => [
    word >>> 16,
    word & 0xffff,
  ]);
  const hex = groups.map((group) => group.toString(16));
  const { start, length } = longestZeros(groups);
  if (length < 2) return hex.join(':') + zone;
  return `${hex.slice(0, start).join(':')}::${hex.slice(start + length).join(':')}${zone}`;
}

function formatWord(word: number): string {
  return `${word >>> 24}.${(word >>> 16) & 255}.${(word >>> 8) & 255}.${word & 255}`;
}

function longestZeros(groups: readonly number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 };
  let start = 0;
  for (const [index, group] of groups.entries()) {
    if (group !== 0) start = index + 1;
    else if (index + 1 - start > best.length) best = { start, length: index + 1 - start };
  }
  return best;
}

export function sameAddress(one: Address, other: Address): boolean {
  return one.port === other.port && sameIp(one, other);
}

/** Equal but for the port. */
export function sameIp(one: Address, other: Address): boolean {
  return (
    one.a === other.a &&
    one.b === other.b &&
    one.c === other.c &&
    one.d === other.d &&
    one.family === other.family &&
    one.scope === other.scope
  );
}

/** `::ffff:a.b.c.d`, an IPv4 address in IPv6 clothes (RFC 4291 §2.5.5.2). */
export function isMapped(address: Address): boolean {
  return address.family === 6 && address.a === 0 && address.b === 0 && address.c === 0xffff;
}

/** The IPv4 address inside a mapped one; any other address as it is. */
export function unmap(address: Address): Address {
  return isMapped(address) ? ipv4(address.d, address.port) : address;
}

/** The mapped form of an IPv4 address; an IPv6 address as it is. */
export function toIpv6(address: Address): Address {
  return address.family === 4 ? ipv6([0, 0, 0xffff, address.a], address.port) : address;
}

/** `0.0.0.0` or `::`. */
export function isUnspecified(address: Address): boolean {
  return address.a === 0 && address.b === 0 && address.c === 0 && address.d === 0;
}

/** Whether nobody can be answered there: port 0, unspecified, multicast or the limited broadcast address. */
export function isUnanswerable(address: Address): boolean {
  if (address.port === 0 || isUnspecified(address)) return true;
  if (address.family === 6) return address.a >>> 24 === 0xff;
  return address.a >>> 28 === 0xe || address.a === -1;
}

/** 127.0.0.0/8 or `::1`. */
export function isLoopback(address: Address): boolean {
  if (address.family === 4) return address.a >>> 24 === 127;
  return address.a === 0 && address.b === 0 && address.c === 0 && address.d === 1;
}

/** A word of an address whose first `bits` bits are set; none for 0 or less, all for 32 or more. */
export function prefixMask(bits: number): number {
  if (bits <= 0) return 0;
  return bits >= 32 ? -1 : -1 << (32 - bits);
}
