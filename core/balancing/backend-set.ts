/**
 * The backends of one cluster: the list, who of them may be chosen, and the policy that chooses. This is the selection view
 * that a listener's flow machine is lent with a datagram. Changing it never touches a live flow.
 */
import { sameAddress, type Address } from '../address.ts';
import type { LoadBalancing, LoadMetric } from '../config.ts';
import type { Backend, BackendSource } from '../contract.ts';
import type { Hash64 } from '../hash.ts';
import type { Random } from '../random.ts';
import type { Duration, Instant } from '../time.ts';
import {
  Candidates,
  type Availability,
  type Entry,
  type Loss,
  type OperatorState,
  type Tier,
} from './candidates.ts';
import { createPolicy } from './create-policy.ts';
import { backendIdentity } from './identity.ts';
import { BackendLoads } from './load.ts';
import type { BalancingPolicy, Choice, PolicyFactory, PolicyTools } from './policy.ts';

export interface BackendSetOptions {
  /** One of the six by name, or what makes a policy of one's own. */
  readonly loadBalancing: LoadBalancing | PolicyFactory;
  readonly loadMetric: LoadMetric;
  readonly random: Random;
  readonly placementSeed: Hash64;
  readonly backends: readonly Backend[];
  /** Whether every backend is tried when none is available; true unless given. */
  readonly failOpen?: boolean | undefined;
  /** Whether somebody calls `build` after changes; else each does all its work at once. */
  readonly inSlices?: boolean;
}

/** The two turns a cluster's fortune can take: every backend is down and any is tried, or one is up again. */
export type FailOpenChange = 'entered' | 'left';

/** A selection that was not made, and all that it would rest on. */
export interface Explanation {
  /** The rule that supplies the candidates. */
  readonly tier: Tier;
  readonly candidates: readonly Backend[];
  readonly choice: Choice | undefined;
  /** In configuration order, candidates or not. */
  readonly backends: readonly ExplainedBackend[];
}

export interface ExplainedBackend {
  readonly backend: Backend;
  /** As data planes are told: neither its probes nor its traffic speak against it. */
  readonly healthy: boolean;
  readonly state: OperatorState;
  /** Live flows in this data plane. */
  readonly flows: number;
  /** By the cluster's load metric. */
  readonly load: number;
}

export class BackendSet implements BackendSource {
  private readonly candidates = new Candidates();
  private readonly loads: BackendLoads;
  private readonly tools: PolicyTools;
  private loadBalancing: LoadBalancing | PolicyFactory;
  private policy: BalancingPolicy;
  private list: readonly Backend[] = [];
  private failsOpen = false;
  private reportedFailsOpen = false;
  private failOpenCount = 0;

  constructor(options: BackendSetOptions) {
    const loads = new BackendLoads(options.loadMetric);
    this.loads = loads;
    this.tools = {
      random: options.random,
      placementSeed: options.placementSeed,
      loads,
      inSlices: options.inSlices ?? false,
    };
    this.loadBalancing = options.loadBalancing;
    this.policy = makePolicy(options.loadBalancing, this.tools);
    this.candidates.setFailOpen(options.failOpen ?? true);
    this.setBackends(options.backends);
  }

  /** In configuration order. */
  get backends(): readonly Backend[] {
    return this.list;
  }

  /** Which rule supplies the candidates at present. */
  get tier(): Tier {
    return this.candidates.tier;
  }

  /** What is known of each backend, in configuration order. */
  get known(): readonly Readonly<Entry>[] {
    return this.candidates.known;
  }

  /** Selections made although no backend was available: `backends.fail_open`. */
  get failOpenSelections(): number {
    return this.failOpenCount;
  }

  /** `key` is undefined only for callers without a client; a keyed policy then takes turns. */
  select(key: Hash64 | undefined, now: Instant): Backend | undefined {
    const chosen = this.policy.select(this.candidates.list, key, now);
    if (chosen === undefined) return undefined;
    this.failsOpen = this.candidates.tier === 'fail-open';
    if (this.failsOpen) this.failOpenCount += 1;
    return chosen;
  }

  /**
   * What `select` would give, and why, without being it: nothing is counted, drawn or taken. No choice where a policy of a
   * user's own explains nothing.
   */
  explain(key: Hash64, now: Instant): Explanation {
    const { list, tier, known } = this.candidates;
    const choice = this.policy.explain?.(list, key, now);
    return {
      tier,
      candidates: list,
      choice,
      backends: known.map(({ backend, healthy, state }) => {
        const { loads } = this;
        const about = { flows: loads.flowsOn(backend), load: loads.loadOf(backend, now) };
        return { backend, healthy, state, ...about };
      }),
    };
  }

  /** What selections have shown since the last call; each turn is told once, to be logged once (spec §3.1). */
  takeFailOpenChange(): FailOpenChange | undefined {
    if (this.failsOpen === this.reportedFailsOpen) return undefined;
    this.reportedFailsOpen = this.failsOpen;
    return this.failsOpen ? 'entered' : 'left';
  }

  /**
   * Replaces the list. Of several entries with one id and address the last counts, in the place of the first. Health,
   * state and load of a backend that stays are kept.
   */
  setBackends(backends: readonly Backend[]): void {
    if (sameList(backends, this.list)) return;
    const old = new Map(this.list.map((backend) => [backendIdentity(backend), backend]));
    const wanted = new Map(backends.map((backend) => [backendIdentity(backend), backend]));
    const next = [...wanted].map(([identity, backend]) => unchanged(old.get(identity), backend));
    if (sameList(next, this.list)) return;
    this.list = next;
    this.loads.setBackends(next);
    this.candidates.setBackends(next);
    this.policy.backendsChanged?.(next);
  }

  /** Appends `backend`, or replaces the one with its id and address. Says whether it is a new one. */
  addBackend(backend: Backend): boolean {
    const before = this.list.length;
    this.setBackends([...this.list, backend]);
    return this.list.length > before;
  }

  /** Goes on with what changes left to do, for about `steps` steps; returns those it had no use for. */
  build(steps: number): number {
    return this.policy.build?.(steps) ?? steps;
  }

  /** Starts the policy afresh: round-robin from the first. A Maglev table depends on the list alone, and stays. */
  setPolicy(loadBalancing: LoadBalancing | PolicyFactory, loadMetric: LoadMetric): void {
    this.loads.setMetric(loadMetric);
    if (loadBalancing === 'MAGLEV' && this.loadBalancing === 'MAGLEV') return;
    this.loadBalancing = loadBalancing;
    this.policy = makePolicy(loadBalancing, this.tools);
    this.policy.backendsChanged?.(this.list);
  }

  setFailOpen(failOpen: boolean): void {
    this.candidates.setFailOpen(failOpen);
  }

  /** Of every backend at `address`; says whether that is news. */
  setHealth(address: Address, healthy: boolean): boolean {
    return this.candidates.setHealth(address, healthy);
  }

  /** Of every backend at `address`; says whether that is news. */
  setState(address: Address, state: OperatorState): boolean {
    return this.candidates.setState(address, state);
  }

  /** What the operator wants of the backends at `address`; active where there is none. */
  stateOf(address: Address): OperatorState {
    return this.candidates.stateOf(address);
  }

  /** Why live flows on `backend` have lost it; undefined while they have not. */
  lossOf(backend: Backend): Loss | undefined {
    return this.candidates.lossOf(backend);
  }

  /** Every backend that live flows are on, as they know it: some may have left the list, or changed since. */
  inUse(): Backend[] {
    return this.loads.inUse();
  }

  /** Live flows that lead to `address`. */
  flowsAt(address: Address): number {
    return this.loads.flowsAt(address);
  }

  availability(): Availability {
    return this.candidates.availability();
  }

  /** A flow now lives on `backend`, which `select` gave. */
  flowOpened(backend: Backend): void {
    this.loads.flowOpened(backend);
  }

  flowClosed(backend: Backend): void {
    this.loads.flowClosed(backend);
  }

  /** A client datagram of a live flow went to `backend`. */
  forwarded(backend: Backend, now: Instant): void {
    this.loads.forwarded(backend, now);
  }

  /** A probe of `address` was answered after `took`. */
  probed(address: Address, took: Duration): void {
    this.loads.probed(address, took);
  }

  /** Live flows on a backend of the list. */
  flowsOn(backend: Backend): number {
    return this.loads.flowsOn(backend);
  }
}

function makePolicy(
  loadBalancing: LoadBalancing | PolicyFactory,
  tools: PolicyTools,
): BalancingPolicy {
  return typeof loadBalancing === 'function'
    ? loadBalancing(tools)
    : createPolicy(loadBalancing, tools);
}

/** Whether two lists hold the very same objects. */
function sameList(one: readonly Backend[], other: readonly Backend[]): boolean {
  return one.length === other.length && one.every((backend, at) => backend === other[at]);
}

/** The old object where nothing changed, so that live flows and the list speak of the same one. */
function unchanged(old: Backend | undefined, wanted: Backend): Backend {
  const same =
    old !== undefined &&
    old.weight === wanted.weight &&
    old.backup === wanted.backup &&
    sameAddress(old.address, wanted.address);
  return same ? old : wanted;
}
