/**
 * A dry run: what another configuration would move. The very policies that serve are asked for the same keys under both
 * configurations, so what is foretold is what comes; in slices, because a thousand backends take seconds.
 */
import { formatAddress, sameAddress, type Address } from './address.ts';
import { BackendSet } from './balancing/backend-set.ts';
import type { OperatorState } from './balancing/candidates.ts';
import type { ClusterSettings, Config, ListenerConfig } from './config.ts';
import type { Fate } from './contract.ts';
import { fateAfter } from './fates.ts';
import type { FlowCount } from './flow-commands.ts';
import type { Hash64 } from './hash.ts';
import { createRandom } from './random.ts';
import { instant } from './time.ts';

export type Previewed = Pick<Config, 'listeners' | 'clusters'>;

export interface PreviewOptions {
  readonly before: Previewed;
  readonly after: Previewed;
  /** What is known of a backend that both have. */
  readonly known: (cluster: string, address: Address) => KnownBackend;
  /** The live flows there are. */
  readonly counts: readonly FlowCount[];
  readonly placementSeed: Hash64;
  /** Affinity keys to try. */
  readonly keys: readonly Hash64[];
}

export interface KnownBackend {
  readonly healthy: boolean;
  readonly state: OperatorState;
}

export interface Preview {
  /** How many keys were tried. */
  readonly keys: number;
  readonly listeners: readonly ListenerPreview[];
}

/** Of a listener of either configuration. */
export interface ListenerPreview {
  readonly listener: Address;
  /** Where it leads, undefined for nowhere or where there is no such listener. */
  readonly before: string | undefined;
  readonly after: string | undefined;
  /**
   * Keys whose new flows would go elsewhere, by their place in the list, ascending. Undefined where either policy places
   * nobody by a key.
   */
  readonly moved: readonly number[] | undefined;
  /** What would become of live flows at their next datagram. */
  readonly flows: Readonly<Record<Fate, number>>;
}

/** Keys that a dry run tries unless told otherwise: a share of them is exact to about one in a hundred. */
const PREVIEW_KEYS = 10_000;

/** So many keys from all over the key space, the same each time. */
export function evenKeys(count: number = PREVIEW_KEYS): Hash64[] {
  const random = createRandom({ high: 0x70726576, low: 0x69657773 });
  return Array.from({ length: count }, () => ({ high: random.next(), low: random.next() }));
}

/** All at once, for who can wait. */
export function preview(options: PreviewOptions): Preview {
  const job = new PreviewJob(options);
  job.advance(Infinity);
  return job.result();
}

/** In steps of some ten nanoseconds each. */
export class PreviewJob {
  /** Of `options` what is asked later. Who knows of backends is asked here and now. */
  private readonly counts: readonly FlowCount[];
  private readonly keyCount: number;
  private readonly before: ReadonlyMap<string, ClusterSettings>;
  private readonly after: ReadonlyMap<string, ClusterSettings>;
  private readonly pairs: readonly ListenerPair[];
  /** By names of both clusters: most listeners share one. */
  private readonly comparisons = new Map<string, Comparison>();

  constructor(options: PreviewOptions) {
    const { before, after } = options;
    this.counts = options.counts;
    this.keyCount = options.keys.length;
    this.before = new Map(before.clusters.map((one) => [one.cluster, one]));
    this.after = new Map(after.clusters.map((one) => [one.cluster, one]));
    this.pairs = pairsOf(before.listeners, after.listeners);
    for (const pair of this.pairs) this.compare(pair, options);
  }

  /** Goes on for about `steps` steps; says whether that was the end. */
  advance(steps: number): boolean {
    let left = steps;
    for (const comparison of this.comparisons.values()) {
      left = comparison.advance(left);
      if (left <= 0) return false;
    }
    return true;
  }

  /** Once it is at its end. */
  result(): Preview {
    const listeners = this.pairs.map((pair): ListenerPreview => {
      const moved = this.comparisons.get(nameOf(pair))?.moved;
      const names = { before: pair.before?.cluster, after: pair.after?.cluster };
      return { listener: pair.address, ...names, moved, flows: this.flowsOf(pair) };
    });
    return { keys: this.keyCount, listeners };
  }

  private compare(pair: ListenerPair, options: PreviewOptions): void {
    const name = nameOf(pair);
    if (this.comparisons.has(name)) return;
    const old = this.before.get(pair.before?.cluster ?? '');
    const wanted = this.after.get(pair.after?.cluster ?? '');
    this.comparisons.set(name, new Comparison(old, wanted, options));
  }

  /** Flows keep to the cluster that admitted them, wherever their listener leads by then. */
  private flowsOf({ address, after }: ListenerPair): Record<Fate, number> {
    const flows = { keep: 0, rebind: 0, close: 0 };
    for (const count of this.counts) {
      if (!sameAddress(count.listener, address)) continue;
      flows[after === undefined ? 'close' : this.fateOf(count)] += count.flows;
    }
    return flows;
  }

  private fateOf({ cluster, backend }: FlowCount): Fate {
    const settings = this.after.get(cluster);
    if (settings?.backends.some(({ address }) => sameAddress(address, backend)) === true) {
      return 'keep';
    }
    const policies = settings ?? this.before.get(cluster);
    return policies === undefined ? 'keep' : fateAfter('removed', policies);
  }
}

interface ListenerPair {
  readonly address: Address;
  readonly before: ListenerConfig | undefined;
  readonly after: ListenerConfig | undefined;
}

function nameOf({ before, after }: ListenerPair): string {
  return JSON.stringify([before?.cluster ?? '', after?.cluster ?? '']);
}

/** Those of the old configuration first, then those that come. */
function pairsOf(
  before: readonly ListenerConfig[],
  after: readonly ListenerConfig[],
): ListenerPair[] {
  const old = new Map(before.map((one) => [formatAddress(one.address), one]));
  const wanted = new Map(after.map((one) => [formatAddress(one.address), one]));
  return [...new Map([...old, ...wanted])].map(([name, { address }]) => {
    return { address, before: old.get(name), after: wanted.get(name) };
  });
}

/** What one choice costs beside a look at each candidate, and that look under HRW. */
const STEPS_PER_KEY = 20;
const STEPS_PER_SCORE = 30;

/** The same keys under two clusters; either may be missing. */
export class Comparison {
  private readonly keys: readonly Hash64[];
  private readonly before: BackendSet | undefined;
  private readonly after: BackendSet | undefined;
  private readonly stepsPerKey: number;
  /** Whose keys are other ones altogether. */
  private readonly shift: 0 | 1;
  private next = 0;
  readonly moved: number[] | undefined;

  constructor(
    before: ClusterSettings | undefined,
    after: ClusterSettings | undefined,
    options: PreviewOptions,
  ) {
    this.keys = options.keys;
    const present = [before, after].flatMap((one) => one ?? []);
    const isKeyed = present.length > 0 && present.every(placesByKey);
    this.moved = isKeyed ? [] : undefined;
    // Nothing to compare.
    if (!isKeyed || before === after) this.next = this.keys.length;
    this.before = isKeyed ? setOf(before, options) : undefined;
    this.after = isKeyed ? setOf(after, options) : undefined;
    this.stepsPerKey = present.reduce((sum, one) => sum + stepsPerKey(one), 0);
    const isSameKey = before?.affinityWithPort === after?.affinityWithPort;
    this.shift = present.length === 2 && !isSameKey ? 1 : 0;
  }

  /** See PreviewJob; returns the steps it had no use for. */
  advance(steps: number): number {
    const afterOne = this.before?.build(steps) ?? steps;
    let left = this.after?.build(afterOne) ?? afterOne;
    for (; this.next < this.keys.length && left > 0; this.next += 1) {
      left -= this.stepsPerKey;
      if (this.moves(this.next)) this.moved?.push(this.next);
    }
    return left;
  }

  private moves(place: number): boolean {
    const key = this.keys[place];
    const wanted = this.keys[(place + this.shift) % this.keys.length];
    const [now, then] = [
      this.before?.select(key, instant(0))?.address,
      this.after?.select(wanted, instant(0))?.address,
    ];
    if (now === undefined || then === undefined) return now !== then;
    return !sameAddress(now, then);
  }
}

function placesByKey({ loadBalancing }: ClusterSettings): boolean {
  return loadBalancing === 'HRW' || loadBalancing === 'MAGLEV';
}

function stepsPerKey({ loadBalancing, backends }: ClusterSettings): number {
  return STEPS_PER_KEY + (loadBalancing === 'HRW' ? STEPS_PER_SCORE * backends.length : 0);
}

/** As a data plane would have it. */
function setOf(
  settings: ClusterSettings | undefined,
  { placementSeed, known }: PreviewOptions,
): BackendSet | undefined {
  if (settings === undefined) return undefined;
  const { cluster, backends, loadBalancing, loadMetric, health } = settings;
  const set = new BackendSet({
    loadBalancing,
    loadMetric,
    random: createRandom({ high: 0, low: 0 }),
    placementSeed,
    backends,
    failOpen: health?.failOpen,
    inSlices: true,
  });
  for (const { address } of backends) {
    const { healthy, state } = known(cluster, address);
    set.setHealth(address, healthy);
    set.setState(address, state);
  }
  return set;
}
