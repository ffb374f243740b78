/** Fates against a naive account: whatever changes, each live flow knows what becomes of it, judged from scratch. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addressOf, backendsOf, clusterSettings } from '../test/plane-bench.ts';
import { formatAddress } from './address.ts';
import { present } from './assert.ts';
import type { OperatorState } from './balancing/candidates.ts';
import { Clusters, type Cluster } from './clusters.ts';
import type { ClusterSettings, OnBackendLoss } from './config.ts';
import type { Backend, Fate } from './contract.ts';
import { Fates } from './fates.ts';
import { PLACEMENT_SEED } from './hash.ts';
import { healthSettings } from './health/settings.ts';
import { createRandom } from './random.ts';
import { instant } from './time.ts';

const POLICIES: readonly OnBackendLoss[] = ['pin', 'rebind', 'close'];

describe('a flow whose backend is', () => {
  for (const policy of POLICIES) {
    const fate = policy === 'pin' ? 'keep' : policy;

    test(`down while another serves: ${policy} by on_backend_down`, () => {
      const world = new World({ onBackendDown: policy, onBackendRemoved: 'pin' });
      const backend = world.open();
      world.health(1, false);
      expect(world.fates.of(backend)).toBe(fate);
      world.health(1, true);
      expect(world.fates.of(backend)).toBe('keep');
    });

    test(`removed, or disabled: ${policy} by on_backend_removed, until it comes back`, () => {
      const world = new World({ onBackendRemoved: policy });
      const backend = world.open();
      world.configure({ onBackendRemoved: policy, backends: backendsOf(2) });
      expect(world.fates.of(backend)).toBe(fate);
      world.configure({ onBackendRemoved: policy });
      expect(world.fates.of(backend)).toBe('keep');
      world.state(1, 'disabled');
      expect(world.fates.of(backend)).toBe(fate);
      world.state(1, 'active');
      expect(world.fates.of(backend)).toBe('keep');
    });

    test(`drained: never pinned, because a drain must end (${policy})`, () => {
      const world = new World({ onBackendRemoved: policy });
      const backend = world.open();
      world.state(1, 'draining');
      expect(world.fates.of(backend)).toBe('keep');
      world.state(1, 'drained');
      expect(world.fates.of(backend)).toBe(policy === 'pin' ? 'close' : policy);
    });
  }

  test('down like all others stays where it is while any is tried, and is lost once one is up', () => {
    const world = new World({ onBackendDown: 'close' });
    const backend = world.open();
    world.health(1, false);
    world.health(2, false);
    expect(world.fates.of(backend)).toBe('keep');
    world.health(2, true);
    expect(world.fates.of(backend)).toBe('close');
  });

  test('down like all others is lost where the operator trusts the probes', () => {
    const health = healthSettings({ failOpen: false });
    const world = new World({ onBackendDown: 'close', health });
    const backend = world.open();
    world.health(1, false);
    world.health(2, false);
    expect(world.fates.of(backend)).toBe('close');
  });

  test('known by an older weight fares like the one that took its place', () => {
    const world = new World({ onBackendDown: 'rebind' });
    const backend = world.open();
    const [one, two] = backendsOf(1, 2);
    world.configure({ onBackendDown: 'rebind', backends: [{ ...one!, weight: 7 }, two!] });
    expect(world.fates.of(backend)).toBe('keep');
    world.health(1, false);
    expect(world.fates.of(backend)).toBe('rebind');
  });
});

test('what one cluster lost is not lost for another with the very same backends', () => {
  const fates = new Fates();
  const clusters = newClusters();
  const shared = backendsOf(1, 2);
  const [one, other] = ['c', 'd'].map((cluster) =>
    clusters.set(clusterSettings({ cluster, backends: shared, onBackendDown: 'rebind' })),
  );
  const ofOne = openIn(one!);
  const ofOther = openIn(other!);
  const news = { kind: 'SetHealth', cluster: 'c', address: shared[0]!.address } as const;
  fates.judge(present(clusters.learn({ ...news, healthy: false }), 'that is news'));
  expect([fates.of(ofOne), fates.of(ofOther)]).toEqual(['rebind', 'keep']);
});

test('after any changes each flow has the fate that its cluster, judged from scratch, gives it', () => {
  const seen = new Set<Fate>();
  fc.assert(
    fc.property(fc.array(acts, { maxLength: 40, size: 'max' }), (walk) => {
      const world = new World({});
      for (const act of walk) {
        act(world);
        for (const backend of world.flows) {
          const fate = world.expected(backend);
          seen.add(fate);
          expect(world.fates.of(backend)).toBe(fate);
        }
      }
    }),
    { numRuns: 500 },
  );
  expect([...seen].sort()).toEqual(['close', 'keep', 'rebind']);
});

const numbers = fc.integer({ min: 1, max: 4 });

const acts = fc.oneof(
  fc
    .record({
      backends: fc
        .uniqueArray(fc.tuple(numbers, fc.constantFrom(50, 100)), {
          selector: ([n]) => n,
          minLength: 1,
        })
        .map((list) => list.map(([n, weight]) => ({ ...backendsOf(n)[0]!, weight }))),
      onBackendDown: fc.constantFrom(...POLICIES),
      onBackendRemoved: fc.constantFrom(...POLICIES),
      failOpen: fc.boolean(),
    })
    .map(({ failOpen, ...more }) => {
      const health = healthSettings({ failOpen });
      return (world: World): void => world.configure({ ...more, health });
    }),
  fc.tuple(numbers, fc.boolean()).map(
    ([n, healthy]) =>
      (world: World): void =>
        world.health(n, healthy),
  ),
  fc
    .tuple(
      numbers,
      fc.constantFrom<OperatorState>('active', 'draining', 'drained', 'disabled', 'active'),
    )
    .map(
      ([n, state]) =>
        (world: World): void =>
          world.state(n, state),
    ),
  fc.constant((world: World): void => world.openIfAny()),
  fc.constant((world: World): void => world.openIfAny()),
  fc.nat(20).map(
    (nth) =>
      (world: World): void =>
        world.close(nth),
  ),
);

/** One cluster, its flows, and what was said of its backends in plain maps. */
class World {
  readonly fates = new Fates();
  readonly flows: Backend[] = [];
  private readonly clusters = newClusters();
  private cluster: Cluster;
  private readonly down = new Set<string>();
  private readonly states = new Map<string, OperatorState>();

  constructor(more: Partial<ClusterSettings>) {
    this.cluster = this.clusters.set(clusterSettings(more));
  }

  configure(more: Partial<ClusterSettings>): void {
    this.cluster = this.clusters.set(clusterSettings(more));
    this.fates.judge(this.cluster);
    const names = this.names();
    for (const name of this.down) if (!names.includes(name)) this.down.delete(name);
    for (const name of this.states.keys()) if (!names.includes(name)) this.states.delete(name);
  }

  health(n: number, healthy: boolean): void {
    const name = `10.0.0.${n}:53`;
    this.learn({ kind: 'SetHealth', cluster: 'c', address: addressOf(name), healthy });
    if (healthy || !this.names().includes(name)) this.down.delete(name);
    else this.down.add(name);
  }

  state(n: number, state: OperatorState): void {
    const name = `10.0.0.${n}:53`;
    const about = { cluster: 'c', address: addressOf(name), change: 1 };
    this.learn({ kind: 'SetBackendState', ...about, state });
    if (this.names().includes(name)) this.states.set(name, state);
  }

  open(): Backend {
    const backend = openIn(this.cluster);
    this.flows.push(backend);
    return backend;
  }

  openIfAny(): void {
    if (this.cluster.backends.tier !== 'none') this.open();
  }

  close(nth: number): void {
    const [backend] = this.flows.splice(nth, 1);
    if (backend === undefined) return;
    this.cluster.backends.flowClosed(backend);
    if (!this.flows.includes(backend)) this.fates.forget(backend);
  }

  expected({ address }: Backend): Fate {
    const { onBackendDown, onBackendRemoved } = this.cluster.settings;
    const name = formatAddress(address);
    const state = this.states.get(name) ?? 'active';
    const removed = onBackendRemoved === 'pin' ? 'keep' : onBackendRemoved;
    if (!this.names().includes(name) || state === 'disabled') return removed;
    if (state === 'drained') return onBackendRemoved === 'pin' ? 'close' : removed;
    if (!this.down.has(name) || onBackendDown === 'pin') return 'keep';
    return this.isAnyTried() ? 'keep' : onBackendDown;
  }

  private isAnyTried(): boolean {
    const open = this.names().filter((one) => (this.states.get(one) ?? 'active') === 'active');
    const anyUp = open.some((one) => !this.down.has(one));
    return open.length > 0 && !anyUp && (this.cluster.settings.health?.failOpen ?? true);
  }

  private learn(news: Parameters<Clusters['learn']>[0]): void {
    const changed = this.clusters.learn(news);
    if (changed !== undefined) this.fates.judge(changed);
  }

  private names(): string[] {
    return this.cluster.settings.backends.map(({ address }) => formatAddress(address));
  }
}

function newClusters(): Clusters {
  return new Clusters(PLACEMENT_SEED, createRandom({ high: 1, low: 2 }), { first: 1, second: 2 });
}

function openIn({ backends }: Cluster): Backend {
  const backend = present(backends.select(undefined, instant(0)), 'somebody serves');
  backends.flowOpened(backend);
  return backend;
}
