/** What a view decides besides its selection: who is kept out, and what becomes of flows whose backend is lost. */
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
  ONE,
  opened,
  REBOUND,
  returned,
  TWO,
  view,
  type Verdicts,
} from '../test/flow-rig.ts';
import { flowId } from './brand.ts';
import { PLACEMENT_SEED } from './hash.ts';
import { affinityKey } from './placement.ts';
import { dgramHeader } from './proxy-protocol.ts';
import { seconds } from './time.ts';

const q = bytes('q');
const r = bytes('r');
const empty = bytes('');

/** Of flows on ONE. */
const LOST: Verdicts = { fates: { one: 'rebind', other: 'keep' } };
const CUT: Verdicts = { fates: { one: 'close', other: 'keep' } };

describe('rebind', () => {
  test('the next datagram goes on with another backend: same id, serial and counts, and a deadline as ever', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0);
    rig.backend(0, r, 1);
    rig.backends = view(TWO, LOST);
    expect(rig.client(A, q, 2)).toEqual([
      REBOUND,
      opened(0, TWO),
      ...forwarded(0, q, TWO),
      armed(32),
    ]);
    expect(rig.manager.flow(flowId(0))).toMatchObject({
      serial: 1,
      createdAt: 0,
      backend: TWO,
      requestsSeen: 2,
      responsesSeen: 1,
    });
    expect(rig.client(A, q, 2)).toEqual(forwarded(0, q, TWO));
    expect(rig.timeout(32)).toEqual(closed(0, 'Idle', 32));
  });

  test('the new backend has not seen the PROXY header: it is due again, once', () => {
    const rig = new FlowRig({ config: cluster({ sendProxyProtocol: true }) });
    rig.client(A, q, 0);
    rig.client(A, q, 0);
    rig.backends = view(TWO, LOST);
    expect(rig.client(A, q, 0)).toEqual([
      REBOUND,
      opened(0, TWO),
      ...forwarded(0, q, TWO, dgramHeader(A, TWO.address)),
    ]);
    expect(rig.client(A, q, 0)).toEqual(forwarded(0, q, TWO));
  });

  test('where nobody can serve the datagram is dropped as NoBackend and the flow stays as it is', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0);
    const before = rig.manager.flow(flowId(0));
    rig.backends = view(undefined, LOST);
    expect(rig.client(A, q, 5)).toEqual([dropped('NoBackend')]);
    expect(rig.manager.flow(flowId(0))).toEqual(before);
    rig.backends = view(TWO, LOST);
    expect(rig.client(A, q, 6)).toContainEqual(opened(0, TWO));
  });

  test('a selection that finds the same id at the same address changes nothing, whatever object says so', () => {
    const rig = new FlowRig({ config: cluster({ sendProxyProtocol: true }) });
    rig.client(A, q, 0);
    rig.backends = view({ ...ONE, weight: 7 }, LOST);
    expect(rig.client(A, q, 1)).toEqual([...forwarded(0, q), armed(31)]);
    expect(rig.manager.flow(flowId(0))?.backend).toBe(ONE);
    rig.backends = view({ ...ONE, address: TWO.address }, LOST);
    expect(rig.client(A, q, 1)).toContainEqual(REBOUND);
    rig.backends = view({ ...TWO, id: 'a new name' }, LOST);
    expect(rig.client(A, q, 1)).toContainEqual(REBOUND);
  });

  test('it asks with the affinity key of the configuration that the flow was admitted under', () => {
    const rig = new FlowRig({ config: cluster({ affinityWithPort: true }) });
    rig.client(A, q, 0);
    rig.config({ kind: 'SetCluster', config: cluster({ affinityWithPort: false }) });
    rig.backends = view(TWO, LOST);
    rig.client(A, q, 0);
    expect(rig.selections).toBe(2);
    expect(rig.lastKey).toEqual(affinityKey(PLACEMENT_SEED, A, true));
  });

  test('a draining machine, one at its cap and a source that is refused still rebind live flows', () => {
    const rig = new FlowRig({ maxFlows: 1 });
    rig.client(A, q, 0);
    rig.config({ kind: 'Drain' });
    rig.backends = view(TWO, { ...LOST, refusal: 'NewFlowRate' });
    expect(rig.client(A, q, 0)).toEqual([REBOUND, opened(0, TWO), ...forwarded(0, q, TWO)]);
  });
});

describe('close', () => {
  test('the flow closes as BackendLost, and its client is an unknown one that may be admitted', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0);
    rig.backends = view(TWO, CUT);
    expect(rig.client(A, q, 1)).toEqual([
      ...closed(0, 'BackendLost', 1),
      ...admitted(0, q, TWO),
      armed(31),
    ]);
    expect(rig.manager.flow(flowId(0))).toMatchObject({ serial: 2, requestsSeen: 1 });
  });

  test('that admission passes all its checks: refusal, drain, cap, selection', () => {
    const lost = closed(0, 'BackendLost');
    const after = (verdicts: Verdicts, prepare: (rig: FlowRig) => void): unknown => {
      const rig = new FlowRig();
      rig.client(A, q, 0);
      prepare(rig);
      rig.backends = view(undefined, { ...CUT, ...verdicts });
      return rig.client(A, q, 0);
    };
    const nothing = (): void => undefined;
    const rates = [...lost, dropped('NewFlowRate')];
    expect(after({ refusal: 'NewFlowRate' }, nothing)).toEqual(rates);
    expect(after({}, (rig) => rig.config({ kind: 'Drain' }))).toEqual([...lost, dropped('Shed')]);
    expect(after({}, nothing)).toEqual([...lost, dropped('NoBackend')]);
  });

  test('the embedder may close flows of a lost backend before their clients come', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0);
    expect(rig.abort(0, 1, 'BackendLost')).toEqual(closed(0, 'BackendLost', 1));
  });
});

test('nobody asks for the fate of a client without a flow, nor of one over its rate', () => {
  const rig = new FlowRig({ config: cluster({ datagramsPerSecond: 1, datagramsBurst: 1 }) });
  rig.backends = view(ONE, CUT);
  expect(rig.client(A, q, 0)).toEqual([...admitted(0, q), armed(30)]);
  expect(rig.client(A, q, 0)).toEqual([dropped('DatagramRate')]);
  expect(rig.client(A, q, 1)).toEqual([
    ...closed(0, 'BackendLost', 1),
    ...admitted(0, q),
    armed(31),
  ]);
});

describe('a source that is kept out', () => {
  test('is denied on its live flow too, which lives on until it is idle', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0);
    rig.backends = view(ONE, { denied: true });
    expect(rig.client(A, q, 1)).toEqual([dropped('Denied')]);
    expect(rig.client(B, q, 1)).toEqual([dropped('Denied')]);
    expect(rig.backend(0, r, 1)).toContainEqual(returned(0, r, A)[1]);
    expect(rig.manager.flow(flowId(0))).toMatchObject({ requestsSeen: 1 });
  });

  test('is not asked about when the datagram is too long, leads nowhere or is invalid', () => {
    const rig = new FlowRig({ maxRxDatagramSize: 4 });
    rig.backends = view(ONE, { denied: true });
    expect(rig.client(A, bytes('12345'), 0)).toEqual([dropped('Truncated')]);
    expect(rig.client(A, empty, 0)).toEqual([dropped('Invalid')]);
    rig.config({ kind: 'SetCluster', config: cluster({ cluster: '' }) });
    expect(rig.client(A, q, 0)).toEqual([dropped('NoBackend')]);
  });
});

describe('empty datagrams where they are forwarded', () => {
  const config = cluster({ forwardEmptyDatagrams: true });

  test('one on a live flow goes on, counts and keeps the flow alive; it never opens one', () => {
    const rig = new FlowRig({ config });
    expect(rig.client(A, empty, 0)).toEqual([dropped('Invalid')]);
    rig.client(A, q, 0);
    expect(rig.client(A, empty, 5)).toEqual([...forwarded(0, empty), armed(35)]);
    expect(rig.manager.flow(flowId(0))).toMatchObject({ requestsSeen: 2 });
    expect(rig.client(B, empty, 5)).toEqual([dropped('Invalid')]);
    expect(rig.selections).toBe(1);
  });

  test('with a PROXY header on every datagram it is exactly the header', () => {
    const rig = new FlowRig({
      config: { ...config, sendProxyProtocol: true, proxyProtocolEveryDatagram: true },
    });
    rig.client(A, q, 0);
    const [, sent] = rig.client(A, empty, 0);
    expect(sent).toMatchObject({ payload: empty, prefix: dgramHeader(A, ONE.address) });
  });

  test('a flow goes by what it was admitted under', () => {
    const rig = new FlowRig({ config });
    rig.client(A, q, 0);
    rig.config({ kind: 'SetCluster', config: cluster() });
    rig.client(B, q, 0);
    expect(rig.client(A, empty, 0)).toEqual(forwarded(0, empty));
    expect(rig.client(B, empty, 0)).toEqual([dropped('Invalid')]);
  });

  test('one that meets a flow which lingers, or closes for its lost backend, is invalid', () => {
    const rig = new FlowRig({ config: { ...config, responses: 1, lateReplyGrace: seconds(9) } });
    rig.client(A, q, 0);
    rig.backend(0, r, 0);
    expect(rig.client(A, empty, 0)).toEqual([dropped('Invalid')]);
    rig.client(B, q, 0);
    rig.backends = view(TWO, CUT);
    expect(rig.client(B, empty, 0)).toEqual([...closed(1, 'BackendLost'), dropped('Invalid')]);
  });
});

describe('names and places of flows', () => {
  test('a serial number never comes again, and leads to the slot of its flow while that lives', () => {
    const rig = new FlowRig();
    for (const client of [A, B]) rig.client(client, q, 0);
    rig.abort(0, 0);
    rig.client(C, q, 0);
    expect(rig.manager.flow(flowId(0))).toMatchObject({ client: C, serial: 3 });
    expect([1, 2, 3, 4, 0].map((serial) => rig.manager.slotOfSerial(serial))).toEqual([
      undefined,
      1,
      0,
      undefined,
      undefined,
    ]);
  });

  test('a walk from slot to slot finds the flows of one backend, those that linger too', () => {
    const rig = new FlowRig({ config: cluster({ requests: 1, requestsLinger: true }) });
    for (const [client, backend] of [
      [A, ONE],
      [B, TWO],
      [C, ONE],
    ] as const) {
      rig.backends = view(backend, {});
      rig.client(client, q, 0);
    }
    const { manager } = rig;
    expect([0, 1, 2, 3].map((from) => manager.nextFlowOn(ONE, from))).toEqual([0, 2, 2, undefined]);
    expect(manager.nextFlowOn(TWO, 0)).toBe(1);
    expect(manager.nextFlowOn({ ...TWO }, 0)).toBeUndefined();
    rig.abort(1, 0);
    expect(manager.nextFlowOn(TWO, 0)).toBeUndefined();
    rig.abort(0, 0);
    expect(manager.nextFlowOn(ONE, 0)).toBe(2);
  });

  test('a flow was born when its first datagram came', () => {
    const rig = new FlowRig();
    rig.client(A, q, 3);
    rig.client(A, q, 4);
    rig.backend(0, r, 5);
    expect(rig.manager.flow(flowId(0))).toMatchObject({ createdAt: 3_000_000 });
  });
});
