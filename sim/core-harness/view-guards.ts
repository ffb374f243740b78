/**
 * What the view of a run decides besides selection: who is kept out, when new flows are refused, and the fate of flows whose
 * backend is lost. Notes how often it was asked, because what it grants is spent.
 */
import type { Address } from '../../core/address.ts';
import type { OnBackendLoss } from '../../core/config.ts';
import type { Fate, Refusal } from '../../core/contract.ts';
import type { Instant } from '../../core/time.ts';
import { BACKEND_ADDRESSES, HOST_COUNT, placeIn, sourceAt } from './pools.ts';

export class ViewGuards {
  /** Questions since the last `forget`. */
  denialsAsked = 0;
  refusalsAsked = 0;
  fatesAsked = 0;
  /** Whether any of it was ever used in this run. */
  isUsed = false;
  private denied: readonly Address[] = [];
  private refusal: Refusal | undefined;
  private until = 0;
  private readonly policies: OnBackendLoss[] = ['pin', 'pin', 'pin', 'pin'];

  forget(): void {
    this.denialsAsked = 0;
    this.refusalsAsked = 0;
    this.fatesAsked = 0;
  }

  deny(hosts: number): void {
    this.isUsed = true;
    const places = Array.from({ length: HOST_COUNT }, (_, host) => host);
    this.denied = places
      .filter((host) => (hosts & (1 << host)) !== 0)
      .map((host) => sourceAt(4 * host));
  }

  refuse(refusal: Refusal, until: number): void {
    this.isUsed = true;
    this.refusal = refusal;
    this.until = until;
  }

  setPolicy(backend: number, policy: OnBackendLoss): void {
    this.isUsed = true;
    this.policies[backend] = policy;
  }

  denies(src: Address): boolean {
    this.denialsAsked += 1;
    return this.keepsOut(src);
  }

  refuses(now: Instant): Refusal | undefined {
    this.refusalsAsked += 1;
    return this.refusalAt(now);
  }

  /** `lost`: bit i of backend i. */
  fateOf(address: Address, lost: number): Fate {
    this.fatesAsked += 1;
    return this.policyOf(address, lost);
  }

  /** These three answer who checks, and count no question. */
  keepsOut(src: Address): boolean {
    if (this.denied.length === 0) return false;
    for (const { a, b, c, d } of this.denied) {
      if (src.a === a && src.b === b && src.c === c && src.d === d) return true;
    }
    return false;
  }

  refusalAt(now: Instant): Refusal | undefined {
    return now < this.until ? this.refusal : undefined;
  }

  policyOf(address: Address, lost: number): Fate {
    if (lost === 0) return 'keep';
    const place = placeIn(BACKEND_ADDRESSES, address);
    if ((lost & (1 << place)) === 0) return 'keep';
    const policy = this.policies[place] ?? 'pin';
    return policy === 'pin' ? 'keep' : policy;
  }
}
