/**
 * MAGLEV (Eisenbud et al. 2016): a table from key to backend, filled so that each backend holds its weight's share of the
 * slots. Built over the full set when that changes; health only skips slots, and no datagram ever builds anything (spec §3.5).
 */
import type { Backend } from '../contract.ts';
import { remainder, type Hash64 } from '../hash.ts';
import { backendHash } from '../placement.ts';
import { addressName } from './identity.ts';
import { effectiveWeight, type BalancingPolicy } from './policy.ts';
import { RoundRobin } from './round-robin.ts';

const MAGLEV_TABLE_SIZE = 65_537;

/** ASCII "offset" and "skip__" in the place of a key. */
const OFFSET_KEY: Hash64 = { high: 0x6f66, low: 0x66736574 };
const SKIP_KEY: Hash64 = { high: 0x736b, low: 0x69705f5f };

const FREE = -1;

export class Maglev implements BalancingPolicy {
  private readonly seed: Hash64;
  private readonly size: number;
  private readonly fallback = new RoundRobin();
  private backends: readonly Backend[] = [];
  private slots: Int32Array;
  private candidates: readonly Backend[] = [];
  /** Which candidate, if any, serves the slots of each backend. */
  private serving: readonly (Backend | undefined)[] = [];

  /** `size` is raised to the next prime, so that every skip walks the whole table. */
  constructor(seed: Hash64, size: number = MAGLEV_TABLE_SIZE) {
    this.seed = seed;
    this.size = nextPrime(size);
    this.slots = new Int32Array(0);
  }

  /** The place in the list of backends that holds each slot; empty while there is no backend. */
  get table(): Int32Array {
    return this.slots;
  }

  backendsChanged(backends: readonly Backend[]): void {
    this.backends = backends;
    this.slots = buildTable(this.seed, this.size, backends);
    this.candidates = [];
    this.serving = [];
  }

  /** The first slot from the key's on whose backend is a candidate. Without a key, or without such a slot, in turn. */
  select(candidates: readonly Backend[], key: Hash64 | undefined): Backend | undefined {
    if (key === undefined || candidates.length === 0) return this.fallback.select(candidates);
    if (candidates !== this.candidates) this.recognise(candidates);
    const start = remainder(key, this.size);
    return (
      this.firstServed(start, this.slots.length) ??
      this.firstServed(0, start) ??
      this.fallback.select(candidates)
    );
  }

  private firstServed(from: number, end: number): Backend | undefined {
    for (let slot = from; slot < end; slot += 1) {
      const backend = this.serving[this.slots[slot] ?? FREE];
      if (backend !== undefined) return backend;
    }
    return undefined;
  }

  /** The identity of a backend is its address; of several candidates at one address the first serves. */
  private recognise(candidates: readonly Backend[]): void {
    const byAddress = new Map(
      candidates.toReversed().map((candidate) => [addressName(candidate), candidate]),
    );
    this.candidates = candidates;
    this.serving = this.backends.map((backend) => byAddress.get(addressName(backend)));
  }
}

/** One backend's walk through the table. */
interface Walk {
  readonly index: number;
  readonly skip: number;
  readonly target: number;
  position: number;
  claimed: number;
}

/** Backends in turn claim the next free slot of their own permutation, each until it has its share. */
function buildTable(seed: Hash64, size: number, backends: readonly Backend[]): Int32Array {
  if (backends.length === 0) return new Int32Array(0);
  const slots = new Int32Array(size).fill(FREE);
  const walks = plan(seed, size, backends);
  for (let free = size; free > 0;) {
    for (const walk of walks) {
      if (walk.claimed === walk.target) continue;
      claimNext(walk, slots);
      free -= 1;
    }
  }
  return slots;
}

function claimNext(walk: Walk, slots: Int32Array): void {
  while (slots[walk.position] !== FREE) advance(walk, slots.length);
  slots[walk.position] = walk.index;
  walk.claimed += 1;
  advance(walk, slots.length);
}

function advance(walk: Walk, size: number): void {
  walk.position = (walk.position + walk.skip) % size;
}

/** Slots in proportion to weight; what rounding leaves over goes to the first backends, one each (spec §3.5). */
function plan(seed: Hash64, size: number, backends: readonly Backend[]): Walk[] {
  const total = backends.reduce((sum, backend) => sum + effectiveWeight(backend), 0);
  const shares = backends.map((backend) => Math.floor((effectiveWeight(backend) * size) / total));
  const leftOver = size - shares.reduce((sum, share) => sum + share, 0);
  return backends.map((backend, index) => ({
    index,
    position: remainder(backendHash(OFFSET_KEY, seed, backend.address), size),
    skip: remainder(backendHash(SKIP_KEY, seed, backend.address), size - 1) + 1,
    target: (shares[index] ?? 0) + (index < leftOver ? 1 : 0),
    claimed: 0,
  }));
}

/** The smallest prime that is at least `count`, and at least 2. */
export function nextPrime(count: number): number {
  let candidate = Math.max(2, count);
  while (!isPrime(candidate)) candidate += 1;
  return candidate;
}

function isPrime(candidate: number): boolean {
  for (let divisor = 2; divisor * divisor <= candidate; divisor += 1) {
    if (candidate % divisor === 0) return false;
  }
  return true;
}
