/**
 * The filling of a Maglev table, which takes some ten looks for each slot: longer than a turn may last. So it can be done in
 * slices, bounded by a count of steps and not by time, because every worker and every replay must do the same (decision 0017).
 */
import type { Backend } from '../contract.ts';
import { remainder, type Hash64 } from '../hash.ts';
import { backendHash } from '../placement.ts';
import { addressName } from './identity.ts';
import { effectiveWeight } from './policy.ts';

/** ASCII "offset" and "skip__" in the place of a key. */
const OFFSET_KEY: Hash64 = { high: 0x6f66, low: 0x66736574 };
const SKIP_KEY: Hash64 = { high: 0x736b, low: 0x69705f5f };

/** Of a slot that nobody has claimed yet. */
export const FREE = -1;

/** What the two hashes of a backend cost, in looks at a slot. */
const STEPS_PER_BACKEND = 128;

/** Backends in turn claim the next free slot of their own permutation, each until it has its share (spec §3.5). */
export class MaglevTable {
  readonly backends: readonly Backend[];
  /** The place in `backends` that holds each slot, or FREE; none at all before every backend was hashed. */
  slots: Int32Array = new Int32Array(0);
  /** Of each backend: the first in the list at its address, which stands for all of them. */
  readonly homes: Int32Array;
  private readonly places = new Map<string, number>();
  private readonly seed: Hash64;
  private readonly size: number;
  /** Of each backend: the slot it looks at next, its step, and the slots it is still owed. */
  private readonly positions: Int32Array;
  private readonly skips: Int32Array;
  private readonly owed: Int32Array;
  /** A ring of the backends that are owed a slot, in the order of the list. */
  private readonly following: Int32Array;
  private previous = 0;
  private current = 0;
  private hashed = 0;
  private free: number;

  /** `size` is a prime. Without backends there is nothing to fill. */
  constructor(seed: Hash64, size: number, backends: readonly Backend[]) {
    this.seed = seed;
    this.size = size;
    this.backends = backends;
    this.homes = new Int32Array(backends.length);
    this.positions = new Int32Array(backends.length);
    this.skips = new Int32Array(backends.length);
    this.following = new Int32Array(backends.length);
    this.owed = shares(size, backends);
    this.free = backends.length === 0 ? 0 : size;
  }

  /** Where in the list the first backend stands that has the address of `backend`, if any. */
  homeOf(backend: Backend): number | undefined {
    return this.places.get(addressName(backend));
  }

  get complete(): boolean {
    return this.free === 0;
  }

  /** Takes up to `steps` steps, or a few more to end with a whole backend. Returns those it had no use for, else 0. */
  fill(steps: number): number {
    const left = this.hash(steps);
    if (left === 0 || this.complete) return left;
    if (this.slots.length === 0) this.begin();
    return this.claim(left);
  }

  private hash(steps: number): number {
    let left = steps;
    for (const backend of this.backends.slice(this.hashed)) {
      if (left <= 0) return 0;
      const { address } = backend;
      const at = this.hashed;
      this.positions[at] = remainder(backendHash(OFFSET_KEY, this.seed, address), this.size);
      this.skips[at] = remainder(backendHash(SKIP_KEY, this.seed, address), this.size - 1) + 1;
      const home = this.homeOf(backend) ?? at;
      if (home === at) this.places.set(addressName(backend), at);
      this.homes[at] = home;
      this.hashed += 1;
      left -= STEPS_PER_BACKEND;
    }
    return Math.max(0, left);
  }

  private begin(): void {
    this.slots = new Int32Array(this.size).fill(FREE);
    const claimants = this.backends.flatMap((_, at) => ((this.owed[at] ?? 0) > 0 ? at : []));
    for (const [place, at] of claimants.entries()) {
      this.following[at] = claimants[(place + 1) % claimants.length] ?? at;
    }
    this.current = claimants[0] ?? 0;
    this.previous = claimants.at(-1) ?? 0;
  }

  /** One step is one look at a slot. */
  private claim(steps: number): number {
    const { slots, size, positions, skips, owed, following } = this;
    let { previous, current, free } = this;
    let left = steps;
    for (; left > 0 && free > 0; left -= 1) {
      const position = positions[current] ?? 0;
      const next = position + (skips[current] ?? 0);
      positions[current] = next < size ? next : next - size;
      if (slots[position] !== FREE) continue;
      slots[position] = current;
      free -= 1;
      const still = (owed[current] ?? 0) - 1;
      owed[current] = still;
      const after = following[current] ?? 0;
      if (still === 0) following[previous] = after;
      else previous = current;
      current = after;
    }
    this.previous = previous;
    this.current = current;
    this.free = free;
    return left;
  }
}

/** Slots in proportion to weight; what rounding leaves over goes to the first backends, one each (spec §3.5). */
function shares(size: number, backends: readonly Backend[]): Int32Array {
  const total = backends.reduce((sum, backend) => sum + effectiveWeight(backend), 0);
  const owed = Int32Array.from(backends, (backend) =>
    Math.floor((effectiveWeight(backend) * size) / total),
  );
  const leftOver = size - owed.reduce((sum, share) => sum + share, 0);
  for (let at = 0; at < leftOver; at += 1) owed[at] = (owed[at] ?? 0) + 1;
  return owed;
}
