/** Whatever goes on in a proxy, one that was restored from a snapshot goes on as the other does, to the byte. */
import { expect, test } from 'vitest';
import { BusyProxy } from '../test/busy-proxy.ts';
import type { ControlBench } from '../test/control-bench.ts';
import { MirrorBench } from '../test/mirror.ts';
import type { FlowTable } from './flow-table.ts';
import { createRandom } from './random.ts';

test('a proxy that is exchanged at 200 random steps for its snapshot does what the straight run does', () => {
  const met = new Set<string>();
  let exchanges = 0;
  let compared = 0;
  for (let seed = 0; exchanges < 200; seed += 1) {
    const mirror = new MirrorBench();
    const proxy = new BusyProxy(mirror.bench, seed);
    const random = createRandom({ high: seed, low: 2 });
    for (let step = 0; step < 200; step += 1) {
      proxy.step();
      if (random.below(10) > 0) continue;
      for (const state of statesOf(mirror.bench)) met.add(state);
      mirror.exchange(random.below(2) === 0 ? 'each' : 'together');
      exchanges += 1;
    }
    compared += mirror.compared;
  }
  expect(compared).toBeGreaterThan(10_000);
  expect([...met].sort()).toEqual([
    'a drain of a backend',
    'a drain of the proxy',
    'a dry run',
    'a listener that does not open',
    'a table half built',
    'backends down',
    'datagrams that wait',
    'ejected backends',
    'flows',
    'lingering flows',
    'probes in flight',
  ]);
});

/** What is under way at present that a snapshot could lose. */
function statesOf(bench: ControlBench): string[] {
  const { plane, control } = bench;
  const { stopping, clusters } = bench.status();
  const backends = clusters.flatMap((cluster) => cluster.backends);
  const managers = plane.listeners.all.map(({ manager }) => manager);
  const states = {
    flows: plane.flowCount > 0,
    'lingering flows': managers.some(({ table }) => lingers(table)),
    'datagrams that wait': plane.waiting > 0,
    'probes in flight': control.probesInFlight > 0,
    'backends down': backends.some(({ health }) => health === 'down'),
    'ejected backends': backends.some(({ ejected }) => ejected),
    'a drain of a backend': backends.some(({ state }) => state === 'draining'),
    'a drain of the proxy': stopping,
    'a dry run': control.pollTimeout()?.reason === 'preview',
    'a table half built': plane.pollTimeout()?.reason === 'maglev-build',
    'a listener that does not open': managers.length > 0 && retries(bench),
  };
  return Object.entries(states).flatMap(([name, isThere]) => (isThere ? [name] : []));
}

function lingers(table: FlowTable): boolean {
  for (let slot = 0; slot < table.highWater; slot += 1) {
    if (table.isLive(slot) && table.isLingering(slot)) return true;
  }
  return false;
}

function retries({ plane }: ControlBench): boolean {
  return plane.listeners.all.some(({ binding }) => binding.retryAt !== undefined);
}
