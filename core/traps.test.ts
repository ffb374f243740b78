/**
 * Traps of the reference (spec §15.2) that a UDP balancer falls into easily, one test each; doc/TRAPS.md lists all of them, and
 * names the tests of those that stand elsewhere.
 */
import { expect, test, vi } from 'vitest';
import {
  addressOf,
  backendsOf,
  clusterSettings,
  configOf,
  listenerConfig,
  PlaneBench,
} from '../test/plane-bench.ts';
import { present } from './assert.ts';
import { listenerId } from './brand.ts';
import { droppedDatagrams } from './metrics.ts';

test('B1: a drop counts once, under its reason and in the sum', () => {
  const bench = new PlaneBench(configOf([clusterSettings({ backends: [] })]));
  bench.turn(() => bench.client('q'));
  expect(bench.counters()).toMatchObject({ clientReceived: 1, droppedNoBackend: 1 });
  expect(droppedDatagrams(bench.counters())).toBe(1);
});

test('B2: a wake-up that comes early and finds nothing due is asked for again', () => {
  const bench = new PlaneBench(configOf());
  bench.turn(() => bench.client('q'));
  expect(bench.timer(29.9)).toEqual(['flush', 'wake 30']);
  expect(bench.timer(0.1)).toContain('close u1');
});

test('B7: live flows keep their way back when the affinity of their cluster changes', () => {
  const bench = new PlaneBench(configOf([clusterSettings({ affinityWithPort: false })]));
  bench.turn(() => bench.client('q'));
  bench.turn(() => {
    const settings = clusterSettings({ affinityWithPort: true });
    bench.direct({ kind: 'SetCluster', settings });
  });
  expect(bench.turn(() => bench.backend('r'))).toContain('reply 0 10.1.0.1:1000 r');
  expect(bench.turn(() => bench.client('again'))).toContain('send u1 again');
});

test('B11: a datagram of one flow among four thousand looks at a few cells, not at every flow', () => {
  const flows = 4_000;
  const bench = new PlaneBench(configOf(undefined, [listenerConfig({ maxFlows: flows })]));
  const clients = Array.from({ length: flows }, (_, at) => `10.1.${at >> 8}.${at & 255}:1000`);
  bench.turn(() => clients.forEach((client) => bench.client('q', client)));
  const manager = present(bench.plane.managerOf(listenerId(0)), 'the listener exists');
  const reads = countReads(manager);
  bench.client('q', clients[1_234]);
  bench.backend('r', 2_345);
  bench.plane.pollTimeout();
  expect(reads.cells).toBeGreaterThan(0);
  expect(reads.cells).toBeLessThan(200);
});

test('B12: max_rx_datagram_size binds clients, never replies', () => {
  const bench = new PlaneBench(configOf(undefined, [listenerConfig({ maxRxDatagramSize: 8 })]));
  bench.turn(() => bench.client('question'));
  const long = 'r'.repeat(65_507);
  expect(bench.turn(() => bench.backend(long))).toContain(`reply 0 10.1.0.1:1000 ${long}`);
  bench.turn(() => bench.client('questions'));
  expect(bench.counters()).toMatchObject({ droppedTruncated: 1, returned: 1 });
});

test('B13: a client of the other family is named in the header, on every datagram where asked', () => {
  const settings = { sendProxyProtocol: true, proxyProtocolEveryDatagram: true };
  const bench = new PlaneBench(
    configOf(
      [clusterSettings(settings)],
      [listenerConfig({ address: addressOf('[2001:db8::53]:53') })],
    ),
  );
  const ask = (): void => bench.client('q', '[2001:db8::1]:1000');
  expect(bench.turn(ask)).toContain('send u1 [52]q');
  bench.ports.fate = () => 'error';
  bench.turn(ask);
  bench.ports.fate = () => undefined;
  expect(bench.turn(ask)).toContain('send u1 [52]q');
});

test('B15: a datagram that cannot be sent is dropped and counted, at once or from a queue, and not as forwarded', () => {
  const bench = new PlaneBench(configOf());
  bench.ports.fate = () => 'error';
  bench.turn(() => bench.client('refused'));
  bench.ports.fate = () => 'blocked';
  bench.turn(() => bench.client('waits'));
  bench.ports.fate = () => 'error';
  bench.turn(() => bench.allWritable());
  expect(bench.counters()).toMatchObject({ datagramsIn: 2, forwarded: 0, droppedSendError: 2 });
});

test('B16: an ICMP refusal is counted, ends no flow and stops nobody’s datagrams', () => {
  const bench = new PlaneBench(configOf());
  bench.turn(() => bench.client('q'));
  const calls = bench.turn(() => {
    bench.pump.refused(bench.socket(1));
    bench.client('again');
    bench.client('other', '10.1.0.2:1000');
    bench.backend('r');
  });
  expect(calls).toEqual(
    expect.arrayContaining(['send u1 again', 'send u2 other', 'reply 0 10.1.0.1:1000 r']),
  );
  expect(bench.counters()).toMatchObject({ upstreamRefused: 1, flowsEvicted: 0 });
});

test('B17: LEAST_LOADED and POWER_OF_TWO compare the flows that live', () => {
  for (const loadBalancing of ['LEAST_LOADED', 'POWER_OF_TWO'] as const) {
    const bench = new PlaneBench(configOf([clusterSettings({ loadBalancing })]));
    for (const from of ['10.1.0.1:1', '10.1.0.2:1', '10.1.0.3:1', '10.1.0.4:1']) {
      bench.turn(() => bench.client('q', from));
    }
    const set = present(bench.plane.clusters.backendsOf('c'), 'the cluster is known');
    expect(set.backends.map((backend) => set.flowsOn(backend))).toEqual([2, 2]);
  }
});

test('B20: every close says why', () => {
  const bench = new PlaneBench(
    configOf([clusterSettings({ backends: backendsOf(1), requests: 2 })]),
  );
  const manager = present(bench.plane.managerOf(listenerId(0)), 'the listener exists');
  const reasons: string[] = [];
  const poll = manager.pollOutput.bind(manager);
  vi.spyOn(manager, 'pollOutput').mockImplementation(() => {
    const output = poll();
    if (output?.kind === 'CloseFlow') reasons.push(output.reason);
    return output;
  });
  bench.turn(() => bench.client('q'));
  bench.timer(30);
  bench.turn(() => ['a', 'b'].forEach((word) => bench.client(word)));
  expect(reasons).toEqual(['Idle', 'RequestsReached']);
});

test('B23: a flow without an upstream socket is counted apart from those refused at the cap', () => {
  const bench = new PlaneBench(configOf(undefined, [listenerConfig({ maxFlows: 1 })]));
  bench.ports.openResults = ['EAFNOSUPPORT'];
  bench.turn(() => bench.client('q'));
  bench.turn(() => ['10.1.0.1:1', '10.1.0.2:1'].forEach((from) => bench.client('q', from)));
  const { flowsCreated, flowsEvicted, flowsShed, upstreamOpenFailed } = bench.counters();
  expect(flowsCreated - flowsEvicted).toBe(bench.plane.flowCount);
  expect(upstreamOpenFailed).toBe(1);
  expect(flowsShed - upstreamOpenFailed).toBe(1);
});

/** Counts from now on how many cells are read of the arrays that a machine and its parts hold. */
function countReads(machine: object): { cells: number } {
  const reads = { cells: 0 };
  const parts = [machine, ...Object.values(machine)].filter((part) => typeof part === 'object');
  for (const part of parts) {
    for (const [name, held] of Object.entries(part)) {
      if (ArrayBuffer.isView(held)) Reflect.set(part, name, counted(held, reads));
    }
  }
  return reads;
}

function counted(array: ArrayBufferView, reads: { cells: number }): ArrayBufferView {
  return new Proxy(array, {
    get(target, name) {
      if (typeof name === 'string' && /^\d+$/.test(name)) reads.cells += 1;
      return Reflect.get(target, name, target);
    },
    set: (target, name, value) => Reflect.set(target, name, value, target),
  });
}

test('B18: the cap on requests ends a flow before its reply, unless it is told to linger', () => {
  const replies = [false, true].map((requestsLinger) => {
    const bench = new PlaneBench(configOf([clusterSettings({ requests: 1, requestsLinger })]));
    bench.turn(() => bench.client('q'));
    bench.pass(0.1);
    const calls = bench.turn(() => bench.backend('r'));
    return calls.includes('reply 0 10.1.0.1:1000 r');
  });
  expect(replies).toEqual([false, true]);
});
