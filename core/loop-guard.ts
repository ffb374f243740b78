/**
 * Keeps datagrams from circling: one whose source is our own listener, or a backend, would be answered to that address and
 * come back for ever, and a single spoofed source starts it (decisions table "loops").
 */
import type { Address } from './address.ts';
import type { Cluster } from './clusters.ts';
import type { Backend, BackendSource, Fate, Refusal } from './contract.ts';
import type { Fates } from './fates.ts';
import type { Hash64 } from './hash.ts';
import type { Instant } from './time.ts';
import type { ListenerConfig } from './config.ts';
import { OwnAddresses } from './hostile.ts';
import type { TableSeed } from './keyed-hash.ts';

export class LoopGuard {
  private readonly hosts: readonly Address[];
  private readonly seed: TableSeed;
  private own: OwnAddresses;

  /** `hosts` are this machine's addresses: a wildcard listener answers from each of them. */
  constructor(hosts: readonly Address[], seed: TableSeed) {
    this.hosts = hosts;
    this.seed = seed;
    this.own = new OwnAddresses({ listeners: [], backends: [], hosts, seed });
  }

  /** The configuration changed. */
  learn(listeners: readonly ListenerConfig[], clusters: readonly Cluster[]): void {
    const { hosts, seed } = this;
    const backends = clusters.flatMap(({ settings }) => settings.backends);
    this.own = new OwnAddresses({
      listeners,
      backends: backends.map(({ address }) => address),
      hosts,
      seed,
    });
  }

  /** Whether an answer to this source would come back. `cluster` may say that its backends are clients too. */
  refuses(src: Address, local: Address | undefined, cluster: Cluster | undefined): boolean {
    const kind = this.own.kindOf(src, local);
    if (kind === undefined) return false;
    return kind === 'listener' || cluster?.settings.allowBackendAsClient !== true;
  }
}

/** What a data plane lends its flow machines: the backends of a cluster behind its guards. One object for all datagrams. */
export class GuardedBackends implements BackendSource {
  /** Of the listener whose datagram is under way. */
  cluster: Cluster | undefined;
  /** Why nobody may open a flow at present: the machine has no socket for it. */
  hold: Refusal | undefined;
  /** Whether it is at work on what listeners share, or failed at that. */
  isBusy = false;
  private readonly guard: LoopGuard;
  private readonly fates: Fates;

  constructor(guard: LoopGuard, fates: Fates) {
    this.guard = guard;
    this.fates = fates;
  }

  select(key: Hash64, now: Instant): Backend | undefined {
    this.isBusy = true;
    const backend = this.cluster?.backends.select(key, now);
    this.isBusy = false;
    return backend;
  }

  denies(src: Address): boolean {
    return this.cluster?.policer.denies(src) === true;
  }

  /** Rates last: who cannot be served for another reason has spent nothing. */
  refuses(src: Address, local: Address | undefined, now: Instant): Refusal | undefined {
    if (this.guard.refuses(src, local, this.cluster)) return 'Loop';
    if (this.hold !== undefined) return this.hold;
    this.isBusy = true;
    const refusal = this.cluster?.policer.refuses(src, now);
    this.isBusy = false;
    return refusal;
  }

  fateOf(backend: Backend): Fate {
    return this.fates.of(backend);
  }
}
