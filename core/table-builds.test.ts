/** What a change of a Maglev cluster does to the turns of a data plane, and to the clients that come meanwhile. */
import { describe, expect, test } from 'vitest';
import {
  addressOf,
  backendsOf,
  clusterSettings,
  configOf,
  PlaneBench,
} from '../test/plane-bench.ts';
import { untilOver } from '../test/until-over.ts';
import { present } from './assert.ts';
import type { Backend } from './contract.ts';
import { PLACEMENT_SEED, type Hash64 } from './hash.ts';
import { affinityKey } from './placement.ts';
import { instant } from './time.ts';

const three = backendsOf(1, 2, 3);
const clients = Array.from({ length: 200 }, (_, at) => `10.1.0.${at + 1}:1000`);

describe('a Maglev table', () => {
  test('is complete before the first listener opens', () => {
    const bench = maglevBench(three);
    expect(bench.plane.pollTimeout()).toBeUndefined();
    expect(bench.ports.wake).toBeUndefined();
    expect(placements(bench)).toEqual(placements(maglevBench(three)));
  });

  test('is built anew a slice a turn, each asking for the next at once', () => {
    const bench = maglevBench(three);
    bench.pass(1);
    change(bench, [...three, ...backendsOf(4)]);
    let turns = 0;
    for (; bench.plane.pollTimeout() !== undefined; turns += 1) {
      expect(bench.plane.pollTimeout()).toEqual({ at: instant(1_000_000), reason: 'maglev-build' });
      expect(bench.ports.wake).toBe(instant(1_000_000));
      bench.timer();
    }
    expect(turns).toBeGreaterThan(2);
    expect(turns).toBeLessThan(20);
    expect(placements(bench)).toEqual(placements(maglevBench([...three, ...backendsOf(4)])));
  });

  test('goes on serving until the new one is complete, without those that are gone', () => {
    const bench = maglevBench(three);
    const before = placements(bench);
    change(bench, backendsOf(2, 3, 4));
    const during = placements(bench);
    for (const [at, id] of before.entries()) {
      if (id === 'b1') expect(['b2', 'b3']).toContain(during[at]);
      else expect(during[at]).toBe(id);
    }
    buildAll(bench);
    expect(placements(bench)).toContain('b4');
  });

  test('stays through new settings that keep the list', () => {
    const bench = maglevBench(three);
    bench.turn(() => setCluster(bench, three, 3));
    expect(bench.plane.pollTimeout()).toBeUndefined();
    expect(placements(bench)).toEqual(placements(maglevBench(three)));
  });

  test('of a cluster that comes later serves while it fills', () => {
    const bench = maglevBench(backendsOf(1), 'other');
    change(bench, three);
    expect(bench.plane.pollTimeout()?.reason).toBe('maglev-build');
    expect(new Set(placements(bench))).toEqual(new Set(['b1', 'b2', 'b3']));
    buildAll(bench);
    expect(placements(bench)).toEqual(placements(maglevBench(three)));
  });

  test('is built for one cluster after the other, within one bound', () => {
    const names = ['c', 'd'];
    const turns = [1, 2].map((count) => {
      const bench = maglevBench(three);
      bench.turn(() => {
        for (const cluster of names.slice(0, count)) {
          setCluster(bench, backendsOf(7, 8, 9), 0, cluster);
        }
      });
      return buildAll(bench);
    });
    expect(turns[1]).toBeGreaterThan((turns[0] ?? 0) * 1.5);
  });

  test('is given up by a stop: nobody will be chosen, and nothing wakes any more', () => {
    const bench = maglevBench(three);
    change(bench, backendsOf(2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
    bench.timer();
    expect(bench.plane.pollTimeout()?.reason).toBe('maglev-build');
    bench.turn(() => bench.direct({ kind: 'Stop' }));
    expect(bench.plane.pollTimeout()).toBeUndefined();
  });
});

function maglevBench(backends: readonly Backend[], cluster = 'c'): PlaneBench {
  return new PlaneBench(
    configOf([clusterSettings({ loadBalancing: 'MAGLEV', backends, cluster })]),
  );
}

function change(bench: PlaneBench, backends: readonly Backend[]): void {
  bench.turn(() => setCluster(bench, backends));
}

function setCluster(
  bench: PlaneBench,
  backends: readonly Backend[],
  responses = 0,
  cluster = 'c',
): void {
  const settings = clusterSettings({ loadBalancing: 'MAGLEV', backends, responses, cluster });
  bench.direct({ kind: 'SetCluster', settings });
}

/** In how many slices. */
function buildAll(bench: PlaneBench): number {
  return untilOver(() => {
    const isBuilding = bench.plane.pollTimeout() !== undefined;
    if (isBuilding) bench.timer();
    return isBuilding;
  });
}

/** Where each client would go now; asked of the backends themselves, so that no turn passes. */
function placements(bench: PlaneBench): (string | undefined)[] {
  const backends = present(bench.plane.clusters.backendsOf('c'), 'the cluster is known');
  return clients.map((client) => backends.select(keyOf(client), instant(0))?.id);
}

function keyOf(client: string): Hash64 {
  return affinityKey(PLACEMENT_SEED, addressOf(client), false);
}
