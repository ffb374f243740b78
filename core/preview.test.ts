/** What a dry run foretells is what comes: over 10,000 keys, exactly. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addressOf, backendsOf, clusterSettings, listenerConfig } from '../test/plane-bench.ts';
import { untilOver } from '../test/until-over.ts';
import { Clusters } from './clusters.ts';
import type { ClusterSettings, OnBackendLoss } from './config.ts';
import { PLACEMENT_SEED, type Hash64 } from './hash.ts';
import { evenKeys, preview, PreviewJob, type PreviewOptions } from './preview.ts';
import { createRandom } from './random.ts';
import { instant } from './time.ts';

const KEYS = evenKeys();

const lists = fc
  .uniqueArray(
    fc.record({
      n: fc.integer({ min: 1, max: 6 }),
      weight: fc.integer({ min: 0, max: 255 }),
      backup: fc.boolean(),
    }),
    { minLength: 1, selector: ({ n }) => n },
  )
  .map((list) => list.map(({ n, ...more }) => ({ ...backendsOf(n)[0]!, ...more })));

for (const loadBalancing of ['HRW', 'MAGLEV'] as const) {
  test(`${loadBalancing}: the keys foretold to move are those that move, whatever changes`, () => {
    fc.assert(
      fc.property(lists, lists, fc.subarray([1, 2, 3, 4, 5, 6]), (old, wanted, down) => {
        const [before, after] = [old, wanted].map((backends) =>
          clusterSettings({ loadBalancing, backends }),
        );
        const isDown = down.map((n) => backendsOf(n)[0]!.address);
        const live = new Clusters(PLACEMENT_SEED, createRandom({ high: 1, low: 2 }), {
          first: 1,
          second: 2,
        });
        const configure = (settings: ClusterSettings): void => {
          live.set(settings);
          untilOver(() => live.build(1_000_000));
          for (const address of isDown) {
            live.learn({ kind: 'SetHealth', cluster: 'c', address, healthy: false });
          }
        };
        configure(before!);
        const places = KEYS.map((key) => placeOf(live, key));
        const foretold = preview({
          ...optionsOf(before!, after!),
          known: (_, address) => ({
            healthy: !isDown.some((one) => one.a === address.a),
            state: 'active',
          }),
        });
        configure(after!);
        const moved = KEYS.flatMap((key, at) => (placeOf(live, key) === places[at] ? [] : [at]));
        expect(foretold.listeners[0]!.moved).toEqual(moved);
      }),
      { numRuns: 12 },
    );
  });
}

describe('a dry run', () => {
  test('of nothing new moves nothing, and of one backend out of four the quarter that is its own', () => {
    for (const loadBalancing of ['HRW', 'MAGLEV'] as const) {
      const four = clusterSettings({ loadBalancing, backends: backendsOf(1, 2, 3, 4) });
      const same = preview(optionsOf(four, { ...four }));
      expect(same).toMatchObject({ keys: 10_000, listeners: [{ moved: [] }] });
      const three = { ...four, backends: backendsOf(1, 2, 3) };
      const moved = preview(optionsOf(four, three)).listeners[0]!.moved!.length / KEYS.length;
      expect(moved).toBeGreaterThan(0.23);
      expect(moved).toBeLessThan(loadBalancing === 'HRW' ? 0.27 : 0.35);
    }
  });

  test('says nothing of keys where a policy places nobody by one', () => {
    const turns = clusterSettings();
    const keyed = clusterSettings({ loadBalancing: 'HRW' });
    expect(preview(optionsOf(turns, keyed)).listeners[0]!.moved).toBeUndefined();
    expect(preview(optionsOf(keyed, turns)).listeners[0]!.moved).toBeUndefined();
  });

  test('takes every key for another one where the port begins to count', () => {
    const without = clusterSettings({ loadBalancing: 'HRW' });
    const moved = preview(optionsOf(without, { ...without, affinityWithPort: true })).listeners[0]!;
    expect(moved.moved!.length / KEYS.length).toBeCloseTo(0.5, 1);
  });

  test('follows a listener that comes, goes or leads elsewhere', () => {
    const [c, d] = ['c', 'd'].map((cluster) => clusterSettings({ cluster, loadBalancing: 'HRW' }));
    const [stays, goes, comes] = [1, 2, 3].map((n) =>
      listenerConfig({ address: addressOf(`10.0.0.53:${n}`) }),
    );
    const { listeners } = preview({
      ...optionsOf(c!, c!),
      before: { clusters: [c!], listeners: [stays!, goes!] },
      after: { clusters: [c!, d!], listeners: [{ ...stays!, cluster: 'd' }, comes!] },
    });
    expect(listeners).toMatchObject([
      { listener: stays!.address, before: 'c', after: 'd', moved: [] },
      { listener: goes!.address, before: 'c', after: undefined },
      { listener: comes!.address, before: undefined, after: 'c' },
    ]);
    expect([listeners[1]!.moved!.length, listeners[2]!.moved!.length]).toEqual([10_000, 10_000]);
  });

  test('counts live flows by what would become of them', () => {
    const about = { listener: listenerConfig().address, cluster: 'c' };
    const counts = [1, 2, 3].map((n) => {
      return { ...about, backend: addressOf(`10.0.0.${n}:53`), flows: 10 ** n };
    });
    const flowsUnder = (onBackendRemoved: OnBackendLoss): unknown => {
      const before = clusterSettings({ backends: backendsOf(1, 2, 3) });
      const after = clusterSettings({ backends: backendsOf(2), onBackendRemoved });
      return preview({ ...optionsOf(before, after), counts }).listeners[0]!.flows;
    };
    expect(flowsUnder('pin')).toEqual({ keep: 1_110, rebind: 0, close: 0 });
    expect(flowsUnder('rebind')).toEqual({ keep: 100, rebind: 1_010, close: 0 });
    expect(flowsUnder('close')).toEqual({ keep: 100, rebind: 0, close: 1_010 });
    const cluster = clusterSettings({ onBackendRemoved: 'pin' });
    const gone = { ...optionsOf(cluster, cluster), counts, after: { listeners: [], clusters: [] } };
    expect(preview(gone).listeners[0]!.flows).toEqual({ keep: 0, rebind: 0, close: 1_110 });
  });

  test('in slices comes to the same, and no slice is long', () => {
    const [before, after] = [backendsOf(1, 2, 3), backendsOf(2, 3, 4)].map((backends) =>
      clusterSettings({ loadBalancing: 'MAGLEV', backends }),
    );
    const options = optionsOf(before!, after!);
    const job = new PreviewJob(options);
    const slices = untilOver(() => !job.advance(20_000));
    expect(job.result()).toEqual(preview(options));
    expect(slices).toBeGreaterThan(20);
  });

  test('builds the table of a cluster that goes, in slices too', () => {
    const cluster = clusterSettings({ loadBalancing: 'MAGLEV', backends: backendsOf(1, 2, 3) });
    const options = optionsOf(cluster, cluster);
    const job = new PreviewJob({ ...options, after: { listeners: [], clusters: [] } });
    // Beside 10,000 choices of 20 steps each, there is a table of 65,537 slots to fill.
    expect(untilOver(() => !job.advance(20_000))).toBeGreaterThan(12);
  });
});

function optionsOf(before: ClusterSettings, after: ClusterSettings): PreviewOptions {
  const listeners = [listenerConfig()];
  return {
    before: { listeners, clusters: [before] },
    after: { listeners, clusters: [after] },
    known: () => ({ healthy: true, state: 'active' }),
    counts: [],
    placementSeed: PLACEMENT_SEED,
    keys: KEYS,
  };
}

function placeOf(clusters: Clusters, key: Hash64): number | undefined {
  return clusters.backendsOf('c')!.select(key, instant(0))?.address.a;
}
