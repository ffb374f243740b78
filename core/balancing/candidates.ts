/**
 * Which backends a new flow may go to (spec §3.1): healthy primaries, else healthy backups, else everybody, because a wrong
 * health check must not turn an outage of the check into an outage of the service; or nobody, where an operator trusts the
 * check (`fail_open = false`). Recomputed on change, never per selection. Health comes from outside; it steers new flows
 * only.
 */
import { formatAddress, sameAddress, type Address } from '../address.ts';
import type { Backend } from '../contract.ts';
import { addressName } from './identity.ts';

/** Which rule supplied the candidates. */
export type Tier = 'primary' | 'backup' | 'fail-open' | 'none';

/**
 * What an operator wants of a backend. All but an active one are closing: no new flows, not even when everything else is
 * down. A draining one keeps its flows until its deadline, the others lose them as a removed one does.
 */
export type OperatorState = 'active' | 'draining' | 'drained' | 'disabled';

/** Why a backend that has flows should not have them any more. A drain must end, so `drained` outweighs a pin. */
export type Loss = 'down' | 'removed' | 'drained';

export interface Availability {
  /** Backends that are healthy and active. */
  readonly available: number;
  readonly total: number;
}

/** One backend and what is known of its address. */
export interface Entry {
  readonly backend: Backend;
  healthy: boolean;
  state: OperatorState;
}

export class Candidates {
  private entries: readonly Entry[] = [];
  /** Entries of one address know the same of it, so any of them will do. */
  private byAddress = new Map<string, Entry>();
  private failOpen = true;
  private chosen: readonly Backend[] = [];
  private chosenTier: Tier = 'none';

  /** In configuration order; the same array until something changes. */
  get list(): readonly Backend[] {
    return this.chosen;
  }

  get tier(): Tier {
    return this.chosenTier;
  }

  /** A backend that was here before keeps its health and state; one that comes is healthy until shown otherwise. */
  setBackends(backends: readonly Backend[]): void {
    this.entries = backends.map((backend) => {
      const before = this.byAddress.get(addressName(backend));
      return { backend, healthy: before?.healthy ?? true, state: before?.state ?? 'active' };
    });
    this.byAddress = new Map(this.entries.map((entry) => [addressName(entry.backend), entry]));
    this.choose();
  }

  /** Whether everybody may be chosen when nobody is available. */
  setFailOpen(failOpen: boolean): void {
    if (failOpen === this.failOpen) return;
    this.failOpen = failOpen;
    this.choose();
  }

  /**
   * Of every backend at `address`; says whether that is news. An unknown address is nobody's: a late probe of a removed
   * backend.
   */
  setHealth(address: Address, healthy: boolean): boolean {
    return this.update(address, { healthy });
  }

  /** Of every backend at `address`; says whether that is news. */
  setState(address: Address, state: OperatorState): boolean {
    return this.update(address, { state });
  }

  /** Of the backends at `address`; active where there is none. */
  stateOf(address: Address): OperatorState {
    return this.byAddress.get(formatAddress(address))?.state ?? 'active';
  }

  /** What is known of each backend, in configuration order. */
  get known(): readonly Readonly<Entry>[] {
    return this.entries;
  }

  /**
   * Why flows on `backend`, of this list or an earlier one, have lost it; undefined while they have not. Its address is what
   * counts (spec §1.6). Where all are down and any is tried, no place is better than the one a flow has.
   */
  lossOf(backend: Backend): Loss | undefined {
    const entry = this.byAddress.get(addressName(backend));
    if (entry === undefined || entry.state === 'disabled') return 'removed';
    if (entry.state === 'drained') return 'drained';
    return entry.healthy || this.chosenTier === 'fail-open' ? undefined : 'down';
  }

  availability(): Availability {
    return { available: this.entries.filter(isAvailable).length, total: this.entries.length };
  }

  /** Chooses anew only when something changed: policies know a list by its identity. What is no news costs one look-up. */
  private update(address: Address, news: Partial<Pick<Entry, 'healthy' | 'state'>>): boolean {
    const known = this.byAddress.get(formatAddress(address));
    if (known === undefined) return false;
    const { healthy, state } = { ...known, ...news };
    if (healthy === known.healthy && state === known.state) return false;
    for (const entry of this.entries) {
      if (!sameAddress(entry.backend.address, address)) continue;
      entry.healthy = healthy;
      entry.state = state;
    }
    this.choose();
    return true;
  }

  private choose(): void {
    const available = this.entries.filter(isAvailable);
    const primaries = available.filter(({ backend }) => !backend.backup);
    if (primaries.length > 0) return this.settle('primary', primaries);
    if (available.length > 0) return this.settle('backup', available);
    const open = this.failOpen ? this.entries.filter(({ state }) => state === 'active') : [];
    return this.settle(open.length > 0 ? 'fail-open' : 'none', open);
  }

  private settle(tier: Tier, entries: readonly Entry[]): void {
    this.chosenTier = tier;
    this.chosen = entries.map(({ backend }) => backend);
  }
}

function isAvailable({ healthy, state }: Entry): boolean {
  return healthy && state === 'active';
}
