/** Limits per source that appear while a machine runs: they find the counts that they would have found from the start. */
import { isDeepStrictEqual } from 'node:util';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { machines, openClusters, steps, type Step } from '../test/flow-arbitraries.ts';
import { A, address, B, bytes, cluster, dropped, FlowRig, SHED_SOURCE } from '../test/flow-rig.ts';
import { planeOptions } from '../test/control-bench.ts';
import { expectSame } from '../test/mirror.ts';
import { clusterSettings, configOf, PlaneBench } from '../test/plane-bench.ts';
import { flowId } from './brand.ts';
import { CountingTable } from './counting-table.ts';
import { DataPlane } from './data-plane.ts';
import type { UdpManager } from './manager.ts';
import { isObject } from './snapshot-objects.ts';
import { restoreSnapshot, takeSnapshot } from './snapshot.ts';
import { checkInvariants } from './verify.ts';

/** Begins to count, and refuses nobody. */
const GENEROUS = 1_000_000;

test('limits that appear at any moment find the counts, and decide, as in a machine that counted from the start', () => {
  const walk = fc.array(steps, { maxLength: 50, size: 'max' });
  const cap = fc.nat(3);
  let found = 0;
  let refused = 0;
  fc.assert(
    fc.property(
      machines,
      openClusters,
      walk,
      walk,
      cap,
      cap,
      (machine, open, early, late, ...caps) => {
        const start = new FlowRig({ ...machine, config: { ...open, maxFlowsPerIp: GENEROUS } });
        const lazy = new FlowRig({ ...machine, config: open });
        const [maxFlowsPerIp, maxFlowsPerSubnet] = caps;
        const config = { ...open, maxFlowsPerIp, maxFlowsPerSubnet };
        const limit: Step = {
          wait: 0,
          action: { kind: 'config', event: { kind: 'SetCluster', config } },
        };
        let now = 0;
        for (const { wait, action } of [...early.map(withoutLimits), limit, ...late]) {
          now += wait;
          const outputs = lazy.perform(action, now / 1_000_000);
          expect(outputs).toEqual(start.perform(action, now / 1_000_000));
          if (lazy.manager.sources.sizes === undefined) continue;
          refused += outputs.filter((output) => isDeepStrictEqual(output, SHED_SOURCE)).length;
          const counts = countsOf(lazy.manager);
          expect(counts).toEqual(countsOf(start.manager));
          if (action === limit.action) found += counts.length - 1;
        }
      },
    ),
    { numRuns: 300 },
  );
  expect(found).toBeGreaterThan(50);
  expect(refused).toBeGreaterThan(50);
});

test('flows that were there count under the cluster and the prefix that they were admitted under', () => {
  const rig = new FlowRig();
  const neighbour = address('192.0.2.9:1');
  rig.client(A, bytes('q'), 0);
  rig.config({ kind: 'SetCluster', config: cluster({ cluster: 'ntp' }) });
  rig.client(neighbour, bytes('q'), 0);
  rig.config({ kind: 'SetCluster', config: cluster({ maxFlowsPerSubnet: 2 }) });
  const { sources } = rig.manager;
  expect(sources.sizes).toEqual({ addresses: 2, subnets: 2 });
  expect(sources.flowsOfSubnet(cluster(), A)).toBe(1);
  expect(sources.flowsOfSubnet(cluster({ cluster: 'ntp' }), A)).toBe(1);
  rig.client({ ...A, port: 2 }, bytes('q'), 0);
  expect(rig.client({ ...A, port: 3 }, bytes('q'), 0)).toEqual([SHED_SOURCE, dropped('Shed')]);
});

test('without a limit no table is there, whatever comes and goes', () => {
  const rig = new FlowRig();
  rig.client(A, bytes('q'), 0);
  rig.config({ kind: 'SetCluster', config: cluster({ requests: 3 }) });
  rig.config({ kind: 'SetMaxFlows', count: 100 });
  rig.client(B, bytes('q'), 0);
  rig.closeAll(1);
  expect(rig.manager.sources.sizes).toBeUndefined();
  expect(tablesIn(rig.manager.sources)).toBe(0);
  rig.config({ kind: 'SetCluster', config: cluster({ maxFlowsPerIp: 1 }) }, 1);
  expect(tablesIn(rig.manager.sources)).toBe(2);
  expect(tablesIn(new FlowRig({ config: cluster({ maxFlowsPerSubnet: 1 }) }).manager.sources)).toBe(
    2,
  );
});

test.each([
  ['before it counts', 0, undefined],
  ['once it counts', 2, { addresses: 2, subnets: 2 }],
])(
  'a machine comes back from a snapshot %s, and counts on as the other does',
  (_, limit, sizes) => {
    const bench = new PlaneBench(configOf([clusterSettings({ maxFlowsPerIp: limit })]));
    bench.turn(() => bench.client('a', '192.0.2.1:1'));
    bench.turn(() => bench.client('b', '198.51.100.2:1'));
    const restored = new DataPlane(planeOptions());
    const snapshot = takeSnapshot(bench.plane);
    restoreSnapshot(restored, snapshot);
    expectSame(takeSnapshot(restored), snapshot);
    const managers = [bench.plane, restored].map(({ listeners }) => listeners.all[0]!.manager);
    for (const { sources } of managers) expect(sources.sizes).toEqual(sizes);
    const config = cluster({
      cluster: managers[0]!.flow(flowId(0))!.config.cluster,
      maxFlowsPerIp: 1,
    });
    for (const manager of managers) {
      const event = { kind: 'SetCluster', config } as const;
      manager.handleInput({ kind: 'Config', event }, bench.ports.clock);
      expect(manager.sources.sizes).toEqual({ addresses: 2, subnets: 2 });
      expect(manager.sources.reached(config, A)).toBe(true);
      checkInvariants(manager);
    }
    expectSame(takeSnapshot(restored), takeSnapshot(bench.plane));
  },
);

function withoutLimits(step: Step): Step {
  const { wait, action } = step;
  if (action.kind !== 'config' || action.event.kind !== 'SetCluster') return step;
  const config = { ...action.event.config, maxFlowsPerIp: 0, maxFlowsPerSubnet: 0 };
  return { wait, action: { kind: 'config', event: { kind: 'SetCluster', config } } };
}

/** How many different sources there are, then what each live flow finds under its own configuration. */
function countsOf({ table, configs, sources }: UdpManager): unknown[] {
  const counts: unknown[] = [sources.sizes];
  for (let slot = 0; slot < table.highWater; slot += 1) {
    if (!table.isLive(slot)) continue;
    const [config, client] = [configs.get(table.configOf(slot)), table.clientOf(slot)];
    counts.push([sources.flowsOfAddress(config, client), sources.flowsOfSubnet(config, client)]);
  }
  return counts;
}

function tablesIn(value: unknown): number {
  if (value instanceof CountingTable) return 1;
  if (!isObject(value)) return 0;
  return Object.values(value).reduce((sum: number, field: unknown) => sum + tablesIn(field), 0);
}
