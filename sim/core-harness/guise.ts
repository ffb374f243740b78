/** How a run looks from outside: what may differ without effect, and who looks on. */
import type { Output } from '../../core/contract.ts';
import type { TableSeed } from '../../core/keyed-hash.ts';
import type { UdpManager } from '../../core/manager.ts';
import type { Instant } from '../../core/time.ts';

/** Everything that must not matter: another guise of the same run has the same outputs. */
export interface Guise {
  /** What the receive buffer holds once it is no longer lent. */
  readonly poison: number;
  readonly tableSeed: TableSeed;
  /** How the ids of clusters and backends are spelled. */
  readonly prefix: string;
}

/** A stranger's view of each call, for verbose runs. */
export interface Trace {
  call(name: string, now: Instant, outputs: readonly Output[], manager: UdpManager): void;
}
