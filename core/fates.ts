/**
 * What becomes of live flows whose backend is lost: down, or taken away by an operator (decisions table "live flow, backend
 * unhealthy" and "removed"). Judged when something changes, never per datagram; while nothing is lost a datagram pays one
 * comparison.
 */
import { assertNever } from './assert.ts';
import type { Loss } from './balancing/candidates.ts';
import type { Cluster } from './clusters.ts';
import type { ClusterSettings, OnBackendLoss } from './config.ts';
import type { Backend, Fate } from './contract.ts';

export class Fates {
  /**
   * By object: a flow holds the one it was admitted with, though its cluster may know another by now. Only of backends that
   * have flows.
   */
  private readonly lost = new Map<Backend, 'rebind' | 'close'>();

  /** What the flows on `backend` should do at their next client datagram. */
  of(backend: Backend): Fate {
    return this.lost.size === 0 ? 'keep' : (this.lost.get(backend) ?? 'keep');
  }

  /** Something changed in this cluster. Says whether any of its flows must close. */
  judge({ settings, backends }: Cluster): boolean {
    let closes = false;
    for (const backend of backends.inUse()) {
      const fate = fateAfter(backends.lossOf(backend), settings);
      if (fate === 'keep') this.lost.delete(backend);
      else this.lost.set(backend, fate);
      closes ||= fate === 'close';
    }
    return closes;
  }

  /** No flow is left on `backend`. */
  forget(backend: Backend): void {
    this.lost.delete(backend);
  }
}

type Policies = Pick<ClusterSettings, 'onBackendDown' | 'onBackendRemoved'>;

/** A drain that is over ends flows even where they would be pinned: else it would have no end. */
export function fateAfter(loss: Loss | undefined, policies: Policies): Fate {
  switch (loss) {
    case undefined:
      return 'keep';
    case 'down':
      return fateBy(policies.onBackendDown);
    case 'removed':
      return fateBy(policies.onBackendRemoved);
    case 'drained':
      return policies.onBackendRemoved === 'pin' ? 'close' : policies.onBackendRemoved;
    default:
      return assertNever(loss);
  }
}

function fateBy(policy: OnBackendLoss): Fate {
  return policy === 'pin' ? 'keep' : policy;
}
