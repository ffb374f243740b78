/**
 * The core's only chance: seeded, part of snapshot and trace. xoshiro128** (Blackman and Vigna 2018), whose state is four
 * words. Not for secrets: who sees a few draws knows the rest.
 */
import { assert } from './assert.ts';
import { multiplyHigh, type Hash64 } from './hash.ts';

/** Four unsigned 32-bit words, not all zero. */
export type RandomState = readonly [number, number, number, number];

export class Random {
  private a: number;
  private b: number;
  private c: number;
  private d: number;

  /** Continues where `state()` was taken. */
  constructor(state: RandomState) {
    assert(
      state.some((word) => word !== 0),
      'a generator of zeros draws only zeros',
    );
    this.a = state[0] | 0;
    this.b = state[1] | 0;
    this.c = state[2] | 0;
    this.d = state[3] | 0;
  }

  /** An unsigned 32-bit number. */
  next(): number {
    const result = Math.imul(rotateLeft(Math.imul(this.b, 5), 7), 9);
    const shifted = this.b << 9;
    this.c ^= this.a;
    this.d ^= this.b;
    this.b ^= this.c;
    this.a ^= this.d;
    this.c ^= shifted;
    this.d = rotateLeft(this.d, 11);
    return result >>> 0;
  }

  /** 0 to `bound` - 1 by exactly one draw, so that a trace stays aligned; `bound` is 1 to 2^32. */
  below(bound: number): number {
    assert(Number.isInteger(bound) && bound >= 1 && bound <= 2 ** 32, 'a bound is 1 to 2^32');
    return multiplyHigh(this.next(), bound);
  }

  /** Another that draws what this one would draw next. */
  fork(): Random {
    return new Random(this.state());
  }

  state(): RandomState {
    return [this.a >>> 0, this.b >>> 0, this.c >>> 0, this.d >>> 0];
  }
}

/**
 * Seeds that differ in one bit give unrelated sequences: each word is mixed from both halves. The words differ from each
 * other, so they are never all zero.
 */
export function createRandom(seed: Hash64): Random {
  const word = (index: number): number => scramble(scramble(seed.low + index) ^ seed.high);
  return new Random([word(1), word(2), word(3), word(4)]);
}

/** The finalizer of MurmurHash3 (Appleby): a bijection of 32-bit words that is far from linear over XOR. */
function scramble(word: number): number {
  let mixed = word;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

function rotateLeft(word: number, count: number): number {
  return (word << count) | (word >>> (32 - count));
}
