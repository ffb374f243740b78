/** A bug in one listener's flow machine costs its flows, and nobody else's; one anywhere else, or again and again, ends all. */
import { describe, expect, test, vi } from 'vitest';
import {
  addressOf,
  clusterSettings,
  configOf,
  listenerConfig,
  PlaneBench,
} from '../test/plane-bench.ts';
import { planeOptions } from '../test/control-bench.ts';
import { AssertionError, present } from './assert.ts';
import { flowId, listenerId } from './brand.ts';
import { DataPlane } from './data-plane.ts';
import type { Deadlines } from './deadlines.ts';
import type { UdpManager } from './manager.ts';
import type { PlaneOutput } from './plane-contract.ts';
import { restoreSnapshot, takeSnapshot } from './snapshot.ts';

describe('an assertion of a flow machine that fails', () => {
  test('at a client datagram costs the flows of that listener, and nothing of another', () => {
    const bench = started();
    bench.turn(() => {
      bench.client('one', '10.1.0.1:1');
      bench.client('two', '10.1.0.1:2');
      bench.client('three', '10.1.0.1:3', 1);
    });
    plant(bench);
    expect(bench.turn(() => bench.client('four', '10.1.0.1:2'))).toEqual([
      'flush',
      'close u1',
      'close u2',
    ]);
    expect(bench.reports.at(-1)).toEqual({
      kind: 'ListenerRestarted',
      generation: 1,
      listener: 0,
      address: addressOf('10.0.0.53:53'),
      flowsClosed: 2,
      claim: 'planted',
    });
    expect(bench.counters()).toMatchObject({
      restarts: 1,
      clientReceived: 3,
      forwarded: 2,
      droppedClosed: 1,
      flowsCreated: 2,
      flowsEvicted: 2,
      closedAborted: 2,
    });
    expect(bench.counters(1)).toMatchObject({ restarts: 0, flowsEvicted: 0 });
    expect(bench.turn(() => bench.backend('late', 1))).toContain('flush');
    expect(bench.counters().droppedUnknownFlow).toBe(1);
    const calls = bench.turn(() => {
      bench.client('again', '10.1.0.1:2');
      bench.backend('answer', 3);
    });
    expect(calls).toContain('send u4 again');
    expect(calls).toContain('reply 1 10.1.0.1:3 answer');
  });

  test('in the middle of an admission leaves no trace of that flow, and its number is not given again', () => {
    const bench = started();
    bench.turn(() => bench.client('one', '10.1.0.1:1'));
    plant(bench);
    bench.turn(() => bench.client('two', '10.1.0.1:2'));
    expect(bench.plane.flowCount).toBe(0);
    expect(bench.counters()).toMatchObject({ flowsCreated: 1, flowsEvicted: 1, droppedClosed: 1 });
    bench.turn(() => bench.client('three', '10.1.0.1:3'));
    expect(managerOf(bench).flow(flowId(0))?.serial).toBe(3);
  });

  test('at a backend datagram, or at the timer, is the same', () => {
    const bench = started();
    bench.turn(() => bench.client('one'));
    plant(bench);
    bench.turn(() => bench.backend('answer'));
    expect(bench.counters()).toMatchObject({ restarts: 1, closedAborted: 1, droppedClosed: 1 });
    bench.turn(() => bench.client('two'));
    plant(bench, 'remove');
    expect(bench.timer(31)).toContain('close u2');
    expect(bench.counters()).toMatchObject({ restarts: 2, closedAborted: 2, droppedClosed: 1 });
    expect(bench.reports.map(({ kind }) => kind).slice(-2)).toEqual([
      'ListenerRestarted',
      'ListenerRestarted',
    ]);
  });

  test('leaves the listener under its configuration, as it was told', () => {
    const bench = started();
    const config = listenerConfig({ maxFlows: 1 });
    bench.turn(() => {
      bench.direct({ kind: 'UpdateListener', listener: listenerId(0), config });
      bench.direct({ kind: 'SetAccessLog', settings: { oneIn: 1, linesPerSecond: 10 } });
      bench.client('one', '10.1.0.1:1');
    });
    plant(bench);
    bench.turn(() => bench.client('two', '10.1.0.1:1'));
    bench.turn(() => {
      bench.client('three', '10.1.0.1:3');
      bench.client('four', '10.1.0.1:4');
    });
    expect(bench.counters()).toMatchObject({ flowsCreated: 2, droppedShed: 1 });
    bench.timer(31);
    const [ended, ...more] = bench.reports.filter(({ kind }) => kind === 'FlowEnded');
    expect(more).toEqual([]);
    expect(ended).toMatchObject({ flow: '0.3', requests: 1, requestBytes: 5, reason: 'Idle' });
  });

  test('during a drain admits nothing afterwards', () => {
    const bench = started();
    bench.turn(() => {
      bench.client('one', '10.1.0.1:1');
      bench.client('three', '10.1.0.1:3', 1);
    });
    const deadline = bench.plane.pollTimeout()?.at;
    bench.turn(() => bench.direct({ kind: 'Drain', deadline: present(deadline, 'flows are due') }));
    plant(bench);
    bench.turn(() => bench.client('two', '10.1.0.1:1'));
    bench.turn(() => bench.client('four', '10.1.0.1:1'));
    expect(bench.plane.flowCount).toBe(1);
    expect(bench.counters()).toMatchObject({ restarts: 1, droppedShed: 1 });
  });

  test('lets what was sent in the same turn go, and drops what waits for a closed socket', () => {
    const bench = started();
    bench.turn(() => bench.client('one'));
    bench.ports.fate = () => 'blocked';
    bench.turn(() => bench.client('two'));
    expect(bench.plane.waiting).toBe(1);
    bench.ports.fate = () => undefined;
    bench.turn(() => {
      bench.client('three', '10.1.0.1:3');
      plant(bench);
      bench.client('four', '10.1.0.1:3');
    });
    expect(bench.ports.delivered).toContain('u2 three');
    expect(bench.counters()).toMatchObject({ forwarded: 2, droppedClosed: 2 });
  });

  test('is part of a snapshot', () => {
    const bench = started();
    bench.turn(() => bench.client('one'));
    plant(bench);
    bench.turn(() => bench.client('two'));
    bench.turn(() => bench.client('three'));
    const restored = new DataPlane({ ...planeOptions(), restartsPerMinute: 3 });
    restoreSnapshot(restored, takeSnapshot(bench.plane));
    const input = {
      kind: 'ClientArrived',
      listener: listenerId(0),
      src: addressOf('10.1.0.1:1000'),
      local: undefined,
      payload: Uint8Array.of(1),
    } as const;
    for (const plane of [bench.plane, restored]) plane.handleInput(input, bench.ports.clock);
    expect(outputsOf(restored)).toEqual(outputsOf(bench.plane));
  });
});

describe('whoever drives the machine hears of an assertion', () => {
  test('that fails the fourth time in a minute, over all listeners', () => {
    const bench = started();
    const failAt = (listener: number): void => {
      plant(bench, 'touch', listener);
      bench.turn(() => bench.client('x', '10.1.0.1:1', listener));
    };
    [0, 1, 0].forEach(failAt);
    bench.pass(59);
    expect(() => failAt(1)).toThrow('planted');
  });

  test('not when a minute went by', () => {
    const bench = started();
    for (let n = 0; n < 9; n += 1) {
      plant(bench);
      bench.turn(() => bench.client('x'));
      bench.pass(20);
    }
    expect(bench.counters().restarts).toBe(9);
  });

  test('at once where no restarts are allowed', () => {
    const bench = started({ restartsPerMinute: undefined });
    plant(bench);
    expect(() => bench.turn(() => bench.client('x'))).toThrow('planted');
  });

  test('of what listeners share: the backends of a cluster', () => {
    const bench = started();
    const backends = present(bench.plane.clusters.backendsOf('c'), 'there is such a cluster');
    vi.spyOn(backends, 'select').mockImplementationOnce(fail);
    expect(() => bench.turn(() => bench.client('x'))).toThrow('planted');
  });

  test('and of any other error', () => {
    const bench = started();
    plant(bench, 'touch', 0, new TypeError('of the language'));
    expect(() => bench.turn(() => bench.client('x'))).toThrow('of the language');
  });
});

/** Two listeners that lead to one cluster. */
function started(more: { restartsPerMinute?: number | undefined } = {}): PlaneBench {
  const listeners = [listenerConfig(), listenerConfig({ address: addressOf('10.0.0.54:53') })];
  return new PlaneBench(configOf([clusterSettings()], listeners), undefined, {
    restartsPerMinute: 3,
    ...more,
  });
}

/** The next time that this listener's flow machine does this to a deadline, it fails. */
function plant(
  bench: PlaneBench,
  method: keyof Pick<Deadlines, 'touch' | 'remove'> = 'touch',
  listener = 0,
  error: Error = new AssertionError('planted'),
): void {
  vi.spyOn(managerOf(bench, listener).deadlines, method).mockImplementationOnce(() => {
    throw error;
  });
}

function fail(): never {
  throw new AssertionError('planted');
}

function managerOf(bench: PlaneBench, listener = 0): UdpManager {
  return present(bench.plane.managerOf(listenerId(listener)), 'the listener is there');
}

function outputsOf(plane: DataPlane): PlaneOutput[] {
  const outputs: PlaneOutput[] = [];
  for (let one = plane.pollOutput(); one !== undefined; one = plane.pollOutput()) outputs.push(one);
  return outputs;
}
