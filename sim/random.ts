/**
 * All chance of a simulation. The generator is seedrandom's xor128, seeded by us: its own seeding is linear, so streams
 * seeded by it would be copies of each other (seed.ts). Only whole 32-bit draws are used and every choice costs exactly one,
 * so no choice depends on how another one came out.
 */
import seedrandom from 'seedrandom';
import { assert, present } from '../core/assert.ts';
import { hashSeed } from './seed.ts';
import type { Seed } from './seed.ts';
import type { StreamName, Tape, TapeRecorder } from './tape.ts';
import { TapePlayer } from './tape.ts';

/** The named streams of one run. */
export type Streams = Readonly<Record<StreamName, Random>>;

/** The streams of a seed; with a recorder, every choice goes on tape. */
export function seededStreams(seed: Seed, recorder?: TapeRecorder): Streams {
  return buildStreams({ seed, recorder, player: undefined });
}

/** The streams of a tape, and the player that says whether the tape still fits. */
export function tapedStreams(
  tape: Tape,
  recorder?: TapeRecorder,
): { readonly streams: Streams; readonly player: TapePlayer } {
  const player = new TapePlayer(tape);
  return { streams: buildStreams({ seed: tape.seed, recorder, player }), player };
}

/** Where choices come from (a tape instead of the seed, when there is a player) and where they go. */
interface Origin {
  readonly seed: Seed;
  readonly recorder: TapeRecorder | undefined;
  readonly player: TapePlayer | undefined;
}

/**
 * One stream of choices. `site` is a literal that names the decision on tapes; it never changes what is drawn. Bounds are
 * whole numbers from 1 to 2^32.
 */
export class Random {
  readonly #stream: StreamName;
  readonly #path: string;
  readonly #origin: Origin;
  readonly #taped: boolean;
  readonly #generator: seedrandom.PRNG;

  constructor(stream: StreamName, path: string, origin: Origin) {
    this.#stream = stream;
    this.#path = path;
    this.#origin = origin;
    this.#taped = origin.recorder !== undefined || origin.player !== undefined;
    this.#generator = generator(origin.seed, path);
  }

  /** A whole number from 0 to `bound` − 1. */
  choose(site: string, bound: number): number {
    assert(bound >= 1 && bound <= WORD_COUNT && bound % 1 === 0, 'a bound is 1 to 2^32');
    return this.#taped ? this.#chooseTaped(site, bound) : this.#choose(bound);
  }

  /** True in `numerator` of `denominator` cases. */
  chance(site: string, numerator: number, denominator: number): boolean {
    return this.choose(site, denominator) < numerator;
  }

  /** A whole number from `low` to `high`, both included. */
  between(site: string, low: number, high: number): number {
    return low + this.choose(site, high - low + 1);
  }

  /** One of `items`, of which there must be at least one, none of them undefined. */
  pick<T>(site: string, items: readonly T[]): T {
    return present(items[this.choose(site, items.length)], 'one of the items was chosen');
  }

  /** An index into `weights` (whole, not negative, not all zero), each as likely as its share of their sum. */
  weighted(site: string, weights: readonly number[]): number {
    let total = 0;
    for (const weight of weights) total += weight;
    let rest = this.choose(site, total);
    let index = 0;
    for (const weight of weights) {
      rest -= weight;
      if (rest < 0) break;
      index++;
    }
    return index;
  }

  /** The items in a drawn order (Fisher and Yates), none of them undefined; `items` itself is left alone. */
  shuffle<T>(site: string, items: readonly T[]): T[] {
    const shuffled = items.slice();
    for (let last = shuffled.length - 1; last > 0; last--) {
      const place = this.choose(site, last + 1);
      const chosen = present(shuffled[place], 'a drawn place is filled');
      shuffled[place] = present(shuffled[last], 'the last place is filled');
      shuffled[last] = chosen;
    }
    return shuffled;
  }

  /** A stream of its own under this one's name, for something that may come and go without shifting its siblings. */
  fork(name: string): Random {
    return new Random(this.#stream, `${this.#path}/${name}`, this.#origin);
  }

  /** The high word of draw × bound: one draw, whatever the bound. The product's rounding never reaches `bound`. */
  #choose(bound: number): number {
    return Math.floor((this.#generator.int32() >>> 0) * bound * WORD_SHARE);
  }

  #chooseTaped(site: string, bound: number): number {
    const { player, recorder } = this.#origin;
    const value = player?.choose(this.#stream, site, bound) ?? this.#choose(bound);
    recorder?.record(this.#stream, site, bound, value);
    return value;
  }
}

const WORD_COUNT = 2 ** 32;
const WORD_SHARE = 1 / WORD_COUNT;

function buildStreams(origin: Origin): Streams {
  return {
    config: new Random('config', 'config', origin),
    workload: new Random('workload', 'workload', origin),
    net: new Random('net', 'net', origin),
    sched: new Random('sched', 'sched', origin),
    buggify: new Random('buggify', 'buggify', origin),
    values: new Random('values', 'values', origin),
  };
}

function generator(seed: Seed, path: string): seedrandom.PRNG {
  const x = hashSeed(seed, path, 0);
  const y = hashSeed(seed, path, 1);
  const z = hashSeed(seed, path, 2);
  const w = hashSeed(seed, path, 3);
  const dead = (x | y | z | w) === 0;
  return seedrandom.xor128('', { state: { x, y, z, w: dead ? 1 : w } });
}
