/**
 * MAGLEV (Eisenbud et al. 2016): a table from key to backend, filled so that each backend holds its weight's share of the
 * slots. Built over the full set when that changes; health only skips slots, and no datagram ever builds anything (spec §3.5).
 * Where changes are worked off in slices, the old table serves until the new one is complete, and a first one while it fills.
 */
import type { Backend } from '../contract.ts';
import { remainder, type Hash64 } from '../hash.ts';
import { FREE, MaglevTable } from './maglev-table.ts';
import type { BalancingPolicy, Choice } from './policy.ts';
import { RoundRobin } from './round-robin.ts';

const MAGLEV_TABLE_SIZE = 65_537;

export class Maglev implements BalancingPolicy {
  private readonly seed: Hash64;
  private readonly size: number;
  private readonly inSlices: boolean;
  private readonly fallback = new RoundRobin();
  /** The latest list, which the table in service may not know yet. */
  private wanted: readonly Backend[] = [];
  private filling: MaglevTable | undefined;
  private current: MaglevTable;
  private candidates: readonly Backend[] = [];
  /** Which candidate, if any, serves the slots of each home. */
  private serving: (Backend | undefined)[] = [];

  /** `size` is raised to the next prime, so that every skip walks the whole table. `inSlices`: see `PolicyTools`. */
  constructor(seed: Hash64, size: number = MAGLEV_TABLE_SIZE, inSlices = false) {
    this.seed = seed;
    this.size = nextPrime(size);
    this.inSlices = inSlices;
    this.current = new MaglevTable(seed, this.size, []);
  }

  /** The place in the list of backends that holds each slot; empty while there is no backend. */
  get table(): Int32Array {
    return this.current.slots;
  }

  backendsChanged(backends: readonly Backend[]): void {
    this.wanted = backends;
    this.filling ??= new MaglevTable(this.seed, this.size, backends);
    if (!this.inSlices) this.build(Infinity);
  }

  /** A table once begun is finished before the next, so that a list that never rests holds nobody back for ever. */
  build(steps: number): number {
    let left = steps;
    while (this.filling !== undefined && left > 0) {
      left = this.filling.fill(left);
      if (this.filling.complete || this.table.length === 0) this.serve(this.filling);
      if (!this.filling.complete) break;
      const isLatest = this.filling.backends === this.wanted;
      this.filling = isLatest ? undefined : new MaglevTable(this.seed, this.size, this.wanted);
    }
    return left;
  }

  /** The first slot from the key's on whose backend is a candidate. Without a key, or without such a slot, in turn. */
  select(candidates: readonly Backend[], key: Hash64 | undefined): Backend | undefined {
    if (key === undefined || candidates.length === 0) return this.fallback.select(candidates);
    const served = this.servedFrom(candidates, remainder(key, this.size));
    return served ?? this.fallback.select(candidates);
  }

  explain(candidates: readonly Backend[], key: Hash64 | undefined): Choice {
    const inTurn = this.fallback.explain(candidates);
    if (key === undefined || candidates.length === 0) return inTurn;
    const slot = remainder(key, this.size);
    const chosen = this.servedFrom(candidates, slot) ?? inTurn.chosen;
    return {
      chosen,
      reason: { kind: 'Slot', slot, size: this.size, held: this.heldBy(candidates) },
    };
  }

  /** Slots of each candidate. */
  private heldBy(candidates: readonly Backend[]): number[] {
    const held = new Map<Backend | undefined, number>();
    const { slots, homes } = this.current;
    for (const place of slots) {
      const owner = this.serving[homes[place] ?? FREE];
      held.set(owner, (held.get(owner) ?? 0) + 1);
    }
    return candidates.map((candidate) => held.get(candidate) ?? 0);
  }

  private servedFrom(candidates: readonly Backend[], start: number): Backend | undefined {
    if (candidates !== this.candidates) this.recognise(candidates);
    // A table that is not begun yet ends before the key's slot.
    const end = Math.min(start, this.table.length);
    return this.firstServed(start, this.table.length) ?? this.firstServed(0, end);
  }

  private firstServed(from: number, end: number): Backend | undefined {
    const { slots, homes } = this.current;
    for (let slot = from; slot < end; slot += 1) {
      const place = slots[slot] ?? FREE;
      const backend = place === FREE ? undefined : this.serving[homes[place] ?? FREE];
      if (backend !== undefined) return backend;
    }
    return undefined;
  }

  private serve(table: MaglevTable): void {
    this.current = table;
    this.candidates = [];
  }

  /** The identity of a backend is its address; of several candidates at one address the first serves. */
  private recognise(candidates: readonly Backend[]): void {
    this.candidates = candidates;
    this.serving = this.current.backends.map(() => undefined);
    for (const candidate of candidates) {
      const home = this.current.homeOf(candidate);
      if (home !== undefined) this.serving[home] ??= candidate;
    }
  }
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
