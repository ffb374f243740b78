/** Each invariant fires when the state is broken by hand: a check that cannot fail checks nothing. */
import { describe, expect, test } from 'vitest';
import { A, address, B, bytes, cluster, FlowRig, TWO } from '../test/flow-rig.ts';
import type { UdpManager } from './manager.ts';
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
    if (!(index instanceof Int32Array)) throw new Error('the index is one array');
    index.fill(0);
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
    Reflect.set(idle, 'armed', instant(7));
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

/** Two flows that may each ask and be answered three times. */
function twoFlows(): UdpManager {
  const rig = new FlowRig({ config: cluster({ requests: 3, responses: 3 }) });
  rig.client(A, bytes('q'), 0);
  rig.client(B, bytes('q'), 0);
  return rig.manager;
}

function expectBroken(manager: UdpManager, problem: RegExp): void {
  expect(brokenInvariants(manager)).toContainEqual(expect.stringMatching(problem));
  expect(() => checkInvariants(manager)).toThrow('broken invariants');
}
