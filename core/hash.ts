/**
 * 64-bit hashing on two 32-bit halves: no bigint on any path. Placement needs exactly these functions, because a fleet that
 * mixes this program with another must agree on every client (spec §3.2, §3.4). None of them is keyed with a secret, so
 * none may index a table that a stranger can fill.
 */
import { assert } from './assert.ts';

/** A 64-bit value as two unsigned 32-bit halves. */
export interface Hash64 {
  readonly high: number;
  readonly low: number;
}

/** The seed of every affinity key and placement: fixed and public, so that workers and restarts agree (spec §3.2). */
export const PLACEMENT_SEED: Hash64 = { high: 0x9e3779b9, low: 0x7f4a7c15 };

/** SipHash-1-3 with both keys zero (Aumasson and Bernstein 2012; the rounds of Rust's standard hasher). */
export function sipHash13(bytes: Uint8Array): Hash64 {
  const state = new SipState();
  const tail = bytes.length & ~7;
  for (let at = 0; at < tail; at += 8) {
    state.compress(littleEndian(bytes, at + 4), littleEndian(bytes, at));
  }
  state.compress(littleEndian(bytes, tail + 4) | (bytes.length << 24), littleEndian(bytes, tail));
  return state.finish();
}

/** FNV-1a whose offset basis is XORed with `seed`, then the tail of splitmix64 (spec §3.4). */
export function fnv1aSplitMix(seed: Hash64, bytes: Uint8Array): Hash64 {
  let high = 0xcbf29ce4 ^ seed.high;
  let low = 0x84222325 ^ seed.low;
  for (const byte of bytes) {
    // Times the prime 2^40 + 0x1b3: a double holds what its short half makes of a word.
    low ^= byte;
    const carry = Math.floor(((low >>> 0) * 0x1b3) / 2 ** 32);
    high = (Math.imul(high, 0x1b3) + (low << 8) + carry) | 0;
    low = Math.imul(low, 0x1b3);
  }
  const hash = new Word64(high, low);
  hash.xorShiftRight(30);
  hash.multiply(0xbf58476d, 0x1ce4e5b9);
  hash.xorShiftRight(27);
  hash.multiply(0x94d049bb, 0x133111eb);
  hash.xorShiftRight(31);
  return hash.toHash();
}

const MODULUS_MAX = 2 ** 21;

/** `hash mod modulus`, exact because the intermediate value fits a double: `modulus` is 1 to 2^21. */
export function remainder(hash: Hash64, modulus: number): number {
  assert(modulus >= 1 && modulus <= MODULUS_MAX, 'a modulus leaves room for 32 more bits');
  return ((hash.high % modulus) * 2 ** 32 + hash.low) % modulus;
}

/** The upper 32 bits of the 64-bit product of two unsigned 32-bit numbers; `right` may be 2^32. */
export function multiplyHigh(left: number, right: number): number {
  const lower = left * (right % 0x10000);
  const upper = left * Math.floor(right / 0x10000);
  return Math.floor((upper + Math.floor(lower / 0x10000)) / 0x10000);
}

/** Four bytes from `at`; what lies behind the end reads as zero. */
function littleEndian(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] ?? 0) |
    ((bytes[at + 1] ?? 0) << 8) |
    ((bytes[at + 2] ?? 0) << 16) |
    ((bytes[at + 3] ?? 0) << 24)
  );
}

/** A 64-bit accumulator. Its halves are signed, because V8 keeps signed 32-bit integers unboxed. */
class Word64 {
  high: number;
  low: number;

  constructor(high: number, low: number) {
    this.high = high | 0;
    this.low = low | 0;
  }

  add(other: Word64): void {
    const low = (this.low >>> 0) + (other.low >>> 0);
    this.high = (this.high + other.high + (low > 0xffffffff ? 1 : 0)) | 0;
    this.low = low | 0;
  }

  xor(high: number, low: number): void {
    this.high ^= high;
    this.low ^= low;
  }

  multiply(high: number, low: number): void {
    const cross = Math.imul(this.high, low) + Math.imul(this.low, high);
    this.high = (multiplyHigh(this.low >>> 0, low) + cross) | 0;
    this.low = Math.imul(this.low, low);
  }

  /** `this ^= this >> count`, for a count below 32. */
  xorShiftRight(count: number): void {
    const low = (this.low >>> count) | (this.high << (32 - count));
    this.xor(this.high >>> count, low);
  }

  /** For a count of 1 to 31. */
  rotateLeft(count: number): void {
    const high = (this.high << count) | (this.low >>> (32 - count));
    this.low = (this.low << count) | (this.high >>> (32 - count));
    this.high = high;
  }

  /** Rotates by 32. */
  swap(): void {
    const { high, low } = this;
    this.high = low;
    this.low = high;
  }

  toHash(): Hash64 {
    return { high: this.high >>> 0, low: this.low >>> 0 };
  }
}

class SipState {
  private readonly v0 = new Word64(0x736f6d65, 0x70736575);
  private readonly v1 = new Word64(0x646f7261, 0x6e646f6d);
  private readonly v2 = new Word64(0x6c796765, 0x6e657261);
  private readonly v3 = new Word64(0x74656462, 0x79746573);

  compress(high: number, low: number): void {
    this.v3.xor(high, low);
    this.round();
    this.v0.xor(high, low);
  }

  finish(): Hash64 {
    this.v2.xor(0, 0xff);
    for (let round = 0; round < 3; round += 1) this.round();
    const hash = new Word64(this.v0.high ^ this.v1.high, this.v0.low ^ this.v1.low);
    hash.xor(this.v2.high ^ this.v3.high, this.v2.low ^ this.v3.low);
    return hash.toHash();
  }

  private round(): void {
    const { v0, v1, v2, v3 } = this;
    mix(v0, v1, 13);
    v0.swap();
    mix(v2, v3, 16);
    mix(v0, v3, 21);
    mix(v2, v1, 17);
    v2.swap();
  }
}

function mix(sum: Word64, word: Word64, count: number): void {
  sum.add(word);
  word.rotateLeft(count);
  word.xor(sum.high, sum.low);
}
