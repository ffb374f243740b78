import { expect, test } from 'vitest';
import { backendsOf, clusterSettings, listenerConfig } from '../test/plane-bench.ts';
import { parseAddress } from './address.ts';
import { Clusters } from './clusters.ts';
import { NO_SOURCE_RATES } from './config.ts';
import { NO_CLUSTER } from './contract.ts';
import { PLACEMENT_SEED } from './hash.ts';
import { createRandom } from './random.ts';
import { instant, seconds } from './time.ts';

const now = instant(0);

test('a listener without a cluster, or with one that is not there yet, is served by nobody', () => {
  const clusters = newClusters();
  const listeners = [listenerConfig({ cluster: undefined }), listenerConfig({ cluster: 'later' })];
  for (const listener of listeners) {
    expect(clusters.of(listener)).toBeUndefined();
    expect(clusters.configFor(listener)).toEqual({
      ...NO_CLUSTER,
      frontTimeout: seconds(30),
      backTimeout: seconds(30),
    });
  }
  clusters.set(clusterSettings({ cluster: 'later', backends: backendsOf(7) }));
  const [nowhere, later] = listeners.map((listener) =>
    clusters.of(listener)?.backends.select({ high: 1, low: 2 }, now),
  );
  expect(nowhere).toBeUndefined();
  expect(later).toEqual(backendsOf(7)[0]);
});

test('a cluster keeps its number when its settings change', () => {
  const clusters = newClusters();
  for (const cluster of ['one', 'two']) clusters.set(clusterSettings({ cluster }));
  clusters.set(clusterSettings({ cluster: 'one', requests: 3 }));
  expect([0, 1].map((number) => clusters.at(number).settings)).toMatchObject([
    { cluster: 'one', requests: 3 },
    { cluster: 'two', requests: 0 },
  ]);
  expect(clusters.of(listenerConfig({ cluster: 'one' }))).toBe(clusters.at(0));
});

test('what a source has spent survives new settings with the same rates, and no cluster spends for another', () => {
  const clusters = newClusters();
  const rates = { ...NO_SOURCE_RATES, newFlowsPerSecond: 1, newFlowsBurst: 1 };
  const source = parseAddress('192.0.2.1:1')!;
  for (const cluster of ['one', 'two']) clusters.set(clusterSettings({ cluster, rates }));
  const refuses = (number: number): unknown => clusters.at(number).policer.refuses(source, now);
  expect([refuses(0), refuses(1)]).toEqual([undefined, undefined]);
  clusters.set(clusterSettings({ cluster: 'one', rates: { ...rates }, backends: backendsOf(7) }));
  clusters.set(clusterSettings({ cluster: 'two', rates: { ...rates, newFlowsBurst: 2 } }));
  expect([refuses(0), refuses(1)]).toEqual(['NewFlowRate', undefined]);
});

test('datagrams are counted for as long as one cluster compares backends by them', () => {
  const clusters = newClusters();
  clusters.set(clusterSettings({ cluster: 'one', loadMetric: 'REQUESTS' }));
  clusters.set(clusterSettings({ cluster: 'two' }));
  expect(clusters.countRequests).toBe(true);
  clusters.set(clusterSettings({ cluster: 'one' }));
  expect(clusters.countRequests).toBe(false);
});

function newClusters(): Clusters {
  return new Clusters(PLACEMENT_SEED, createRandom({ high: 3, low: 4 }), { first: 1, second: 2 });
}
