/** Each invariant fires when the state is broken by hand: a check that cannot fail checks nothing. */
import { describe, expect, test } from 'vitest';
import { A, address, B, bytes, cluster, FlowRig, TWO } from '../test/flow-rig.ts';
import { VALIDATED } from './amplification.ts';
import { LiveFlows } from './live-flows.ts';
import type { UdpManager } from './manager.ts';
import { SlotIndex } from './slot-index.ts';
import { instant, seconds } from './time.ts';
import { brokenInvariants, checkInvariants } from './verify.ts';

describe('a machine in order', () => {
  test('breaks nothing, with and without flows, under both kinds of key', () => {
    for (const keyedByLocal of [false, true]) {
      const rig = new FlowRig({ keyedByLocal });
      expect(brokenInvariants(rig.manager)).toEqual([]);
      rig.client(A, bytes('q'), 0, address('10.1.0.1:53'));
      rig.client(address('[2001:db8::1]:53'), bytes('q'), 0);
      expect(brokenInvariants(rig.manager)).toEqual([]);
    }
  });
});

describe('a machine broken by hand', () => {
  test('I1: a count that is not the number of live slots', () => {
    const manager = twoFlows();
    Reflect.set(manager.table, 'live', 3);
    expectBroken(manager, /^I1: 2 live slots, but a count of 3/);
  });

  test('I2: a live flow that its key does not lead to', () => {
    const manager = twoFlows();
    const index: unknown = Reflect.get(manager.table, 'index');
    if (!(index instanceof SlotIndex)) throw new Error('the table has one index');
    index.entries.fill(0);
    expectBroken(manager, /^I2\/I3: the key 192\.0\.2\.1:1000 of flow 0 leads to undefined/);
  });

  test('I3: two flows of one key', () => {
    const manager = twoFlows();
    manager.table.insert(manager.table.hashOf(A, undefined), A, undefined);
    expectBroken(manager, /^I2\/I3: the key 192\.0\.2\.1:1000 of flow 2 leads to 0/);
  });

  test('I5: a backend or a configuration that no flow has, or that counts its flows wrong', () => {
    const extra = twoFlows();
    extra.backends.acquire(TWO);
    expectBroken(extra, /^I5: backends without a flow/);
    const again = twoFlows();
    again.configs.acquire(again.configs.get(0));
    expectBroken(again, /^I5: .*configs/);
  });

  test('I6: a timer that is not armed at the earliest deadline', () => {
    const late = twoFlows();
    late.deadlines.touch(0, instant(0), seconds(1));
    expectBroken(late, /^I6: armed at 30000000, but the earliest deadline is 1000000/);
    const idle = new FlowRig().manager;
    const flows: unknown = Reflect.get(idle, 'flows');
    if (!(flows instanceof LiveFlows)) throw new Error('the machine has flows');
    flows.armed = instant(7);
    expectBroken(idle, /^I6: armed at 7, but the earliest deadline is undefined/);
  });

  test('I7: a flow that outlives its cap', () => {
    const requests = twoFlows();
    requests.table.countRequest(0);
    requests.table.countRequest(0);
    expectBroken(requests, /^I7: flow 0 lives on/);
    const responses = twoFlows();
    for (let reply = 0; reply < 3; reply += 1) responses.table.countResponse(1);
    expectBroken(responses, /^I7: flow 1 lives on/);
  });

  test('I8: more flows than any cap allowed', () => {
    const manager = twoFlows();
    Reflect.set(manager, 'capHighWater', 1);
    expectBroken(manager, /^I8: 2 flows/);
  });

  test('I13: source counts that are not a recount', () => {
    const more = twoFlows();
    more.sources.add(more.configs.get(0), A);
    expectBroken(more, /^I13: the count of 192\.0\.2\.1:1000 is not 1/);
    expectBroken(more, /^I13: the count of (the )?subnet .* is not 1/);
    const stranger = twoFlows();
    stranger.sources.add(cluster({ cluster: 'another' }), address('9.9.9.9:9'));
    expectBroken(stranger, /^I13: a source without flows is still counted/);
    const fewer = twoFlows();
    fewer.sources.subtract(fewer.configs.get(0), B);
    expectBroken(fewer, /^I13: the count of 198\.51\.100\.2:2000 is not 1/);
  });
});

describe('what may linger', () => {
  const config = cluster({
    requests: 1,
    responses: 2,
    requestsLinger: true,
    lateReplyGrace: seconds(1),
  });

  test('a flow that awaits replies, or late ones, breaks nothing', () => {
    const rig = new FlowRig({ config });
    rig.client(A, bytes('q'), 0);
    expect(rig.manager.table.isLingering(0)).toBe(true);
    rig.backend(0, bytes('r'), 0);
    rig.backend(0, bytes('r'), 0);
    expect(rig.manager.table.endOf(0)).toBe('RequestsReached');
    expect(brokenInvariants(rig.manager)).toEqual([]);
  });

  test('I14: a key that leads to a flow that lingers', () => {
    const { manager } = lingering();
    const index: unknown = Reflect.get(manager.table, 'index');
    if (!(index instanceof SlotIndex)) throw new Error('the table has one index');
    index.enter(0, manager.table.hashOf(A, undefined));
    expectBroken(manager, /^I14: flow 0 lingers, but a key leads to it/);
  });

  test('I14: a flow that lingers without a reason', () => {
    const { manager } = lingering();
    manager.table.countResponse(0);
    manager.table.countResponse(0);
    expectBroken(manager, /^I14: flow 0 lingers without a reason, to end as Idle/);
    const early = lingering().manager;
    early.table.linger(0, 'ResponsesReached');
    expectBroken(early, /^I14: flow 0 lingers without a reason, to end as ResponsesReached/);
    const unasked = twoFlows();
    unasked.table.linger(0, 'Idle');
    expectBroken(unasked, /^I14: flow 0 lingers without a reason, to end as Idle/);
    for (let reply = 0; reply < 3; reply += 1) unasked.table.countResponse(0);
    unasked.table.linger(0, 'ResponsesReached');
    expectBroken(unasked, /^I14: flow 0 lingers without a reason, to end as ResponsesReached/);
  });

  function lingering(): FlowRig {
    const rig = new FlowRig({ config });
    rig.client(A, bytes('q'), 0);
    return rig;
  }
});

describe('the record of a flow', () => {
  test('I15: two flows of one serial number', () => {
    const manager = twoFlows();
    const doubles: unknown = Reflect.get(manager.table, 'doubles');
    if (!(doubles instanceof Float64Array)) throw new Error('serial numbers are doubles');
    doubles[7] = 2;
    expectBroken(manager, /^I15: flows 0 and 1 have one serial number, 2/);
    doubles[7] = 0;
    expectBroken(manager, /^I15: flow 0 has the serial number 0/);
  });

  test('I16: credit without a limit, or no limit where there is one', () => {
    const manager = twoFlows();
    manager.table.setCredit(0, 100);
    expectBroken(manager, /^I16: flow 0 has a credit of 100/);
    const rig = new FlowRig({ config: cluster({ amplification: { factor: 3, floor: 0 } }) });
    rig.client(A, bytes('q'), 0);
    expect(brokenInvariants(rig.manager)).toEqual([]);
    rig.manager.table.setCredit(0, VALIDATED);
    expectBroken(rig.manager, /^I16: flow 0 has a credit of -1/);
  });
});

/** Two flows that may each ask and be answered three times. */
function twoFlows(): UdpManager {
  const config = cluster({ requests: 3, responses: 3, maxFlowsPerIp: 9 });
  const rig = new FlowRig({ config });
  rig.client(A, bytes('q'), 0);
  rig.client(B, bytes('q'), 0);
  return rig.manager;
}

function expectBroken(manager: UdpManager, problem: RegExp): void {
  expect(brokenInvariants(manager)).toContainEqual(expect.stringMatching(problem));
  expect(() => checkInvariants(manager)).toThrow('broken invariants');
}
