/**
 * Who is let in and what becomes of flows whose backend is lost, as the view of a run was told: plain state, for the shadow
 * model. The view itself keeps its own (view-guards.ts).
 */
import type { OnBackendLoss } from '../../core/config.ts';
import type { Fate, Refusal } from '../../core/contract.ts';
import type { Action } from './actions.ts';
import { hostOf } from './pools.ts';

type Denial = Extract<Action, { kind: 'Deny' }>;
type Refusing = Extract<Action, { kind: 'Refuse' }>;

export class GuardModel {
  private deniedHosts: readonly number[] = [];
  private refusal: Refusal | undefined;
  private refusedUntil = 0;
  private readonly policies: OnBackendLoss[] = ['pin', 'pin', 'pin', 'pin'];

  deny({ hosts }: Denial): void {
    const listed: number[] = [];
    for (let host = 0; hosts >> host !== 0; host += 1) {
      if (((hosts >> host) & 1) === 1) listed.push(hostOf(4 * host));
    }
    this.deniedHosts = listed;
  }

  refuse({ refusal, ms }: Refusing, now: number): void {
    this.refusal = refusal;
    this.refusedUntil = now + ms * 1_000;
  }

  setPolicy(backend: number, policy: OnBackendLoss): void {
    this.policies[backend] = policy;
  }

  denies(source: number): boolean {
    return this.deniedHosts.length > 0 && this.deniedHosts.includes(hostOf(source));
  }

  refusalAt(now: number): Refusal | undefined {
    return now < this.refusedUntil ? this.refusal : undefined;
  }

  /** What a flow on this backend meets, which is lost or not. */
  fateOf(backend: number, isLost: boolean): Fate {
    const policy = this.policies[backend];
    if (!isLost || policy === undefined || policy === 'pin') return 'keep';
    return policy;
  }
}
