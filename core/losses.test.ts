/** Lost backends in a data plane: flows that must go are closed in slices, and of a drain it is told how many are left. */
import { describe, expect, test } from 'vitest';
import {
  addressOf,
  backendsOf,
  clusterSettings,
  configOf,
  listenerConfig,
  PlaneBench,
} from '../test/plane-bench.ts';
import { untilOver } from '../test/until-over.ts';
import type { OperatorState } from './balancing/candidates.ts';
import type { ClusterSettings } from './config.ts';
import { seconds } from './time.ts';

const CLOSING = { onBackendDown: 'close', onBackendRemoved: 'close' } as const;

describe('the sweep', () => {
  test('closes the flows of a lost backend in slices, wakes at once while some are left, and then sleeps', () => {
    const bench = started(CLOSING, 3);
    fill(bench, 14);
    setHealth(bench, 1, false);
    expect(bench.plane.pollTimeout()).toEqual({ at: bench.ports.clock, reason: 'sweep' });
    const left: number[] = [];
    untilOver(() => {
      if (bench.plane.pollTimeout()?.reason !== 'sweep') return false;
      expect(bench.timer().filter((call) => call.startsWith('close')).length).toBeLessThan(4);
      return left.push(bench.plane.flowCount) > 0;
    });
    expect(left).toEqual([11, 8, 7]);
    expect(bench.plane.pollTimeout()).toEqual({ at: seconds(30), reason: 'flow-idle' });
    expect(bench.counters().flowsEvicted).toBe(7);
  });

  test('spares the flows of all other backends, and those that the cluster pins or rebinds', () => {
    for (const policy of ['pin', 'rebind'] as const) {
      const bench = started({ onBackendDown: policy, onBackendRemoved: policy });
      fill(bench, 14);
      setHealth(bench, 1, false);
      bench.turn(() =>
        bench.direct({
          kind: 'SetCluster',
          settings: clusterSettings({ onBackendRemoved: policy, backends: backendsOf(1) }),
        }),
      );
      expect(bench.plane.pollTimeout()?.reason).toBe('flow-idle');
      expect(bench.plane.flowCount).toBe(14);
    }
    const bench = started(CLOSING);
    fill(bench, 14);
    setHealth(bench, 1, false);
    bench.timer();
    expect(bench.plane.flowCount).toBe(7);
    bench.turn(() => bench.backend('still', 2));
    expect(bench.counters().returned).toBe(1);
  });

  test('closes the flows of a backend that left the configuration, on every listener of the cluster', () => {
    const second = listenerConfig({ address: addressOf('10.0.0.54:53') });
    const bench = new PlaneBench(configOf([clusterSettings(CLOSING)], [listenerConfig(), second]));
    fill(bench, 6, 0);
    fill(bench, 6, 1);
    bench.turn(() =>
      bench.direct({
        kind: 'SetCluster',
        settings: clusterSettings({ ...CLOSING, backends: backendsOf(2) }),
      }),
    );
    bench.timer();
    expect(bench.counters(0).flowsEvicted + bench.counters(1).flowsEvicted).toBe(6);
    expect(bench.plane.flowCount).toBe(6);
  });

  test('stops short when the backend is up again, and finds what is lost behind it while it is under way', () => {
    const bench = started(CLOSING, 1);
    fill(bench, 14);
    setHealth(bench, 2, false);
    bench.timer();
    setHealth(bench, 2, true);
    sweepAll(bench);
    expect(bench.plane.flowCount).toBe(13);
    setHealth(bench, 2, false);
    for (let n = 0; n < 4; n += 1) bench.timer();
    setHealth(bench, 2, true);
    setHealth(bench, 1, false);
    sweepAll(bench);
    expect(bench.plane.flowCount).toBe(2);
  });

  test('leaves nothing to wake for when the plane stops', () => {
    const bench = started(CLOSING, 1);
    fill(bench, 14);
    setHealth(bench, 1, false);
    bench.turn(() => bench.direct({ kind: 'Stop' }));
    sweepAll(bench);
    expect(bench.plane.pollTimeout()).toBeUndefined();
  });
});

describe('a draining backend', () => {
  test('gets nothing new, keeps its flows, and is told of at first, now and then, and at the end', () => {
    const bench = started({ responses: 1 });
    fill(bench, 6);
    setState(bench, 'draining', 4);
    expect(flowsTold(bench)).toEqual([3]);
    fill(bench, 4, 0, 2);
    expect(flowsTold(bench)).toEqual([3]);
    expect(bench.plane.clusters.backendsOf('c')!.flowsAt(addressOf('10.0.0.1:53'))).toBe(3);
    for (const [nth, told] of [
      [1, [3]],
      [3, [3]],
      [5, [3, 0]],
    ] as const) {
      close(bench, nth);
      expect(flowsTold(bench), 'at once only when none is left').toEqual(told);
    }
    expect(bench.reports.at(-1)).toMatchObject({ kind: 'BackendFlows', cluster: 'c', change: 4 });
  });

  test('is told of every 100 ms when flows have closed, and not when nothing changed', () => {
    const bench = started({ responses: 1 });
    fill(bench, 6);
    setState(bench, 'draining');
    bench.pass(0.1);
    bench.turn();
    expect(flowsTold(bench)).toEqual([3]);
    close(bench, 1);
    expect(flowsTold(bench)).toEqual([3, 2]);
    bench.pass(0.05);
    close(bench, 3);
    expect(flowsTold(bench)).toEqual([3, 2]);
    bench.pass(0.05);
    bench.turn();
    expect(flowsTold(bench)).toEqual([3, 2, 1]);
    bench.pass(1);
    close(bench, 2);
    expect(flowsTold(bench), 'a flow of the other backend says nothing').toEqual([3, 2, 1]);
  });

  test('of which nothing changes is not told of again when a configuration repeats it', () => {
    const bench = started({ responses: 1 });
    fill(bench, 6);
    setState(bench, 'draining', 4);
    setState(bench, 'draining', 4);
    expect(flowsTold(bench)).toEqual([3]);
    setState(bench, 'draining', 5);
    expect(flowsTold(bench)).toEqual([3, 3]);
  });

  test('that the configuration drops, or an operator takes back, is told of no more', () => {
    const bench = started({ responses: 1 });
    fill(bench, 6);
    setState(bench, 'draining');
    setState(bench, 'active');
    bench.pass(1);
    close(bench, 1);
    setState(bench, 'draining', 2);
    const without = clusterSettings({ backends: backendsOf(2), onBackendRemoved: 'pin' });
    bench.turn(() => bench.direct({ kind: 'SetCluster', settings: without }));
    bench.pass(1);
    close(bench, 3);
    expect(flowsTold(bench)).toEqual([3, 2]);
  });
});

function started(more: Partial<ClusterSettings>, closesPerTurn?: number): PlaneBench {
  return new PlaneBench(configOf([clusterSettings(more)]), undefined, { closesPerTurn });
}

/** So many flows, on both backends in turn. */
function fill(bench: PlaneBench, flows: number, listener = 0, subnet = 1): void {
  bench.turn(() => {
    for (let n = 1; n <= flows; n += 1)
      bench.client('x', `10.${subnet}.0.1:${1_000 + n}`, listener);
  });
}

function setHealth(bench: PlaneBench, n: number, healthy: boolean): void {
  const address = addressOf(`10.0.0.${n}:53`);
  bench.turn(() => bench.direct({ kind: 'SetHealth', cluster: 'c', address, healthy }));
}

/** Of `10.0.0.1:53`. */
function setState(bench: PlaneBench, state: OperatorState, change = 1): void {
  const address = addressOf('10.0.0.1:53');
  bench.turn(() => bench.direct({ kind: 'SetBackendState', cluster: 'c', address, state, change }));
}

/** The flow whose socket was opened as the `nth` ends, for it has its one reply. */
function close(bench: PlaneBench, nth: number): void {
  bench.turn(() => bench.backend('bye', nth));
}

function sweepAll(bench: PlaneBench): void {
  untilOver(() => {
    const isUnderWay = bench.plane.pollTimeout()?.reason === 'sweep';
    if (isUnderWay) bench.timer();
    return isUnderWay;
  });
}

function flowsTold(bench: PlaneBench): number[] {
  return bench.reports.flatMap((report) => (report.kind === 'BackendFlows' ? [report.flows] : []));
}
