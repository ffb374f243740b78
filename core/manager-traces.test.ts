/** The worked traces T1 to T12 of spec §2.15 as whole output sequences, and the order in which a datagram is judged. */
import { describe, expect, test } from 'vitest';
import {
  A,
  address,
  admitted,
  always,
  armed,
  B,
  bytes,
  closed,
  cluster,
  dropped,
  FlowRig,
  forwarded,
  ONE,
  returned,
  SHED,
  SHED_SOURCE,
  TWO,
} from '../test/flow-rig.ts';
import { backendSet } from './balancing/policy.laws.ts';
import { PLACEMENT_SEED } from './hash.ts';
import { affinityKey } from './placement.ts';
import { seconds } from './time.ts';

const q = bytes('q');
const r = bytes('r');
const x = bytes('x');
const y = bytes('y');

describe('worked traces', () => {
  test('T1: with responses = 1 the first reply is delivered, then the flow closes', () => {
    const rig = new FlowRig({ config: cluster({ responses: 1 }) });
    expect(rig.client(A, q, 0)).toEqual([...admitted(0, q), armed(30)]);
    expect(rig.backend(0, r, 1)).toEqual([
      ...returned(0, r, A),
      ...closed(0, 'ResponsesReached', 1),
    ]);
    expect(rig.manager.flowCount).toBe(0);
    expect(rig.manager.pollTimeout()).toBeUndefined();
  });

  test('T2: with requests = 1 the admission datagram closes its own flow, and no timer is armed', () => {
    const rig = new FlowRig({ config: cluster({ requests: 1 }) });
    expect(rig.client(A, q, 0)).toEqual([...admitted(0, q), ...closed(0, 'RequestsReached')]);
    expect(rig.manager.flowCount).toBe(0);
    expect(rig.backend(0, r, 1)).toEqual([dropped('UnknownFlow')]);
  });

  test('T3: at the cap a second client is shed, once', () => {
    const rig = new FlowRig({ maxFlows: 1 });
    expect(rig.client(A, q, 0)).toEqual([...admitted(0, q), armed(30)]);
    expect(rig.client(B, q, 0)).toEqual([SHED, dropped('Shed')]);
    expect(rig.manager.flowCount).toBe(1);
  });

  test('T4: a refreshed flow survives its old deadline, and the timer is armed again', () => {
    const rig = new FlowRig();
    expect(rig.client(A, q, 0)).toEqual([...admitted(0, q), armed(30)]);
    expect(rig.client(A, q, 5)).toEqual([...forwarded(0, q), armed(35)]);
    expect(rig.timeout(30)).toEqual([armed(35)]);
    expect(rig.manager.flowCount).toBe(1);
    expect(rig.manager.pollTimeout()).toBe(35_000_000);
  });

  test('T5: a wheel that fires early arms the same deadline again, which then closes', () => {
    const rig = new FlowRig();
    expect(rig.client(A, q, 0)).toEqual([...admitted(0, q), armed(30)]);
    expect(rig.timeout(29.95)).toEqual([armed(30)]);
    expect(rig.timeout(30)).toEqual(closed(0, 'Idle', 30));
    expect(rig.manager.flowCount).toBe(0);
  });

  test('T6: a reply can move the deadline earlier', () => {
    const rig = new FlowRig({
      config: cluster({ frontTimeout: seconds(60), backTimeout: seconds(5) }),
    });
    expect(rig.client(A, q, 0)).toEqual([...admitted(0, q), armed(60)]);
    expect(rig.backend(0, r, 1)).toEqual([...returned(0, r, A), armed(6)]);
  });

  test('T7: without a cluster a live flow is cut forwards, and still answered', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0);
    expect(rig.config({ kind: 'SetCluster', config: cluster({ cluster: '' }) })).toEqual([]);
    expect(rig.client(A, x, 0)).toEqual([dropped('NoBackend')]);
    expect(rig.backend(0, y, 0)).toEqual(returned(0, y, A));
    expect(rig.timeout(30)).toEqual(closed(0, 'Idle', 30));
  });

  test('T8: a drain sheds new clients and serves the ones that live', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0);
    expect(rig.config({ kind: 'Drain' })).toEqual([]);
    expect(rig.client(A, x, 1)).toEqual([...forwarded(0, x), armed(31)]);
    expect(rig.client(B, x, 1)).toEqual([dropped('Shed')]);
    expect(rig.manager.flowCount).toBe(1);
    expect(rig.manager.isDraining).toBe(true);
  });

  test('T9: two sockets of one client get two flows to one backend, each its own replies', () => {
    const rig = new FlowRig();
    rig.backends = backendSet('HRW', [ONE, TWO]);
    const [first, second] = [address('192.0.2.9:1000'), address('192.0.2.9:1001')];
    const chosen = rig.client(first, q, 0);
    const backend = rig.manager.backends.get(0);
    expect(chosen).toEqual([...admitted(0, q, backend), armed(30)]);
    expect(rig.client(second, q, 0)).toEqual(admitted(1, q, backend));
    expect(rig.lastKey).toEqual(affinityKey(PLACEMENT_SEED, first, false));
    expect(rig.backend(1, r, 0)).toEqual(returned(1, r, second));
    expect(rig.backend(0, r, 0)).toEqual(returned(0, r, first));
  });

  test('T10: without an eligible backend nothing is created', () => {
    const rig = new FlowRig();
    rig.backends = always(undefined);
    expect(rig.client(A, q, 0)).toEqual([dropped('NoBackend')]);
    expect(rig.manager.flowCount).toBe(0);
  });

  test('T11: a second flow of one address is refused until the first has closed', () => {
    const rig = new FlowRig({ config: cluster({ maxFlowsPerIp: 1 }) });
    const [first, second] = [address('192.0.2.9:1000'), address('192.0.2.9:1001')];
    expect(rig.client(first, q, 0)).toEqual([...admitted(0, q), armed(30)]);
    expect(rig.client(second, q, 0)).toEqual([SHED_SOURCE, dropped('Shed')]);
    expect(rig.timeout(30)).toEqual(closed(0, 'Idle', 30));
    expect(rig.client(second, q, 30)).toEqual([...admitted(0, q), armed(60)]);
  });

  test('T12: a flow whose upstream did not open is aborted after its drain (through the pump: pump.test.ts)', () => {
    const rig = new FlowRig({ config: cluster({ responses: 1 }) });
    const outputs = [...rig.client(A, q, 0), ...rig.abort(0, 0)];
    expect(outputs).toEqual([
      { kind: 'Metric', event: { kind: 'FlowCreated' } },
      { kind: 'OpenUpstream', flow: 0, backend: ONE },
      { kind: 'Metric', event: { kind: 'DatagramIn', bytes: 1 } },
      { kind: 'SendToBackend', flow: 0, dst: ONE.address, prefix: undefined, payload: q },
      { kind: 'ArmTimer', at: 30_000_000 },
      { kind: 'Metric', event: { kind: 'FlowEvicted' } },
      { kind: 'CloseFlow', flow: 0, reason: 'Aborted', lasted: 0 },
    ]);
    expect(rig.manager.flowCount).toBe(0);
    expect(rig.manager.pollTimeout()).toBeUndefined();
  });
});

describe('the order of judgement (spec §2.2)', () => {
  const tooLong = new Uint8Array(11);
  const empty = new Uint8Array(0);

  test('too long comes before no cluster', () => {
    const rig = new FlowRig({ config: cluster({ cluster: '' }), maxRxDatagramSize: 10 });
    expect(rig.client(A, tooLong, 0)).toEqual([dropped('Truncated')]);
    expect(rig.client(A, new Uint8Array(10), 0)).toEqual([dropped('NoBackend')]);
  });

  test('no cluster comes before an invalid datagram', () => {
    const rig = new FlowRig({ config: cluster({ cluster: '' }) });
    expect(rig.client(A, empty, 0)).toEqual([dropped('NoBackend')]);
  });

  test('an invalid datagram comes before the drain, and before the table', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0);
    rig.config({ kind: 'Drain' });
    expect(rig.client(B, empty, 0)).toEqual([dropped('Invalid')]);
    expect(rig.client(A, empty, 0)).toEqual([dropped('Invalid')]);
  });

  test('a live flow comes before drain, source limit and cap', () => {
    const rig = new FlowRig({ config: cluster({ maxFlowsPerIp: 1 }), maxFlows: 1 });
    rig.client(A, q, 0);
    rig.config({ kind: 'Drain' });
    expect(rig.client(A, q, 0)).toEqual(forwarded(0, q));
  });

  test('the drain comes before the source limit, the source limit before the cap, the cap before selection', () => {
    const sibling = address('192.0.2.1:1001');
    const rig = new FlowRig({ config: cluster({ maxFlowsPerIp: 1 }), maxFlows: 1 });
    rig.client(A, q, 0);
    expect(rig.client(sibling, q, 0)).toEqual([SHED_SOURCE, dropped('Shed')]);
    expect(rig.client(B, q, 0)).toEqual([SHED, dropped('Shed')]);
    expect(rig.selections).toBe(1);
    rig.config({ kind: 'Drain' });
    expect(rig.client(sibling, q, 0)).toEqual([dropped('Shed')]);
  });

  test('port 0, multicast, broadcast and unspecified sources are invalid, whatever the family', () => {
    const rig = new FlowRig();
    for (const source of [
      '192.0.2.1:0',
      '0.0.0.0:53',
      '224.0.0.1:53',
      '239.255.255.255:53',
      '255.255.255.255:53',
      '[::]:53',
      '[ff02::1%3]:53',
      '[2001:db8::1]:0',
    ]) {
      expect(rig.client(address(source), q, 0), source).toEqual([dropped('Invalid')]);
    }
    expect(rig.manager.flowCount).toBe(0);
    expect(rig.selections).toBe(0);
  });
});
