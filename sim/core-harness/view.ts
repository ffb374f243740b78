/**
 * The backends that the flow machine is lent: the core's own BackendSet under the changes of a run, so that selection is
 * swept with everything else. Notes what it was asked and what it answered.
 */
import { assert, present } from '../../core/assert.ts';
import { BackendSet } from '../../core/balancing/backend-set.ts';
import { Maglev } from '../../core/balancing/maglev.ts';
import type { Backend, BackendSource } from '../../core/contract.ts';
import type { Hash64 } from '../../core/hash.ts';
import { createRandom } from '../../core/random.ts';
import type { Instant } from '../../core/time.ts';
import type { InitialState, ViewChange } from './actions.ts';
import { BACKEND_ADDRESSES } from './pools.ts';

/** Small, because every change of the list builds a table. */
export const MAGLEV_SIZE = 251;

/** Bits 0 to 3: everybody. */
export const EVERYBODY = 15;

export class SimulatedView implements BackendSource {
  /** The key of the latest question, and how many were asked since the last `forget`. */
  asked: Hash64 | undefined;
  questions = 0;
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
    return this.set.select(key, now);
  }

  forget(): void {
    this.asked = undefined;
    this.questions = 0;
  }

  change(change: ViewChange): void {
    switch (change.kind) {
      case 'List':
        return this.set.setBackends(this.list(change.members, change.backups));
      case 'Health': {
        const address = present(BACKEND_ADDRESSES[change.backend % 4], 'a backend of the pool');
        this.set.setHealth(address, change.healthy);
        return undefined;
      }
      case 'Restore':
        this.set.setBackends(this.pool);
        for (const address of BACKEND_ADDRESSES) this.set.setHealth(address, true);
        return undefined;
    }
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
