/**
 * The hash of every table that a stranger can fill: HalfSipHash-1-3 under a secret key drawn at start. Without a secret, a
 * few thousand chosen source addresses make every look-up walk the whole table. Has no effect on any output.
 * Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012), in its 32-bit variant.
 */

/** The secret: two 32-bit words. */
export interface TableSeed {
  readonly first: number;
  readonly second: number;
}

/** Hash of the first `count` of `words`, as a signed 32-bit integer. */
export function keyedHash(seed: TableSeed, words: Int32Array, count: number): number {
  let v0 = seed.first | 0;
  let v1 = seed.second | 0;
  let v2 = 0x6c796765 ^ seed.first;
  let v3 = 0x74656462 ^ seed.second;
  // One round for each word, one for the length, three to finish.
  const rounds = count + 4;
  for (let round = 0; round < rounds; round += 1) {
    const word = round < count ? (words[round] ?? 0) : round === count ? count << 26 : 0;
    if (round === count + 1) v2 ^= 0xff;
    v3 ^= word;
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    v0 ^= word;
  }
  return v1 ^ v3;
}

/** Buckets of an index for `capacity` entries: a power of two, at least twice as many, so that probes stay short. */
export function bucketsFor(capacity: number): number {
  let buckets = 16;
  while (buckets < 2 * capacity) buckets *= 2;
  return buckets;
}
