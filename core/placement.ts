/**
 * Which bytes of a client and of a backend are hashed. Bit-compatible with Sōzu 2.1.0, so that a mixed fleet sends a client
 * to the same backend (spec §3.2, §3.4; pinned by placement.noreg.test.ts).
 */
import type { Address } from './address.ts';
import { fnv1aSplitMix, sipHash13, type Hash64 } from './hash.ts';

/**
 * What a keyed policy places a new flow by: the client's IP, with its port when `withPort` (spec §3.2). IPv6 flow
 * information counts as 0: a datagram socket does not report it.
 */
export function affinityKey(seed: Hash64, client: Address, withPort: boolean): Hash64 {
  const octets = client.family === 4 ? 4 : 16;
  const portBytes = client.family === 4 ? 2 : 10;
  const bytes = new Uint8Array(16 + octets + (withPort ? portBytes : 0));
  writeLittleEndian(bytes, 0, seed.low);
  writeLittleEndian(bytes, 4, seed.high);
  writeLittleEndian(bytes, 8, client.family === 4 ? 0 : 1);
  writeOctets(bytes, 16, client);
  if (withPort) {
    bytes[16 + octets] = client.port;
    bytes[17 + octets] = client.port >>> 8;
    if (client.family === 6) writeLittleEndian(bytes, 22 + octets, client.scope);
  }
  return sipHash13(bytes);
}

/** How strongly `key` is drawn to the backend at `address` under `seed` (spec §3.4). */
export function backendHash(key: Hash64, seed: Hash64, address: Address): Hash64 {
  const octets = address.family === 4 ? 4 : 16;
  const bytes = new Uint8Array(11 + octets);
  writeLittleEndian(bytes, 0, key.low);
  writeLittleEndian(bytes, 4, key.high);
  bytes[8] = address.family;
  writeOctets(bytes, 9, address);
  bytes[9 + octets] = address.port;
  bytes[10 + octets] = address.port >>> 8;
  return fnv1aSplitMix(seed, bytes);
}

function writeOctets(bytes: Uint8Array, at: number, address: Address): void {
  writeBigEndian(bytes, at, address.a);
  if (address.family === 4) return;
  writeBigEndian(bytes, at + 4, address.b);
  writeBigEndian(bytes, at + 8, address.c);
  writeBigEndian(bytes, at + 12, address.d);
}

function writeBigEndian(bytes: Uint8Array, at: number, word: number): void {
  bytes[at] = word >>> 24;
  bytes[at + 1] = word >>> 16;
  bytes[at + 2] = word >>> 8;
  bytes[at + 3] = word;
}

function writeLittleEndian(bytes: Uint8Array, at: number, word: number): void {
  bytes[at] = word;
  bytes[at + 1] = word >>> 8;
  bytes[at + 2] = word >>> 16;
  bytes[at + 3] = word >>> 24;
}
