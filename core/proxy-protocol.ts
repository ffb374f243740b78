/**
 * PROXY protocol version 2 in datagrams: the header that tells a backend who the client is (spec §4, and HAProxy's
 * proxy-protocol.txt §2.2). It stands before the payload in the same datagram. Nothing here trusts a length it has read.
 */
import { ipv4, ipv6, toIpv6, type Address } from './address.ts';

/** What every header of version 2 begins with. */
export const SIGNATURE: Uint8Array = Uint8Array.of(13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10);

const FIXED_BYTES = 16;
const IPV4_BYTES = 12;
const IPV6_BYTES = 36;
const VERSION = 2;
const LOCAL = 0;
const PROXY = 1;
const IPV4_FAMILY = 1;
const IPV6_FAMILY = 2;
const UNIX_FAMILY = 3;
const DGRAM = 2;

/**
 * The header of a datagram from `client` to `backend`: 28 bytes for IPv4, 52 for IPv6. Where the families differ, the IPv4
 * side is written as mapped IPv6 (RFC 4291 §2.5.5.2), because UNSPEC would lose the client. A zone index is not carried.
 */
export function dgramHeader(client: Address, backend: Address): Uint8Array {
  if (client.family === 4 && backend.family === 4) {
    const header = fixedPart(IPV4_FAMILY, IPV4_BYTES);
    writeWord(header, 16, client.a);
    writeWord(header, 20, backend.a);
    writePorts(header, 24, client, backend);
    return header;
  }
  const header = fixedPart(IPV6_FAMILY, IPV6_BYTES);
  writeIpv6(header, 16, toIpv6(client));
  writeIpv6(header, 32, toIpv6(backend));
  writePorts(header, 48, client, backend);
  return header;
}

/** What stands at the head of a datagram. `payloadOffset` is where the payload begins, TLVs skipped. */
export type DgramHeader =
  | {
      readonly kind: 'Proxied';
      readonly source: Address;
      readonly destination: Address;
      readonly payloadOffset: number;
    }
  /** LOCAL, or a family or transport without addresses for us: the datagram's sender is who it says. */
  | { readonly kind: 'Local'; readonly payloadOffset: number }
  /** No signature: all of it is payload. */
  | { readonly kind: 'NotProxied' }
  /** The signature, then nonsense. The PROXY protocol wants such a datagram dropped. */
  | { readonly kind: 'Malformed'; readonly problem: HeaderProblem };

export type HeaderProblem = 'truncated' | 'version' | 'command' | 'family';

/** Reads the header of any datagram; never throws. Addresses are as written: a mapped one stays IPv6. */
export function decodeDgramHeader(datagram: Uint8Array): DgramHeader {
  if (!SIGNATURE.every((byte, at) => datagram[at] === byte)) return { kind: 'NotProxied' };
  const [versionCommand, familyTransport] = [datagram[12], datagram[13]];
  if (versionCommand === undefined || familyTransport === undefined) return malformed('truncated');
  if (versionCommand >>> 4 !== VERSION) return malformed('version');
  const payloadOffset = FIXED_BYTES + readPort(datagram, 14);
  if (datagram.length < payloadOffset) return malformed('truncated');
  const command = versionCommand & 0xf;
  if (command === LOCAL) return { kind: 'Local', payloadOffset };
  if (command !== PROXY) return malformed('command');
  return decodeAddresses(datagram, familyTransport, payloadOffset);
}

function decodeAddresses(
  datagram: Uint8Array,
  familyTransport: number,
  payloadOffset: number,
): DgramHeader {
  const family = familyTransport >>> 4;
  const transport = familyTransport & 0xf;
  if (family > UNIX_FAMILY || transport > DGRAM) return malformed('family');
  const hasAddresses = family === IPV4_FAMILY || family === IPV6_FAMILY;
  if (!hasAddresses || transport !== DGRAM) return { kind: 'Local', payloadOffset };
  const length = family === IPV4_FAMILY ? IPV4_BYTES : IPV6_BYTES;
  if (payloadOffset < FIXED_BYTES + length) return malformed('truncated');
  if (family === IPV4_FAMILY) {
    const source = ipv4(readWord(datagram, 16), readPort(datagram, 24));
    const destination = ipv4(readWord(datagram, 20), readPort(datagram, 26));
    return { kind: 'Proxied', source, destination, payloadOffset };
  }
  const source = ipv6(readWords(datagram, 16), readPort(datagram, 48));
  const destination = ipv6(readWords(datagram, 32), readPort(datagram, 50));
  return { kind: 'Proxied', source, destination, payloadOffset };
}

function malformed(problem: HeaderProblem): DgramHeader {
  return { kind: 'Malformed', problem };
}

function fixedPart(family: number, addressBytes: number): Uint8Array {
  const header = new Uint8Array(FIXED_BYTES + addressBytes);
  header.set(SIGNATURE);
  header[12] = (VERSION << 4) | PROXY;
  header[13] = (family << 4) | DGRAM;
  header[15] = addressBytes;
  return header;
}

function writePorts(header: Uint8Array, at: number, client: Address, backend: Address): void {
  header[at] = client.port >>> 8;
  header[at + 1] = client.port;
  header[at + 2] = backend.port >>> 8;
  header[at + 3] = backend.port;
}

function writeIpv6(header: Uint8Array, at: number, address: Address): void {
  writeWord(header, at, address.a);
  writeWord(header, at + 4, address.b);
  writeWord(header, at + 8, address.c);
  writeWord(header, at + 12, address.d);
}

function writeWord(header: Uint8Array, at: number, word: number): void {
  header[at] = word >>> 24;
  header[at + 1] = word >>> 16;
  header[at + 2] = word >>> 8;
  header[at + 3] = word;
}

function readWords(datagram: Uint8Array, at: number): [number, number, number, number] {
  const word = (index: number): number => readWord(datagram, at + index * 4);
  return [word(0), word(1), word(2), word(3)];
}

function readWord(datagram: Uint8Array, at: number): number {
  return (readPort(datagram, at) << 16) | readPort(datagram, at + 2);
}

/** Two bytes, big-endian; zero behind the end. */
function readPort(datagram: Uint8Array, at: number): number {
  return ((datagram[at] ?? 0) << 8) | (datagram[at + 1] ?? 0);
}
