/**
 * Affinity keys, HRW scores and Maglev tables as the specification's text says them (§3.2, §3.4, §3.5), with bigints and
 * loops: slow, obvious, and nothing shared with the core but the words.
 */
import type { Address } from '../../core/address.ts';

const WORD = (1n << 64n) - 1n;

/** SipHash-1-3 with zero keys over seed, family, octets and, with `withPort`, port (and for IPv6 flow info and scope). */
export function naiveAffinityKey(seed: bigint, client: Address, withPort: boolean): bigint {
  const bytes = [
    ...littleEndian(seed, 8),
    ...littleEndian(client.family === 4 ? 0n : 1n, 8),
    ...octets(client),
    ...(withPort ? littleEndian(BigInt(client.port), 2) : []),
    ...(withPort && client.family === 6 ? flowAndScope(client) : []),
  ];
  return sipHash13(bytes);
}

/** Flow information, of which there is none here, and scope. */
function flowAndScope(client: Address): number[] {
  return [...littleEndian(0n, 4), ...littleEndian(BigInt(client.scope), 4)];
}

/** FNV-1a over key, family, octets and port, then the tail of splitmix64. */
export function naiveBackendHash(key: bigint, seed: bigint, backend: Address): bigint {
  const bytes = [
    ...littleEndian(key, 8),
    4,
    ...octets(backend),
    ...littleEndian(BigInt(backend.port), 2),
  ];
  let hash = 0xcbf29ce484222325n ^ seed;
  for (const byte of bytes) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & WORD;
  hash ^= hash >> 30n;
  hash = (hash * 0xbf58476d1ce4e5b9n) & WORD;
  hash ^= hash >> 27n;
  hash = (hash * 0x94d049bb133111ebn) & WORD;
  return hash ^ (hash >> 31n);
}

export function naiveScore(hash: bigint, weight: number): number {
  return -weight / Math.log((Number(hash) + 0.5) / 2 ** 64);
}

/** A slot of the table for each of `size`, holding a place in `backends`. */
export function naiveMaglevTable(
  seed: bigint,
  size: number,
  backends: readonly { readonly address: Address; readonly weight: number }[],
): number[] {
  const table: number[] = Array.from({ length: size }, () => -1);
  if (backends.length === 0) return [];
  const targets = naiveTargets(
    backends.map(({ weight }) => weight),
    size,
  );
  const walks = backends.map(({ address }) => naiveWalk(seed, size, address));
  for (let filled = 0; filled < size;) {
    for (const [index, walk] of walks.entries()) {
      if (filled === size || (targets[index] ?? 0) === 0) continue;
      let slot = walk.next().value ?? 0;
      while (table[slot] !== -1) slot = walk.next().value ?? 0;
      table[slot] = index;
      targets[index] = (targets[index] ?? 0) - 1;
      filled += 1;
    }
  }
  return table;
}

/** Slots for each weight; what rounding leaves goes round from the first on. */
function naiveTargets(weights: readonly number[], size: number): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const targets = weights.map((weight) => Math.floor((weight * size) / total));
  let left = size - targets.reduce((sum, target) => sum + target, 0);
  for (let index = 0; left > 0; index = (index + 1) % targets.length) {
    targets[index] = (targets[index] ?? 0) + 1;
    left -= 1;
  }
  return targets;
}

/** Every slot once, in the backend's own order. */
function* naiveWalk(seed: bigint, size: number, address: Address): Generator<number, undefined> {
  const offset = Number(naiveBackendHash(0x6f6666736574n, seed, address) % BigInt(size));
  const skip = Number(naiveBackendHash(0x736b69705f5fn, seed, address) % BigInt(size - 1)) + 1;
  for (let step = 0; step < size; step += 1) yield (offset + step * skip) % size;
  return undefined;
}

/** The header of spec §4 to an IPv4 backend; an IPv6 client sees it in mapped form (decisions table). */
export function naiveHeader(client: Address, backend: Address): Uint8Array {
  const signature = [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10];
  const bigEndian = (port: number): number[] => [port >> 8, port & 255];
  const ports = [...bigEndian(client.port), ...bigEndian(backend.port)];
  const addresses =
    client.family === 4
      ? [0x12, 0, 12, ...octets(client), ...octets(backend)]
      : [0x22, 0, 36, ...octets(client), ...MAPPED, ...octets(backend)];
  return Uint8Array.from([...signature, 0x21, ...addresses, ...ports]);
}

const MAPPED: readonly number[] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255];

function octets(address: Address): number[] {
  const words = address.family === 4 ? [address.a] : [address.a, address.b, address.c, address.d];
  return words.flatMap((word) => [24, 16, 8, 0].map((shift) => (word >>> shift) & 255));
}

function littleEndian(value: bigint, bytes: number): number[] {
  return Array.from({ length: bytes }, (_, index) => Number((value >> BigInt(8 * index)) & 255n));
}

function sipHash13(bytes: readonly number[]): bigint {
  let v0 = 0x736f6d6570736575n;
  let v1 = 0x646f72616e646f6dn;
  let v2 = 0x6c7967656e657261n;
  let v3 = 0x7465646279746573n;
  const rotate = (word: bigint, bits: bigint): bigint =>
    ((word << bits) | (word >> (64n - bits))) & WORD;
  const round = (): void => {
    v0 = (v0 + v1) & WORD;
    v1 = rotate(v1, 13n) ^ v0;
    v0 = rotate(v0, 32n);
    v2 = (v2 + v3) & WORD;
    v3 = rotate(v3, 16n) ^ v2;
    v0 = (v0 + v3) & WORD;
    v3 = rotate(v3, 21n) ^ v0;
    v2 = (v2 + v1) & WORD;
    v1 = rotate(v1, 17n) ^ v2;
    v2 = rotate(v2, 32n);
  };
  const padded = [...bytes];
  while (padded.length % 8 !== 7) padded.push(0);
  padded.push(bytes.length & 255);
  for (let at = 0; at < padded.length; at += 8) {
    let word = 0n;
    for (let index = 7; index >= 0; index -= 1)
      word = (word << 8n) | BigInt(padded[at + index] ?? 0);
    v3 ^= word;
    round();
    v0 ^= word;
  }
  v2 ^= 255n;
  for (let count = 0; count < 3; count += 1) round();
  return v0 ^ v1 ^ v2 ^ v3;
}
