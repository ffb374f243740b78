/**
 * The core's generator once more, from its sources' text: xoshiro128** (Blackman and Vigna 2018), its words mixed from the
 * seed by the finalizer of MurmurHash3. So the model knows what RANDOM and POWER_OF_TWO draw.
 */
export class NaiveRandom {
  /** Four unsigned words. */
  private words: readonly [number, number, number, number];

  constructor(seed: { readonly high: number; readonly low: number }) {
    const word = (index: number): number =>
      finalized((finalized((seed.low + index) >>> 0) ^ seed.high) >>> 0);
    this.words = [word(1), word(2), word(3), word(4)];
  }

  /** 0 to `bound` − 1: the upper half of the product of a draw and a small bound. */
  below(bound: number): number {
    return Math.floor((this.next() * bound) / 2 ** 32);
  }

  private next(): number {
    const [s0, s1, s2, s3] = this.words;
    const result = product(rotated(product(s1, 5), 7), 9);
    const third = (s2 ^ s0) >>> 0;
    const fourth = (s3 ^ s1) >>> 0;
    this.words = [
      (s0 ^ fourth) >>> 0,
      (s1 ^ third) >>> 0,
      (third ^ (s1 << 9)) >>> 0,
      rotated(fourth, 11),
    ];
    return result;
  }
}

function finalized(word: number): number {
  const once = product((word ^ (word >>> 16)) >>> 0, 0x85ebca6b);
  const twice = product((once ^ (once >>> 13)) >>> 0, 0xc2b2ae35);
  return (twice ^ (twice >>> 16)) >>> 0;
}

/** Modulo 2^32. */
function product(left: number, right: number): number {
  return Math.imul(left, right) >>> 0;
}

function rotated(word: number, bits: number): number {
  return ((word << bits) | (word >>> (32 - bits))) >>> 0;
}
