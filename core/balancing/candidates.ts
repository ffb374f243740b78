/**
 * Which backends a new flow may go to (spec §3.1): healthy primaries, else healthy backups, else everybody, because a wrong
 * health check must not turn an outage of the check into an outage of the service. Recomputed on change, never per
 * selection. Health comes from outside; it steers new flows only.
 */
import { formatAddress, type Address } from '../address.ts';
import type { Backend } from '../contract.ts';

/** Which rule supplied the candidates. */
export type Tier = 'primary' | 'backup' | 'fail-open' | 'none';

/** A closing backend keeps its flows and gets no new ones, not even when everything else is down. */
export type BackendStatus = 'normal' | 'closing';

export interface Availability {
  /** Backends that are healthy and not closing. */
  readonly available: number;
  readonly total: number;
}

export class Candidates {
  private backends: readonly Backend[] = [];
  private unhealthy = new Set<string>();
  private closing = new Set<string>();
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
    const addresses = new Set(backends.map((backend) => formatAddress(backend.address)));
    this.backends = backends;
    this.unhealthy = new Set([...this.unhealthy].filter((address) => addresses.has(address)));
    this.closing = new Set([...this.closing].filter((address) => addresses.has(address)));
    this.choose();
  }

  /** Of every backend at `address`. An unknown address is nobody's: a late probe of a removed backend. */
  setHealth(address: Address, healthy: boolean): void {
    this.mark(this.unhealthy, address, !healthy);
  }

  /** Of every backend at `address`. */
  setStatus(address: Address, status: BackendStatus): void {
    this.mark(this.closing, address, status === 'closing');
  }

  availability(): Availability {
    const available = this.backends.filter((backend) => this.isAvailable(backend)).length;
    return { available, total: this.backends.length };
  }

  private mark(marked: Set<string>, address: Address, wanted: boolean): void {
    const name = formatAddress(address);
    const known = this.backends.some((backend) => formatAddress(backend.address) === name);
    if (!known || marked.has(name) === wanted) return;
    if (wanted) marked.add(name);
    else marked.delete(name);
    this.choose();
  }

  private choose(): void {
    const available = this.backends.filter((backend) => this.isAvailable(backend));
    const primaries = available.filter((backend) => !backend.backup);
    if (primaries.length > 0) return this.settle('primary', primaries);
    if (available.length > 0) return this.settle('backup', available);
    const open = this.backends.filter((backend) => !this.isClosing(backend));
    return this.settle(open.length > 0 ? 'fail-open' : 'none', open);
  }

  private settle(tier: Tier, list: readonly Backend[]): void {
    this.chosenTier = tier;
    this.chosen = list;
  }

  private isAvailable(backend: Backend): boolean {
    return !this.isClosing(backend) && !this.unhealthy.has(formatAddress(backend.address));
  }

  private isClosing(backend: Backend): boolean {
    return this.closing.has(formatAddress(backend.address));
  }
}
