/**
 * The core's generator once more, in bigints from its sources' text: xoshiro128** (Blackman and Vigna 2018), its words mixed
 * from the seed by the finalizer of MurmurHash3. So the model knows what RANDOM and POWER_OF_TWO draw.
 */
const WORD = 0xffffffffn;

export class NaiveRandom {
  private words: [bigint, bigint, bigint, bigint];

  constructor(seed: { readonly high: number; readonly low: number }) {
    const word = (index: number): bigint =>
      finalized(finalized((BigInt(seed.low) + BigInt(index)) & WORD) ^ BigInt(seed.high));
    this.words = [word(1), word(2), word(3), word(4)];
  }

  /** 0 to `bound` − 1: the upper half of the product of a draw and the bound. */
  below(bound: number): number {
    return Number((this.next() * BigInt(bound)) >> 32n);
  }

  private next(): bigint {
    const [s0, s1, s2, s3] = this.words;
    const result = (rotated((s1 * 5n) & WORD, 7n) * 9n) & WORD;
    const third = s2 ^ s0;
    const fourth = s3 ^ s1;
    this.words = [s0 ^ fourth, s1 ^ third, third ^ ((s1 << 9n) & WORD), rotated(fourth, 11n)];
    return result;
  }
}

function finalized(word: bigint): bigint {
  let mixed = word;
  mixed = ((mixed ^ (mixed >> 16n)) * 0x85ebca6bn) & WORD;
  mixed = ((mixed ^ (mixed >> 13n)) * 0xc2b2ae35n) & WORD;
  return mixed ^ (mixed >> 16n);
}

function rotated(word: bigint, bits: bigint): bigint {
  return ((word << bits) | (word >> (32n - bits))) & WORD;
}
