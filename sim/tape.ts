/**
 * The decision tape: every choice of a run as data. Seeds rot when a draw is added anywhere; a tape can be shortened, edited
 * and replayed, because a choice that no longer fits has a defined meaning.
 */
import { assert } from '../core/assert.ts';
import type { Seed } from './seed.ts';

/** The independent streams of chance. A draw added to one leaves the others as they were. */
export const STREAM_NAMES = ['config', 'workload', 'net', 'sched', 'buggify', 'values'] as const;

export type StreamName = (typeof STREAM_NAMES)[number];

/** One kind of decision: where in the program it is taken, and from which stream. */
export interface DecisionSite {
  readonly stream: StreamName;
  readonly site: string;
}

/** One decision: `value` is below `bound`, which is at most 2^32. */
export interface Decision extends DecisionSite {
  readonly bound: number;
  readonly value: number;
}

/** All decisions of one run, in the order taken. */
export interface Tape {
  /** What the decisions do not hold: which buggify points are active. */
  readonly seed: Seed;
  readonly sites: readonly DecisionSite[];
  /** Three words a decision: index into `sites`, bound − 1 (so that 2^32 fits), value. */
  readonly words: Uint32Array;
}

/** Unpacks a tape for reading and editing. */
export function tapeDecisions(tape: Tape): Decision[] {
  const decisions: Decision[] = [];
  for (let at = 0; at < tape.words.length; at += WORDS_EACH) {
    const site = tape.sites[tape.words[at] ?? -1];
    const bound = (tape.words[at + 1] ?? 0) + 1;
    const value = tape.words[at + 2] ?? 0;
    assert(site !== undefined, 'every decision of a tape names one of its sites');
    decisions.push({ stream: site.stream, site: site.site, bound, value });
  }
  return decisions;
}

/** Packs decisions into a tape; the inverse of `tapeDecisions`. */
export function tapeFrom(seed: Seed, decisions: Iterable<Decision>): Tape {
  const recorder = new TapeRecorder(seed);
  for (const { stream, site, bound, value } of decisions) {
    recorder.record(stream, site, bound, value);
  }
  return recorder.tape();
}

/** Collects the decisions of a run. */
export class TapeRecorder {
  readonly #seed: Seed;
  readonly #sites: DecisionSite[] = [];
  readonly #words: number[] = [];
  readonly #indexes: Record<StreamName, Map<string, number>> = {
    config: new Map(),
    workload: new Map(),
    net: new Map(),
    sched: new Map(),
    buggify: new Map(),
    values: new Map(),
  };

  constructor(seed: Seed) {
    this.#seed = seed;
  }

  record(stream: StreamName, site: string, bound: number, value: number): void {
    let index = this.#indexes[stream].get(site);
    if (index === undefined) {
      index = this.#sites.length;
      this.#indexes[stream].set(site, index);
      this.#sites.push({ stream, site });
    }
    this.#words.push(index, bound - 1, value);
  }

  /** How many decisions were recorded so far: marks where an action begins. */
  get length(): number {
    return this.#words.length / WORDS_EACH;
  }

  tape(): Tape {
    return {
      seed: this.#seed,
      sites: this.#sites.slice(),
      words: Uint32Array.from(this.#words),
    };
  }
}

/**
 * Plays a tape back, each stream at its own pace. A decision whose bound has changed gives its value modulo the new bound;
 * after a stream's last decision every choice is 0.
 */
export class TapePlayer {
  readonly #tracks: Record<StreamName, Decision[]> = {
    config: [],
    workload: [],
    net: [],
    sched: [],
    buggify: [],
    values: [],
  };
  readonly #positions: Record<StreamName, number> = {
    config: 0,
    workload: 0,
    net: 0,
    sched: 0,
    buggify: 0,
    values: 0,
  };
  #mismatches = 0;

  constructor(tape: Tape) {
    for (const decision of tapeDecisions(tape)) this.#tracks[decision.stream].push(decision);
  }

  /** How many choices met another site or bound than the tape has, or its end. Zero: a faithful replay so far. */
  get mismatches(): number {
    return this.#mismatches;
  }

  choose(stream: StreamName, site: string, bound: number): number {
    const decision = this.#tracks[stream][this.#positions[stream]++];
    if (decision === undefined || decision.site !== site || decision.bound !== bound) {
      this.#mismatches++;
    }
    return decision === undefined ? 0 : decision.value % bound;
  }
}

const WORDS_EACH = 3;
