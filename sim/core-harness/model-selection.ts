/** Which backend a new flow should get, predicted from the specification's text (§3.1 to §3.5), chance included. */
import { assertNever, present } from '../../core/assert.ts';
import type { InitialState, ViewChange } from './actions.ts';
import {
  naiveAffinityKey,
  naiveBackendHash,
  naiveMaglevTable,
  naiveScore,
} from './naive-placement.ts';
import { NaiveRandom } from './naive-random.ts';
import { BACKEND_ADDRESSES, SOURCES, sourceAt } from './pools.ts';
import { EVERYBODY, MAGLEV_SIZE } from './view.ts';

/** `backend` −1: none can be chosen. */
export interface Prediction {
  readonly candidates: readonly number[];
  readonly backend: number;
  readonly failOpen: boolean;
}

/** What follows from an affinity key alone, worked out once. */
interface KeyedClient {
  readonly key: bigint;
  readonly high: number;
  readonly low: number;
  /** Where a look-up in a Maglev table begins. */
  readonly start: number;
  /** HRW scores of the four backends, worked out when asked for. */
  scores: readonly number[] | undefined;
}

interface Eligible {
  readonly candidates: readonly number[];
  readonly failOpen: boolean;
}

export class SelectionModel {
  private readonly initial: InitialState;
  private readonly seed: bigint;
  private readonly random: NaiveRandom;
  private readonly keys: (KeyedClient | undefined)[] = [];
  /** Live flows of each backend. */
  private readonly flows: number[] = [0, 0, 0, 0];
  private members = EVERYBODY;
  private backups = 0;
  private down = 0;
  private turn = 0;
  private eligible: Eligible | undefined;
  private readonly tables = new Map<number, number[]>();
  /** When the first datagram went to any of them: seconds are counted from there. */
  private firstAt: number | undefined;
  /** Seconds in which datagrams went to each backend. */
  private readonly forwards: number[][] = [[], [], [], []];

  constructor(initial: InitialState) {
    this.initial = initial;
    this.random = new NaiveRandom(initial.hashSeed);
    this.seed = (BigInt(initial.hashSeed.high) << 32n) | BigInt(initial.hashSeed.low);
  }

  change(change: ViewChange): void {
    this.eligible = undefined;
    switch (change.kind) {
      case 'List':
        return this.setList(change.members, change.members & change.backups);
      case 'Health': {
        const bit = 1 << (change.backend % 4);
        if ((this.members & bit) === 0) return undefined;
        this.down = change.healthy ? this.down & ~bit : this.down | bit;
        return undefined;
      }
      case 'Restore':
        this.setList(EVERYBODY, 0);
        this.down = 0;
        return undefined;
    }
  }

  /** Down, or out of the list. */
  lose(backend: number, removed: boolean): void {
    if (!removed) return this.change({ kind: 'Health', backend, healthy: false });
    const members = this.members & ~(1 << backend);
    return this.change({ kind: 'List', members, backups: this.backups });
  }

  regain(backend: number): void {
    const members = this.members | (1 << backend);
    this.change({ kind: 'List', members, backups: this.backups });
    this.change({ kind: 'Health', backend, healthy: true });
  }

  isLost(backend: number): boolean {
    const bit = 1 << backend;
    return (this.members & bit) === 0 || (this.down & bit) !== 0;
  }

  opened(backend: number): void {
    this.flows[backend] = (this.flows[backend] ?? 0) + 1;
  }

  closed(backend: number): void {
    this.flows[backend] = (this.flows[backend] ?? 0) - 1;
  }

  forwarded(backend: number, now: number): void {
    if (!this.initial.byRequests) return;
    this.firstAt ??= now;
    const second = this.secondOf(now);
    const recent = (this.forwards[backend] ?? []).filter((one) => one > second - 10);
    recent.push(second);
    this.forwards[backend] = recent;
  }

  private secondOf(now: number): number {
    return Math.floor((now - (this.firstAt ?? now)) / 1_000_000);
  }

  /** The affinity key of a client as the flow machine must compute it. */
  keyOf(source: number, withPort: boolean): { readonly high: number; readonly low: number } {
    return this.keyed(source, withPort);
  }

  /** Answers once per question: round robin moves on. */
  predict(source: number, withPort: boolean, now: number): Prediction {
    this.eligible ??= this.candidates();
    const { candidates, failOpen } = this.eligible;
    if (candidates.length === 0) return { candidates, backend: -1, failOpen };
    return { candidates, failOpen, backend: this.choose(candidates, source, withPort, now) };
  }

  private choose(
    candidates: readonly number[],
    source: number,
    withPort: boolean,
    now: number,
  ): number {
    switch (this.initial.policy) {
      case 'ROUND_ROBIN':
        return this.inTurn(candidates);
      case 'LEAST_LOADED':
        return lightest(candidates, (backend) => this.loadOf(backend, now));
      case 'HRW': {
        const scores = this.scoresOf(this.keyed(source, withPort));
        return lightest(candidates, (backend) => -(scores[backend] ?? 0));
      }
      case 'MAGLEV':
        return this.fromTable(candidates, this.keyed(source, withPort).start);
      case 'RANDOM':
        return this.byLot(candidates);
      case 'POWER_OF_TWO':
        return this.lighterOfTwo(candidates, now);
      default:
        return assertNever(this.initial.policy);
    }
  }

  private candidates(): Eligible {
    const up = this.members & ~this.down;
    const primaries = up & ~this.backups;
    const chosen = primaries !== 0 ? primaries : up !== 0 ? up : this.members;
    const candidates = [0, 1, 2, 3].filter((index) => (chosen & (1 << index)) !== 0);
    return { candidates, failOpen: up === 0 && this.members !== 0 };
  }

  private setList(members: number, backups: number): void {
    if (members === this.members && backups === this.backups) return;
    this.members = members;
    this.backups = backups;
    this.down &= members;
    this.forgetStrangers();
  }

  /** When the list changes, what a backend carried is forgotten unless it is in the list or has a flow. */
  private forgetStrangers(): void {
    for (const [backend, flows] of this.flows.entries()) {
      if (flows === 0 && (this.members & (1 << backend)) === 0) this.forwards[backend] = [];
    }
  }

  /** By raw weight; uniform when all weights are zero. */
  private byLot(candidates: readonly number[]): number {
    let total = 0;
    for (const backend of candidates) total += this.initial.weights[backend] ?? 0;
    if (total === 0) return candidates[this.random.below(candidates.length)] ?? -1;
    let left = this.random.below(total);
    for (const backend of candidates) {
      const weight = this.initial.weights[backend] ?? 0;
      if (left < weight) return backend;
      left -= weight;
    }
    return -1;
  }

  /** Two different ones are drawn; of equals the earlier in the list wins. */
  private lighterOfTwo(candidates: readonly number[], now: number): number {
    if (candidates.length === 1) return candidates[0] ?? -1;
    const first = this.random.below(candidates.length);
    const others = candidates.filter((_, place) => place !== first);
    const second = others[this.random.below(others.length)];
    const pair = candidates.filter((one, place) => place === first || one === second);
    return lightest(pair, (backend) => this.loadOf(backend, now));
  }

  private inTurn(candidates: readonly number[]): number {
    const chosen = candidates[this.turn % candidates.length] ?? -1;
    this.turn = (this.turn + 1) % candidates.length;
    return chosen;
  }

  private loadOf(backend: number, now: number): number {
    if (!this.initial.byRequests) return this.flows[backend] ?? 0;
    const second = this.secondOf(now);
    let count = 0;
    for (const one of this.forwards[backend] ?? []) if (one > second - 10) count += 1;
    return count;
  }

  /** Clients share a key by address, or have one by address and port. */
  private keyed(source: number, withPort: boolean): KeyedClient {
    const place = withPort ? source : SOURCES.length + (source >> 2);
    let keyed = this.keys[place];
    if (keyed === undefined) {
      const key = naiveAffinityKey(this.seed, sourceAt(source), withPort);
      keyed = {
        key,
        high: Number(key >> 32n),
        low: Number(key & 0xffffffffn),
        start: Number(key % BigInt(MAGLEV_SIZE)),
        scores: undefined,
      };
      this.keys[place] = keyed;
    }
    return keyed;
  }

  private scoresOf(keyed: KeyedClient): readonly number[] {
    keyed.scores ??= BACKEND_ADDRESSES.map((address, index) =>
      naiveScore(naiveBackendHash(keyed.key, this.seed, address), this.weightOf(index)),
    );
    return keyed.scores;
  }

  private fromTable(candidates: readonly number[], start: number): number {
    const table = this.tableOf(this.members);
    for (let step = 0; step < table.length; step += 1) {
      const backend = table[(start + step) % table.length] ?? -1;
      if (candidates.includes(backend)) return backend;
    }
    return this.inTurn(candidates);
  }

  /** The table over these members, in list order; backups and health play no part in it. */
  private tableOf(members: number): number[] {
    let table = this.tables.get(members);
    if (table === undefined) {
      const order = [0, 1, 2, 3].filter((index) => (members & (1 << index)) !== 0);
      const backends = order.map((index) => ({
        address: present(BACKEND_ADDRESSES[index], 'a backend of the pool'),
        weight: this.weightOf(index),
      }));
      const places = naiveMaglevTable(this.seed, MAGLEV_SIZE, backends);
      table = places.map((place) => order[place] ?? -1);
      this.tables.set(members, table);
    }
    return table;
  }

  private weightOf(index: number): number {
    return Math.max(1, this.initial.weights[index] ?? 100);
  }
}

/** The first with the least load. */
function lightest(candidates: readonly number[], load: (backend: number) => number): number {
  let best = candidates[0] ?? -1;
  for (const backend of candidates) if (load(backend) < load(best)) best = backend;
  return best;
}
