/**
 * Which backends a new flow may go to (spec §3.1): healthy primaries, else healthy backups, else everybody, because a wrong
 * health check must not turn an outage of the check into an outage of the service; or nobody, where an operator trusts the
 * check (`fail_open = false`). Recomputed on change, never per selection. Health comes from outside; it steers new flows
 * only.
 */
import { sameAddress, type Address } from '../address.ts';
import type { Backend } from '../contract.ts';
import { addressName } from './identity.ts';

/** Which rule supplied the candidates. */
export type Tier = 'primary' | 'backup' | 'fail-open' | 'none';

/** A closing backend keeps its flows and gets no new ones, not even when everything else is down. */
export type BackendStatus = 'normal' | 'closing';

export interface Availability {
  /** Backends that are healthy and not closing. */
  readonly available: number;
  readonly total: number;
}

/** One backend and what is known of its address. */
interface Entry {
  readonly backend: Backend;
  healthy: boolean;
  closing: boolean;
}

export class Candidates {
  private entries: readonly Entry[] = [];
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

  /** A backend that was here before keeps its health and status; one that comes is healthy until shown otherwise. */
  setBackends(backends: readonly Backend[]): void {
    const known = new Map(this.entries.map((entry) => [addressName(entry.backend), entry]));
    this.entries = backends.map((backend) => {
      const before = known.get(addressName(backend));
      return { backend, healthy: before?.healthy ?? true, closing: before?.closing ?? false };
    });
    this.choose();
  }

  /** Whether everybody may be chosen when nobody is available. */
  setFailOpen(failOpen: boolean): void {
    if (failOpen === this.failOpen) return;
    this.failOpen = failOpen;
    this.choose();
  }

  /** Of every backend at `address`. An unknown address is nobody's: a late probe of a removed backend. */
  setHealth(address: Address, healthy: boolean): void {
    this.update(address, { healthy });
  }

  /** Of every backend at `address`. */
  setStatus(address: Address, status: BackendStatus): void {
    this.update(address, { closing: status === 'closing' });
  }

  availability(): Availability {
    return { available: this.entries.filter(isAvailable).length, total: this.entries.length };
  }

  /** Chooses anew only when something changed: policies know a list by its identity. */
  private update(address: Address, news: Partial<Pick<Entry, 'healthy' | 'closing'>>): void {
    let changed = false;
    for (const entry of this.entries) {
      if (!sameAddress(entry.backend.address, address)) continue;
      const { healthy, closing } = { ...entry, ...news };
      changed ||= healthy !== entry.healthy || closing !== entry.closing;
      entry.healthy = healthy;
      entry.closing = closing;
    }
    if (changed) this.choose();
  }

  private choose(): void {
    const available = this.entries.filter(isAvailable);
    const primaries = available.filter(({ backend }) => !backend.backup);
    if (primaries.length > 0) return this.settle('primary', primaries);
    if (available.length > 0) return this.settle('backup', available);
    const open = this.failOpen ? this.entries.filter(({ closing }) => !closing) : [];
    return this.settle(open.length > 0 ? 'fail-open' : 'none', open);
  }

  private settle(tier: Tier, entries: readonly Entry[]): void {
    this.chosenTier = tier;
    this.chosen = entries.map(({ backend }) => backend);
  }
}

function isAvailable({ healthy, closing }: Entry): boolean {
  return healthy && !closing;
}
