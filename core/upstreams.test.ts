/** What opens and closes with the upstream socket of a flow, and what a flow leaves behind that is given a second one. */
import { describe, expect, test } from 'vitest';
import { backendsOf, clusterSettings, listenerConfig } from '../test/plane-bench.ts';
import { assert, present } from './assert.ts';
import { flowId, listenerId, socketId } from './brand.ts';
import { Clusters, type Cluster } from './clusters.ts';
import type { Backend } from './contract.ts';
import { Egress } from './egress.ts';
import { Evidence } from './evidence.ts';
import { PLACEMENT_SEED } from './hash.ts';
import { OutputQueue } from './output-queue.ts';
import type { PlaneOutput } from './plane-contract.ts';
import { newListener, type Listener } from './plane-listener.ts';
import { createRandom } from './random.ts';
import { instant } from './time.ts';
import { Upstreams } from './upstreams.ts';

const seeds = {
  placementSeed: PLACEMENT_SEED,
  tableSeed: { first: 1, second: 2 },
  randomSeed: { high: 3, low: 4 },
};
const [one, two] = twoBackends();
const flow = flowId(0);
const first = socketId(1, listenerId(0));
const second = socketId(2, listenerId(0));

describe('a flow that is given a second socket', () => {
  test('closes its first one, which the pump performs after the flush, and is found by the second', () => {
    const { upstreams, listener, cluster, outputs } = opened();
    upstreams.open(listener, cluster, flow, two);
    expect(outputs.poll()).toEqual({ kind: 'CloseUpstream', socket: first });
    expect(outputs.poll()).toEqual({
      kind: 'OpenUpstream',
      socket: second,
      backend: two.address,
    });
    expect(upstreams.count).toBe(1);
    expect(upstreams.socketOf(listener, flow)).toBe(second);
    expect([upstreams.slotOf(first), upstreams.slotOf(second)]).toEqual([undefined, flow]);
    expect(upstreams.targetOf(second)).toMatchObject({ cluster, backend: two });
  });

  test('is a load on its new backend, and none on the old one', () => {
    const { upstreams, listener, cluster } = opened();
    expect(cluster.backends.select(PLACEMENT_SEED, instant(0))).toBe(two);
    upstreams.open(listener, cluster, flow, two);
    expect(cluster.backends.select(PLACEMENT_SEED, instant(0))).toBe(one);
    upstreams.close(listener, flow);
    upstreams.open(listener, cluster, flow, one);
    expect(cluster.backends.select(PLACEMENT_SEED, instant(0))).toBe(two);
  });

  test('leaves no doubt about a backend that has no flow any more', () => {
    const { upstreams, listener, cluster, evidence } = opened();
    evidence.refused(upstreams.targetOf(first), 1);
    upstreams.open(listener, cluster, flow, two);
    expect(evidence.hasDoubts).toBe(false);
  });

  test('loses what waited for its first socket: counted as closed', () => {
    const { upstreams, listener, cluster, egress } = opened();
    egress.toBackend(listener, first, undefined, Uint8Array.of(1));
    const blocked = { direction: 'to-backend', cause: 'blocked', socket: first } as const;
    egress.failed(listener, { ...blocked, header: undefined, payload: Uint8Array.of(1) }, true);
    expect(egress.waiting).toBe(1);
    upstreams.open(listener, cluster, flow, two);
    expect(egress.waiting).toBe(0);
    expect(listener.counters.droppedClosed).toBe(1);
  });
});

test('a slot that is used again has no socket to close', () => {
  const { upstreams, listener, cluster, outputs } = opened();
  upstreams.close(listener, flow);
  expect(outputs.poll()).toEqual({ kind: 'CloseUpstream', socket: first });
  upstreams.open(listener, cluster, flow, one);
  expect(outputs.poll()).toMatchObject({ kind: 'OpenUpstream', socket: second });
  expect(upstreams.count).toBe(1);
});

interface Bench {
  readonly upstreams: Upstreams;
  readonly listener: Listener;
  readonly cluster: Cluster;
  readonly outputs: OutputQueue<PlaneOutput>;
  readonly egress: Egress;
  readonly evidence: Evidence;
}

/** A flow in slot 0 whose socket leads to `one`; the output that says so has been taken. */
function opened(): Bench {
  const outputs = new OutputQueue<PlaneOutput>();
  const egress = new Egress(outputs);
  const evidence = new Evidence((report) => outputs.push({ kind: 'Report', report }));
  const clusters = new Clusters(PLACEMENT_SEED, createRandom(seeds.randomSeed), seeds.tableSeed);
  clusters.set(clusterSettings({ loadBalancing: 'LEAST_LOADED', backends: [one, two] }));
  const config = listenerConfig();
  const cluster = present(clusters.of(config), 'the cluster was set');
  const about = { id: listenerId(0), config, generation: 1 };
  const listener = newListener(about, clusters.configFor(config), seeds);
  const upstreams = new Upstreams({ outputs, clusters, egress, evidence });
  upstreams.grow(4);
  upstreams.open(listener, cluster, flow, one);
  expect(outputs.poll()).toMatchObject({ kind: 'OpenUpstream', socket: first });
  return { upstreams, listener, cluster, outputs, egress, evidence };
}

function twoBackends(): [Backend, Backend] {
  const [left, right] = backendsOf(1, 2);
  assert(left !== undefined && right !== undefined, 'there are two');
  return [left, right];
}
