/**
 * The backends that the flow machine is lent: the core's own BackendSet under the changes of a run, so that selection is
 * swept with everything else. Notes what it was asked and what it answered.
 */
import type { Address } from '../../core/address.ts';
import { assert, present } from '../../core/assert.ts';
import { BackendSet } from '../../core/balancing/backend-set.ts';
import { Maglev } from '../../core/balancing/maglev.ts';
import type { Backend, BackendSource, Fate, Refusal } from '../../core/contract.ts';
import type { Hash64 } from '../../core/hash.ts';
import { createRandom } from '../../core/random.ts';
import type { Instant } from '../../core/time.ts';
import type { InitialState, ViewChange } from './actions.ts';
import { BACKEND_ADDRESSES } from './pools.ts';
import { ViewGuards } from './view-guards.ts';

/** Small, because every change of the list builds a table. */
export const MAGLEV_SIZE = 251;

/** Bits 0 to 3: everybody. */
export const EVERYBODY = 15;

export class SimulatedView implements BackendSource {
  /** The key of the latest question, and how many were asked since the last `forget`. */
  asked: Hash64 | undefined;
  questions = 0;
  /** What the latest question was answered. */
  answered: Backend | undefined;
  readonly guards: ViewGuards = new ViewGuards();
  private members = EVERYBODY;
  private backups = 0;
  private down = 0;
  private readonly set: BackendSet;
  private readonly pool: readonly Backend[];
  private readonly spare: readonly Backend[];

  /** `prefix` spells the ids of backends, which must not matter. */
  constructor(initial: InitialState, prefix: string) {
    const make = (index: number, backup: boolean): Backend => ({
      id: `${prefix}${index}`,
      address: present(BACKEND_ADDRESSES[index], 'a backend of the pool'),
      weight: initial.weights[index] ?? 100,
      backup,
    });
    this.pool = BACKEND_ADDRESSES.map((_, index) => make(index, false));
    this.spare = BACKEND_ADDRESSES.map((_, index) => make(index, true));
    this.set = new BackendSet({
      loadBalancing:
        initial.policy === 'MAGLEV'
          ? ({ placementSeed }) => new Maglev(placementSeed, MAGLEV_SIZE)
          : initial.policy,
      loadMetric: initial.byRequests ? 'REQUESTS' : 'CONNECTIONS',
      random: createRandom(initial.hashSeed),
      placementSeed: initial.hashSeed,
      backends: this.pool,
    });
  }

  select(key: Hash64, now: Instant): Backend | undefined {
    this.asked = key;
    this.questions += 1;
    this.answered = this.set.select(key, now);
    return this.answered;
  }

  denies(src: Address): boolean {
    return this.guards.denies(src);
  }

  refuses(_src: Address, _local: Address | undefined, now: Instant): Refusal | undefined {
    return this.guards.refuses(now);
  }

  fateOf(backend: Backend): Fate {
    return this.guards.fateOf(backend.address, this.lost);
  }

  /** The backend of this place, as a primary and as a backup. */
  entriesAt(backend: number): Backend[] {
    return [this.pool, this.spare].flatMap((list) => list.slice(backend, backend + 1));
  }

  /** Backends that are down or out of the list, one bit each. */
  get lost(): number {
    return (EVERYBODY & ~this.members) | this.down;
  }

  forget(): void {
    this.asked = undefined;
    this.questions = 0;
    this.answered = undefined;
    this.guards.forget();
  }

  change(change: ViewChange): void {
    switch (change.kind) {
      case 'List':
        return this.setList(change.members, change.backups);
      case 'Health':
        return this.setHealth(change.backend % 4, change.healthy);
      case 'Restore':
        this.setList(EVERYBODY, 0);
        for (let backend = 0; backend < 4; backend += 1) this.setHealth(backend, true);
        return undefined;
    }
  }

  /** Down, or out of the list. */
  lose(backend: number, removed: boolean): void {
    if (removed) this.setList(this.members & ~(1 << backend), this.backups);
    else this.setHealth(backend, false);
  }

  /** In the list, and up. */
  regain(backend: number): void {
    this.setList(this.members | (1 << backend), this.backups);
    this.setHealth(backend, true);
  }

  opened(backend: Backend): void {
    this.set.flowOpened(backend);
  }

  closed(backend: Backend): void {
    this.set.flowClosed(backend);
  }

  forwarded(backend: Backend, now: Instant): void {
    this.set.forwarded(backend, now);
  }

  private setList(members: number, backups: number): void {
    this.members = members;
    this.backups = members & backups;
    this.down &= members;
    this.set.setBackends(this.list(members, backups));
  }

  private setHealth(backend: number, healthy: boolean): void {
    const bit = 1 << backend;
    if (healthy) this.down &= ~bit;
    else this.down |= bit & this.members;
    this.set.setHealth(present(BACKEND_ADDRESSES[backend], 'a backend of the pool'), healthy);
  }

  private list(members: number, backups: number): Backend[] {
    const list: Backend[] = [];
    for (let index = 0; index < 4; index += 1) {
      if ((members & (1 << index)) === 0) continue;
      const one = (backups & (1 << index)) === 0 ? this.pool[index] : this.spare[index];
      assert(one !== undefined, 'a backend of the pool');
      list.push(one);
    }
    return list;
  }
}
