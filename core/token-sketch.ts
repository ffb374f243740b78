/**
 * Token buckets for keys that strangers choose, in memory that does not depend on how many there are: a count-min sketch
 * whose cells are buckets. A key has one cell in each of four rows, and the fullest of the four buckets speaks for it.
 *
 * It errs to one side only. What a key has used is never underestimated, because a cell has seen all that its keys took and
 * leaks no faster than a bucket of their own: nobody gets more than `burst + rate × time`. The other side is a matter of
 * width. Let a flood spend f tokens a second, each under a new key each, and let ρ = f / (columns × rate)
 * be less than 1. A key whose own bucket would have h tokens left is wrongly refused with a probability of at most
 *
 *     exp(−θ · h · ROWS)        where θ > 0 solves ρ (e^θ − 1) = θ;  ρ = 1/2 gives θ = 1.256, ρ = 1/10 gives θ = 3.615
 *
 * because each row is a leaky bucket with random arrivals (Lundberg's bound on the excess of its level), and rows are hashed
 * apart under a secret seed, so that nobody can aim at a cell. From ρ = 1 on nothing is promised; in trials cells fill from
 * ρ = 2 on, and at 3 a third is refused, the good with the bad. So choose columns ≥ 2 f / rate, and let established flows
 * bypass the sketch. What is refused spends nothing, and only cells that would otherwise understate their key are written
 * (conservative update: Estan and Varghese 2002; count-min: Cormode and Muthukrishnan 2005).
 */
import { assert } from './assert.ts';
import { keyedHash, type TableSeed } from './keyed-hash.ts';
import { instant, type Instant } from './time.ts';

/** One keyed hash has 32 bits: a column of up to 16 bits in each of two rows. Two hashes make four. */
export const ROWS = 4;

/** Columns at most: what half a hash can address. 4 MiB. */
export const COLUMNS_MAX = 65_536;

/** Rates and bursts at most, so that every intermediate result is exact in a double. */
export const TOKENS_MAX: number = 2 ** 32;

/** A token in the sketch's own unit: time is microseconds and rates are per second, so that everything is an integer. */
const TOKEN = 1_000_000;

/** A cell: what was used and has not leaked away by the time at which it was last written. */
const STRIDE = 2;
const USED = 0;
const WRITTEN = 1;

export interface TokenSketchOptions {
  /** Tokens that a key gets each second, 1 to `TOKENS_MAX`. */
  readonly rate: number;
  /** Tokens that a key can save up, 1 to `TOKENS_MAX`. It begins with all of them. */
  readonly burst: number;
  /** A power of two up to `COLUMNS_MAX`; 64 bytes each. */
  readonly columns: number;
  /** Secret. Two sketches may share it. */
  readonly seed: TableSeed;
}

export class TokenSketch {
  private readonly options: TokenSketchOptions;
  private readonly rate: number;
  /** The most that a bucket holds, in the sketch's unit. */
  private readonly capacity: number;
  private readonly mask: number;
  private readonly seeds: readonly [TableSeed, TableSeed];
  private readonly cells: Float64Array;
  /** Where the key's cells begin: filled by `locate`. */
  private readonly places = new Int32Array(ROWS);
  private latest: Instant = instant(0);

  constructor(options: TokenSketchOptions) {
    const { rate, burst, columns, seed } = options;
    assert(isCount(rate) && isCount(burst), 'rate and burst are whole and exact in a double');
    assert(
      columns >= 1 && columns <= COLUMNS_MAX && (columns & (columns - 1)) === 0,
      'columns are a power of two that half a hash can address',
    );
    this.options = options;
    this.rate = rate;
    this.capacity = burst * TOKEN;
    this.mask = columns - 1;
    this.seeds = [seed, { first: seed.first ^ 0x5bd1e995, second: seed.second ^ 0x27d4eb2f }];
    this.cells = new Float64Array(ROWS * columns * STRIDE);
  }

  /** Bytes of all cells, from the first key to the last. */
  get byteLength(): number {
    return this.cells.byteLength;
  }

  /** Whether it was made with these options. */
  isOf({ rate, burst, columns, seed }: TokenSketchOptions): boolean {
    const own = this.options;
    const sameBucket = rate === own.rate && burst === own.burst;
    const sameSeed = seed.first === own.seed.first && seed.second === own.seed.second;
    return sameBucket && sameSeed && columns === own.columns;
  }

  /**
   * Whether the key in the first `count` of `words` has `tokens` left (a whole number, 0 or more). Nothing is spent. `now`
   * never goes back, here and below.
   */
  has(words: Int32Array, count: number, tokens: number, now: Instant): boolean {
    return this.usedBy(words, count, now) + tokens * TOKEN <= this.capacity;
  }

  /** The same; and if they are there, they are spent. */
  take(words: Int32Array, count: number, tokens: number, now: Instant): boolean {
    const after = this.usedBy(words, count, now) + tokens * TOKEN;
    if (after > this.capacity) return false;
    const { cells, places } = this;
    for (let row = 0; row < ROWS; row += 1) {
      const at = places[row] ?? 0;
      if (this.usedAt(at, now) >= after) continue;
      cells[at + USED] = after;
      cells[at + WRITTEN] = now;
    }
    return true;
  }

  /** What the fullest of a key's buckets says was used. Leaves `places` at its cells. */
  private usedBy(words: Int32Array, count: number, now: Instant): number {
    assert(now >= this.latest, 'time does not go back');
    this.latest = now;
    this.locate(words, count);
    let least = this.capacity;
    for (let row = 0; row < ROWS; row += 1) {
      least = Math.min(least, this.usedAt(this.places[row] ?? 0, now));
    }
    return least;
  }

  /** What was used of a cell and has not leaked away by now. Exact: a product that is rounded exceeds all that can be used. */
  private usedAt(at: number, now: Instant): number {
    const idle = now - (this.cells[at + WRITTEN] ?? 0);
    return Math.max(0, (this.cells[at + USED] ?? 0) - idle * this.rate);
  }

  private locate(words: Int32Array, count: number): void {
    const { places, mask, seeds } = this;
    for (let half = 0; half < ROWS / 2; half += 1) {
      const hash = keyedHash(half === 0 ? seeds[0] : seeds[1], words, count);
      const row = 2 * half;
      places[row] = (row * (mask + 1) + (hash & mask)) * STRIDE;
      places[row + 1] = ((row + 1) * (mask + 1) + ((hash >>> 16) & mask)) * STRIDE;
    }
  }
}

function isCount(count: number): boolean {
  return Number.isInteger(count) && count >= 1 && count <= TOKENS_MAX;
}
