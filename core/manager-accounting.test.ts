/** When a flow has had its replies: per flow or per request, with a way back for late ones, and within a reply budget. */
import { describe, expect, test } from 'vitest';
import {
  A,
  admitted,
  armed,
  B,
  bytes,
  C,
  closed,
  cluster,
  dropped,
  FlowRig,
  forwarded,
  returned,
  SHED,
  SHED_SOURCE,
} from '../test/flow-rig.ts';
import { flowId } from './brand.ts';
import { seconds } from './time.ts';

const q = bytes('q');
const r = bytes('r');
const [a, aaaa] = [bytes('A'), bytes('AAAA')];

describe('responses per request', () => {
  const config = cluster({ responses: 1, responsesPerRequest: true });

  test('A and AAAA from one socket, answered out of order, both arrive; then the flow closes', () => {
    const rig = new FlowRig({ config });
    rig.client(A, a, 0);
    rig.client(A, aaaa, 0);
    expect(rig.backend(0, aaaa, 0.03)).toEqual([...returned(0, aaaa, A), armed(30.03)]);
    expect(rig.backend(0, a, 0.06)).toEqual([
      ...returned(0, a, A),
      ...closed(0, 'ResponsesReached', 0.06),
    ]);
  });

  test('counted per flow, as the default is, the second answer meets a flow that is gone', () => {
    const rig = new FlowRig({ config: cluster({ responses: 1 }) });
    rig.client(A, a, 0);
    rig.client(A, aaaa, 0);
    rig.backend(0, aaaa, 0.03);
    expect(rig.backend(0, a, 0.06)).toEqual([dropped('UnknownFlow')]);
  });

  test('once all answers came the next query opens a new flow, and a duplicate of an old answer is of no flow', () => {
    const rig = new FlowRig({ config });
    rig.client(A, a, 0);
    rig.backend(0, a, 1);
    expect(rig.backend(0, a, 1)).toEqual([dropped('UnknownFlow')]);
    expect(rig.client(A, a, 1)).toEqual([...admitted(0, a), armed(31)]);
  });

  test('three requests with two responses each await six', () => {
    const rig = new FlowRig({ config: cluster({ responses: 2, responsesPerRequest: true }) });
    for (let request = 0; request < 3; request += 1) rig.client(A, q, 0);
    for (let reply = 0; reply < 5; reply += 1) {
      expect(rig.backend(0, r, 0)).toEqual(returned(0, r, A));
    }
    expect(rig.backend(0, r, 0)).toEqual([...returned(0, r, A), ...closed(0, 'ResponsesReached')]);
  });
});

describe('a flow that spent its requests', () => {
  const config = cluster({ requests: 1, requestsLinger: true, backTimeout: seconds(5) });

  test('with requests = 1 a reply that comes 100 ms later arrives, where requests_linger says so', () => {
    const rig = new FlowRig({ config });
    expect(rig.client(A, q, 0)).toEqual([...admitted(0, q), armed(30)]);
    expect(rig.manager.flow(flowId(0))).toMatchObject({ phase: 'Lingering', requestsSeen: 1 });
    expect(rig.backend(0, r, 0.1)).toEqual([...returned(0, r, A), armed(5.1)]);
  });

  test('its client opens a new flow, and each returns its own replies', () => {
    const rig = new FlowRig({ config });
    rig.client(A, q, 0);
    expect(rig.client(A, q, 1)).toEqual(admitted(1, q));
    expect(rig.backend(1, r, 1)).toEqual([...returned(1, r, A), armed(6)]);
    expect(rig.backend(0, r, 1)).toEqual(returned(0, r, A));
    expect(rig.manager.flow(flowId(0))?.client).toEqual(rig.manager.flow(flowId(1))?.client);
  });

  test('each reply grants idle time, and the flow ends as idle where nobody said how many replies there are', () => {
    const rig = new FlowRig({ config });
    rig.client(A, q, 0);
    for (const at of [1, 2, 3]) {
      expect(rig.backend(0, r, at)).toEqual([...returned(0, r, A), armed(at + 5)]);
    }
    expect(rig.timeout(8)).toEqual(closed(0, 'Idle', 8));
  });

  test('it closes as RequestsReached with the last of the replies that it awaits', () => {
    const rig = new FlowRig({
      config: { ...config, requests: 2, responses: 1, responsesPerRequest: true },
    });
    rig.client(A, q, 0);
    rig.client(A, q, 0);
    expect(rig.backend(0, r, 0)).toEqual([...returned(0, r, A), armed(5)]);
    expect(rig.backend(0, r, 0)).toEqual([...returned(0, r, A), ...closed(0, 'RequestsReached')]);
  });

  test('it counts in the number of flows, against the cap and against the limit of its source', () => {
    const rig = new FlowRig({ config: { ...config, maxFlowsPerIp: 1 }, maxFlows: 2 });
    rig.client(A, q, 0);
    expect(rig.manager.flowCount).toBe(1);
    expect(rig.client(A, q, 0)).toEqual([SHED_SOURCE, dropped('Shed')]);
    rig.client(B, q, 0);
    expect(rig.client(C, q, 0)).toEqual([SHED, dropped('Shed')]);
    rig.timeout(30);
    expect(rig.client(A, q, 30)).toContainEqual(armed(60));
  });

  test('a drain, an abort and a larger table treat it like any other flow', () => {
    const rig = new FlowRig({ config, maxFlows: 2 });
    rig.client(A, q, 0);
    rig.client(A, q, 0);
    rig.config({ kind: 'SetMaxFlows', count: 40 });
    expect(rig.client(A, q, 0)).toEqual(admitted(2, q));
    expect(rig.abort(1, 0, 'Killed')).toEqual(closed(1, 'Killed'));
    expect(rig.closeAll(0)).toEqual([...closed(0, 'Drain'), ...closed(2, 'Drain')]);
  });

  test('without requests_linger it closes at once, whatever grace late replies have', () => {
    const rig = new FlowRig({ config: cluster({ requests: 1, lateReplyGrace: seconds(9) }) });
    expect(rig.client(A, q, 0)).toEqual([...admitted(0, q), ...closed(0, 'RequestsReached')]);
  });
});

describe('grace for late replies', () => {
  const config = cluster({ responses: 1, lateReplyGrace: seconds(2) });

  test('a flow with all its replies returns late ones until its grace is over, which none of them extends', () => {
    const rig = new FlowRig({ config });
    rig.client(A, q, 0);
    expect(rig.backend(0, r, 1)).toEqual([...returned(0, r, A), armed(3)]);
    expect(rig.backend(0, r, 2.5)).toEqual(returned(0, r, A));
    expect(rig.manager.flow(flowId(0))).toMatchObject({ phase: 'Lingering', responsesSeen: 2 });
    expect(rig.timeout(3)).toEqual(closed(0, 'ResponsesReached', 3));
    expect(rig.backend(0, r, 3)).toEqual([dropped('UnknownFlow')]);
  });

  test('a flow that lingered for its replies has the same grace, and ends for the reason it had', () => {
    const rig = new FlowRig({ config: { ...config, requests: 1, requestsLinger: true } });
    rig.client(A, q, 0);
    expect(rig.backend(0, r, 1)).toEqual([...returned(0, r, A), armed(3)]);
    expect(rig.backend(0, r, 2)).toEqual(returned(0, r, A));
    expect(rig.timeout(3)).toEqual(closed(0, 'RequestsReached', 3));
  });

  test('a datagram of its client opens a new flow meanwhile', () => {
    const rig = new FlowRig({ config });
    rig.client(A, q, 0);
    rig.backend(0, r, 1);
    expect(rig.client(A, q, 1)).toEqual(admitted(1, q));
    expect(rig.backend(0, r, 1)).toEqual(returned(0, r, A));
  });
});

describe('what an unproven client may be sent', () => {
  const config = cluster({ amplification: { factor: 3, floor: 4 } });

  test('a reply over the budget is dropped and changes nothing; a smaller one still passes', () => {
    const rig = new FlowRig({ config });
    rig.client(A, bytes('12'), 0);
    const before = rig.manager.flow(flowId(0));
    expect(rig.backend(0, bytes('1234567'), 1)).toEqual([dropped('Amplification')]);
    expect(rig.manager.flow(flowId(0))).toEqual(before);
    expect(rig.backend(0, bytes('1234'), 1)).toEqual([...returned(0, bytes('1234'), A), armed(31)]);
    expect(rig.backend(0, bytes('123'), 1)).toEqual([dropped('Amplification')]);
    expect(rig.backend(0, bytes('12'), 1)).toEqual(returned(0, bytes('12'), A));
    expect(rig.backend(0, bytes(''), 1)).toEqual(returned(0, bytes(''), A));
  });

  test('a second datagram of the client lifts the limit for good', () => {
    const rig = new FlowRig({ config });
    rig.client(A, q, 0);
    expect(rig.backend(0, bytes('12345'), 0)).toEqual([dropped('Amplification')]);
    rig.client(A, q, 0);
    for (const reply of [bytes('12345'), new Uint8Array(9_000)]) {
      expect(rig.backend(0, reply, 0)).toEqual(returned(0, reply, A));
    }
  });

  test('a datagram that is refused proves nothing', () => {
    const rig = new FlowRig({
      config: { ...config, datagramsPerSecond: 1, datagramsBurst: 1 },
    });
    rig.client(A, q, 0);
    expect(rig.client(A, q, 0)).toEqual([dropped('DatagramRate')]);
    expect(rig.backend(0, bytes('12345'), 0)).toEqual([dropped('Amplification')]);
  });

  test('the budget of one flow is no budget of the next in its slot', () => {
    const rig = new FlowRig({ config });
    rig.client(A, q, 0);
    rig.backend(0, bytes('1234'), 0);
    rig.timeout(30);
    rig.client(B, q, 30);
    expect(rig.backend(0, bytes('1234'), 30)).toEqual(returned(0, bytes('1234'), B));
    rig.timeout(60);
    rig.config({ kind: 'SetCluster', config: cluster() }, 60);
    rig.client(C, q, 60);
    expect(rig.backend(0, bytes('12345'), 60)).toEqual(returned(0, bytes('12345'), C));
  });

  test('it holds while a flow lingers, too', () => {
    const rig = new FlowRig({ config: { ...config, requests: 1, requestsLinger: true } });
    rig.client(A, q, 0);
    rig.client(A, q, 0);
    expect(rig.backend(0, bytes('12345'), 0)).toEqual([dropped('Amplification')]);
    expect(rig.backend(0, bytes('1234'), 0)).toEqual(returned(0, bytes('1234'), A));
  });
});

describe('the rate of a flow', () => {
  const config = cluster({ datagramsPerSecond: 10, datagramsBurst: 3 });

  test('beyond its burst a datagram is dropped, and neither deadline nor counts change', () => {
    const rig = new FlowRig({ config });
    for (const at of [0, 0, 0]) rig.client(A, q, at);
    const before = rig.manager.flow(flowId(0));
    expect(rig.client(A, q, 0.09)).toEqual([dropped('DatagramRate')]);
    expect(rig.manager.flow(flowId(0))).toEqual(before);
    expect(rig.client(A, q, 0.1)).toEqual([...forwarded(0, q), armed(30.1)]);
    expect(rig.client(A, q, 0.1)).toEqual([dropped('DatagramRate')]);
  });

  test('it saves up no more than a burst, and what one flow sends costs no other', () => {
    const rig = new FlowRig({ config });
    for (let more = 0; more < 9; more += 1) rig.client(A, q, 0);
    expect(rig.client(B, q, 0)).toEqual(admitted(1, q));
    const passed = [0, 1, 2, 3, 4].filter(() => rig.client(A, q, 20).length > 1);
    expect(passed).toEqual([0, 1, 2]);
  });

  test('a slot that is used again begins with a full burst, in a table that has grown', () => {
    const rig = new FlowRig({ config, maxFlows: 1 });
    for (let more = 0; more < 5; more += 1) rig.client(A, q, 0);
    rig.config({ kind: 'SetMaxFlows', count: 3 });
    expect(rig.client(A, q, 0)).toEqual([dropped('DatagramRate')]);
    rig.abort(0, 0);
    for (const client of [B, C]) {
      const passed = [0, 1, 2, 3].filter(() => rig.client(client, q, 0).length > 1);
      expect(passed).toEqual([0, 1, 2]);
    }
  });

  test('a flow keeps the rate it was admitted under, and one without a rate has none', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0);
    rig.config({ kind: 'SetCluster', config: { ...config, datagramsBurst: 1 } });
    rig.client(B, q, 0);
    expect(rig.client(B, q, 0)).toEqual([dropped('DatagramRate')]);
    expect(rig.client(A, q, 0)).toEqual(forwarded(0, q));
  });
});
