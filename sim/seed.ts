/**
 * Seeds: 64 bits, kept as two 32-bit words because a double cannot hold them. One seed names one whole run, so what is
 * printed must be exactly what was used, and text that is not a seed is an error rather than a surprising zero.
 */
import { assert } from '../core/assert.ts';

/** A 64-bit seed as two unsigned 32-bit words. */
export interface Seed {
  readonly high: number;
  readonly low: number;
}

/** What a text says: a seed, nothing at all (`seed` undefined: blank text counts as unset), or a problem to show. */
export type SeedParse =
  | { readonly ok: true; readonly seed: Seed | undefined }
  | { readonly ok: false; readonly problem: string };

/** Reads a decimal or 0x-hexadecimal number below 2^64, blanks around it allowed. */
export function parseSeed(text: string): SeedParse {
  const digits = text.trim();
  if (digits === '') return { ok: true, seed: undefined };
  if (!/^(?:0x[0-9a-f]+|[0-9]+)$/i.test(digits)) {
    return { ok: false, problem: `not a seed: ${JSON.stringify(text)}; ${FORMS}` };
  }
  const value = BigInt(digits);
  if (value > SEED_MAX) return { ok: false, problem: `seed ${digits} needs more than 64 bits` };
  return { ok: true, seed: fromBigint(value) };
}

/** The seed in hexadecimal with a leading 0x: what `parseSeed` reads back, and what a user types to replay a run. */
export function printSeed(seed: Seed): string {
  return `0x${toBigint(seed).toString(16)}`;
}

/** The seed whose value is `count`, a natural number below 2^53. */
export function seedFromNumber(count: number): Seed {
  assert(Number.isSafeInteger(count) && count >= 0, 'a seed is a natural number');
  return fromBigint(BigInt(count));
}

/** The seed `offset` places after `first`, modulo 2^64: how a sweep counts its seeds. */
export function seedPlus(first: Seed, offset: number): Seed {
  return fromBigint((toBigint(first) + BigInt(offset)) & SEED_MAX);
}

/** Negative, zero or positive, as for `sort`. */
export function compareSeeds(left: Seed, right: Seed): number {
  return left.high - right.high || left.low - right.low;
}

/**
 * An unsigned 32-bit hash of a seed, a name and a lane. Never linear over XOR: xor128 and its own seeding are, and two
 * streams seeded that way stay tied to each other for every seed.
 */
export function hashSeed(seed: Seed, name: string, lane: number): number {
  let salt = mix(lane + 0x9e3779b9);
  for (let index = 0; index < name.length; index++) salt = mix(salt ^ name.charCodeAt(index)) + 1;
  const seeded = mix(mix(salt ^ seed.high) + seed.low);
  return mix(seeded ^ salt) >>> 0;
}

const SEED_MAX = 0xffff_ffff_ffff_ffffn;
const FORMS = 'expected a decimal number below 2^64 or hexadecimal after 0x';

function fromBigint(value: bigint): Seed {
  return { high: Number(value >> 32n), low: Number(value & 0xffff_ffffn) };
}

function toBigint(seed: Seed): bigint {
  return (BigInt(seed.high) << 32n) | BigInt(seed.low);
}

/** The finalizer of MurmurHash3: a bijection of 32 bits in which every input bit reaches every output bit. */
function mix(word: number): number {
  let mixed = word ^ (word >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
