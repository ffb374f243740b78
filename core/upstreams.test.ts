/** What opens and closes with the upstream socket of a flow, and what a flow leaves behind that is given a second one. */
import { describe, expect, test } from 'vitest';
import {
  backendsOf,
  clusterSettings,
  configOf,
  listenerConfig,
  PlaneBench,
} from '../test/plane-bench.ts';
import { present } from './assert.ts';
import { flowId, listenerId, socketId } from './brand.ts';
import { Clusters, type Cluster } from './clusters.ts';
import type { Backend } from './contract.ts';
import { Egress } from './egress.ts';
import { Evidence } from './evidence.ts';
import { PLACEMENT_SEED } from './hash.ts';
import { Losses } from './losses.ts';
import { OutputQueue } from './output-queue.ts';
import type { PlaneOutput } from './plane-contract.ts';
import { newListener, type Listener } from './plane-listener.ts';
import { createRandom } from './random.ts';
import { instant } from './time.ts';
import { UpstreamSources } from './upstream-sources.ts';
import { Upstreams } from './upstreams.ts';

const seeds = {
  placementSeed: PLACEMENT_SEED,
  tableSeed: { first: 1, second: 2 },
  randomSeed: { high: 3, low: 4 },
};
const flow = flowId(0);
const first = socketId(1, listenerId(0));
const second = socketId(2, listenerId(0));

describe('a flow that is given a second socket', () => {
  test('closes its first one, which the pump performs after the flush, and is found by the second', () => {
    const { upstreams, listener, cluster, two, outputs } = opened();
    upstreams.open(listener, flow, two, instant(0));
    expect(outputs.poll()).toEqual({ kind: 'CloseUpstream', socket: first });
    expect(outputs.poll()).toEqual({
      kind: 'OpenUpstream',
      socket: second,
      backend: two.address,
      source: undefined,
    });
    expect(upstreams.count).toBe(1);
    expect(upstreams.socketOf(listener, flow)).toBe(second);
    expect([upstreams.slotOf(first), upstreams.slotOf(second)]).toEqual([undefined, flow]);
    expect(upstreams.targetOf(second)).toMatchObject({ cluster, backend: two });
  });

  test('is a load on its new backend, and none on the old one', () => {
    const { upstreams, listener, cluster, one, two } = opened();
    expect(cluster.backends.select(PLACEMENT_SEED, instant(0))).toBe(two);
    upstreams.open(listener, flow, two, instant(0));
    expect(cluster.backends.select(PLACEMENT_SEED, instant(0))).toBe(one);
    upstreams.close(listener, flow);
    upstreams.open(listener, flow, one, instant(0));
    expect(cluster.backends.select(PLACEMENT_SEED, instant(0))).toBe(two);
  });

  test('leaves no doubt about a backend that has no flow any more', () => {
    const { upstreams, listener, two, evidence } = opened();
    evidence.refused(upstreams.targetOf(first), 1);
    upstreams.open(listener, flow, two, instant(0));
    expect(evidence.hasDoubts).toBe(false);
  });

  test('loses what waited for its first socket: counted as closed', () => {
    const { upstreams, listener, two, egress } = opened();
    egress.toBackend(listener, first, undefined, Uint8Array.of(1));
    const blocked = { direction: 'to-backend', cause: 'blocked', socket: first } as const;
    egress.failed(
      listener,
      { ...blocked, header: undefined, payload: Uint8Array.of(1) },
      true,
      instant(0),
    );
    expect(egress.waiting).toBe(1);
    upstreams.open(listener, flow, two, instant(0));
    expect(egress.waiting).toBe(0);
    expect(listener.counters.droppedClosed).toBe(1);
  });
});

test('a slot that is used again has no socket to close', () => {
  const { upstreams, listener, one, outputs } = opened();
  upstreams.close(listener, flow);
  expect(outputs.poll()).toEqual({ kind: 'CloseUpstream', socket: first });
  upstreams.open(listener, flow, one, instant(0));
  expect(outputs.poll()).toMatchObject({ kind: 'OpenUpstream', socket: second });
  expect(upstreams.count).toBe(1);
});

test('through the data plane: the new socket serves at once, the old one closes after the flush, what comes to it is lost', () => {
  const bench = new PlaneBench(
    configOf([clusterSettings({ backends: backendsOf(1), sendProxyProtocol: true })]),
  );
  bench.turn(() => bench.client('a'));
  const settings = clusterSettings({ backends: backendsOf(2), sendProxyProtocol: true });
  bench.turn(() => bench.direct({ kind: 'SetCluster', settings }));
  const calls = bench.turn(() => {
    bench.client('b');
    bench.backend('late', 1);
    bench.client('c');
    bench.backend('d', 2);
  });
  expect(calls).toEqual([
    'open u2 10.0.0.2:53',
    'send u2 [28]b',
    'send u2 c',
    'reply 0 10.1.0.1:1000 d',
    'flush',
    'close u1',
  ]);
  expect(bench.counters()).toMatchObject({
    flowsCreated: 1,
    flowsRebound: 1,
    flowsEvicted: 0,
    droppedUnknownFlow: 1,
  });
});

interface Bench {
  readonly upstreams: Upstreams;
  readonly listener: Listener;
  readonly cluster: Cluster;
  readonly one: Backend;
  readonly two: Backend;
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
  clusters.set(clusterSettings({ loadBalancing: 'LEAST_LOADED' }));
  const config = listenerConfig();
  const cluster = present(clusters.of(config), 'the cluster was set');
  const one = lightest(cluster);
  const about = { id: listenerId(0), config, generation: 1 };
  const listener = newListener(about, clusters.configFor(config), seeds);
  const losses = new Losses(() => undefined, undefined);
  const sources = new UpstreamSources(outputs);
  const upstreams = new Upstreams({ outputs, clusters, egress, evidence, losses, sources });
  upstreams.grow(4);
  upstreams.open(listener, flow, one, instant(0));
  expect(outputs.poll()).toMatchObject({ kind: 'OpenUpstream', socket: first });
  const two = lightest(cluster);
  return { upstreams, listener, cluster, one, two, outputs, egress, evidence };
}

function lightest({ backends }: Cluster): Backend {
  return present(backends.select(PLACEMENT_SEED, instant(0)), 'somebody can serve');
}
