/** The checklist of spec §12.1 under its own names, and what the contract adds to it. */
import { describe, expect, test } from 'vitest';
import {
  A,
  address,
  admitted,
  always,
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
  returned,
  SHED,
  SHED_SOURCE,
  TWO,
} from '../test/flow-rig.ts';
import type { Address } from './address.ts';
import { flowId } from './brand.ts';
import { DATAGRAM_BYTES_MAX } from './contract.ts';
import { dgramHeader } from './proxy-protocol.ts';
import { seconds } from './time.ts';

const q = bytes('q');
const r = bytes('r');

describe('admission', () => {
  test('unknown_datagram_allocates_nothing_when_no_cluster: dropped as NoBackend, nobody is asked', () => {
    const rig = new FlowRig({ config: cluster({ cluster: '' }) });
    expect(rig.client(A, q, 0)).toEqual([dropped('NoBackend')]);
    expect(rig.manager.flowCount).toBe(0);
    expect(rig.selections).toBe(0);
  });

  test('empty_datagram_is_invalid: and makes no flow', () => {
    const rig = new FlowRig();
    expect(rig.client(A, bytes(''), 0)).toEqual([dropped('Invalid')]);
    expect(rig.manager.flowCount).toBe(0);
  });

  test('truncated_datagram_dropped_before_admission: one byte above the limit, not at it', () => {
    const rig = new FlowRig({ maxRxDatagramSize: 4 });
    expect(rig.client(A, bytes('12345'), 0)).toEqual([dropped('Truncated')]);
    expect(rig.manager.flowCount).toBe(0);
    expect(rig.client(A, bytes('1234'), 0)).toEqual([...admitted(0, bytes('1234')), armed(30)]);
  });

  test('new_flow_requests_backend_then_forwards_buffered_datagram: opens to the chosen backend and sends at once', () => {
    const rig = new FlowRig();
    rig.backends = always(TWO);
    expect(rig.client(A, q, 0)).toEqual([...admitted(0, q, TWO), armed(30)]);
    expect(rig.selections).toBe(1);
    expect(rig.manager.flow(flowId(0))).toMatchObject({ client: A, backend: TWO, requestsSeen: 1 });
  });

  test('tracked_flow_reuses_backend: the second datagram selects nothing', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0);
    rig.backends = always(TWO);
    expect(rig.client(A, bytes('again'), 0)).toEqual(forwarded(0, bytes('again'), ONE));
    expect(rig.selections).toBe(1);
    expect(rig.manager.flowCount).toBe(1);
  });

  test('flow_table_full_sheds_new_flow: the cap is the cap', () => {
    const rig = new FlowRig({ maxFlows: 1 });
    rig.client(A, q, 0);
    expect(rig.client(B, q, 0)).toEqual([SHED, dropped('Shed')]);
    expect(rig.manager.flowCount).toBe(1);
  });

  test('every_datagram_of_an_opening_burst_is_forwarded_and_counted_once: none is buffered, none overwrites another', () => {
    const rig = new FlowRig({ config: cluster({ requests: 5 }) });
    const burst = ['1', '2', '3', '4'].map(bytes);
    const outputs = burst.flatMap((payload) => rig.client(A, payload, 0));
    expect(outputs).toEqual([
      ...admitted(0, burst[0]!),
      armed(30),
      ...burst.slice(1).flatMap((payload) => forwarded(0, payload)),
    ]);
    expect(rig.manager.flow(flowId(0))?.requestsSeen).toBe(4);
  });

  test('max_flows = 0 admits nothing', () => {
    const rig = new FlowRig({ maxFlows: 0 });
    expect(rig.client(A, q, 0)).toEqual([SHED, dropped('Shed')]);
  });

  test('subnet limits: the neighbour in the /24 is refused, the one outside is not', () => {
    const rig = new FlowRig({ config: cluster({ maxFlowsPerSubnet: 2 }) });
    rig.client(address('192.0.2.1:1'), q, 0);
    rig.client(address('192.0.2.255:1'), q, 0);
    expect(rig.client(address('192.0.2.77:1'), q, 0)).toEqual([SHED_SOURCE, dropped('Shed')]);
    expect(rig.client(address('192.0.3.1:1'), q, 0)).toEqual(admitted(2, q));
  });

  test('a payload is lent, not copied, in both directions', () => {
    const rig = new FlowRig();
    const sent = rig.client(A, q, 0).find((output) => output.kind === 'SendToBackend');
    const back = rig.backend(0, r, 0).find((output) => output.kind === 'SendToClient');
    expect(sent?.payload).toBe(q);
    expect(back?.payload).toBe(r);
  });
});

describe('caps', () => {
  test('responses_one_closes_flow_after_single_reply: the reply is delivered first', () => {
    const rig = new FlowRig({ config: cluster({ responses: 1 }) });
    rig.client(A, q, 0);
    expect(rig.backend(0, r, 0)).toEqual([...returned(0, r, A), ...closed(0, 'ResponsesReached')]);
    expect(rig.manager.flowCount).toBe(0);
  });

  test('requests_cap_closes_flow: with requests = 2 the second forward closes', () => {
    const rig = new FlowRig({ config: cluster({ requests: 2 }) });
    expect(rig.client(A, q, 0)).toEqual([...admitted(0, q), armed(30)]);
    expect(rig.client(A, q, 1)).toEqual([...forwarded(0, q), ...closed(0, 'RequestsReached', 1)]);
    expect(rig.manager.flowCount).toBe(0);
  });

  test('when both caps are exhausted, the responses are the reason', () => {
    const rig = new FlowRig({ config: cluster({ responses: 1, requests: 2 }) });
    rig.client(A, q, 0);
    expect(rig.backend(0, r, 0)).toEqual([...returned(0, r, A), ...closed(0, 'ResponsesReached')]);
  });
});

describe('idle time', () => {
  test('idle_timeout_closes_flow: armed at now + timeout, then gone with nothing armed', () => {
    const rig = new FlowRig();
    expect(rig.client(A, q, 7)).toContainEqual(armed(37));
    expect(rig.timeout(37)).toEqual(closed(0, 'Idle', 30));
    expect(rig.manager.pollTimeout()).toBeUndefined();
  });

  test('idle_race_resolved_by_generation_token: the refreshed flow survives the old deadline and dies at the new', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0);
    rig.client(A, q, 29);
    expect(rig.timeout(30)).toEqual([armed(59)]);
    expect(rig.timeout(59)).toEqual(closed(0, 'Idle', 59));
  });

  test('early_expiry_that_finds_nothing_due_still_rearms: the same deadline is said again', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0);
    expect(rig.timeout(1)).toEqual([armed(30)]);
  });

  test('repeated_early_expiries_each_rearm: as often as they come', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0);
    for (const early of [1, 1, 2, 29.999999]) expect(rig.timeout(early)).toEqual([armed(30)]);
  });

  test('two due together and a later third arm the timer twice in one drain (spec §2.7)', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0);
    rig.client(B, q, 0);
    rig.client(C, q, 5);
    expect(rig.timeout(30)).toEqual([
      ...closed(0, 'Idle', 30),
      armed(30),
      ...closed(1, 'Idle', 30),
      armed(35),
    ]);
  });

  test('flows that are due together close in order of id, whatever their deadlines', () => {
    const rig = new FlowRig({ config: cluster({ frontTimeout: seconds(20) }) });
    rig.client(A, q, 0);
    rig.config({ kind: 'SetCluster', config: cluster({ frontTimeout: seconds(10) }) });
    rig.client(B, q, 0);
    const closes = rig.timeout(30).filter((output) => output.kind === 'CloseFlow');
    expect(closes.map((output) => output.flow)).toEqual([0, 1]);
  });

  test('a timeout of zero is legal: due at once, closed when the timer fires', () => {
    const rig = new FlowRig({ config: cluster({ frontTimeout: seconds(0) }) });
    expect(rig.client(A, q, 3)).toEqual([...admitted(0, q), armed(3)]);
    expect(rig.timeout(3)).toEqual(closed(0, 'Idle'));
  });

  test('an expiry on an empty machine says nothing', () => {
    expect(new FlowRig().timeout(5)).toEqual([]);
  });
});

describe('configuration', () => {
  test('drain_sheds_new_flows_but_keeps_existing: there is no way back', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0);
    rig.config({ kind: 'Drain' });
    rig.config({ kind: 'Drain' });
    expect(rig.client(B, q, 0)).toEqual([dropped('Shed')]);
    expect(rig.backend(0, r, 0)).toEqual(returned(0, r, A));
    expect(rig.manager.flowCount).toBe(1);
  });

  test('reconfig_midflow_preserves_existing_flow_contract: caps, timeouts and headers of the admission stay', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0);
    const config = cluster({
      responses: 1,
      requests: 1,
      frontTimeout: seconds(1),
      backTimeout: seconds(1),
      sendProxyProtocol: true,
      proxyProtocolEveryDatagram: true,
    });
    expect(rig.config({ kind: 'SetCluster', config })).toEqual([]);
    expect(rig.client(A, q, 1)).toEqual([...forwarded(0, q), armed(31)]);
    expect(rig.backend(0, r, 2)).toEqual([...returned(0, r, A), armed(32)]);
    expect(rig.client(B, q, 2)).toEqual([
      ...admitted(1, q).slice(0, 2),
      ...forwarded(1, q, ONE, dgramHeader(B, ONE.address)),
      ...closed(1, 'RequestsReached'),
    ]);
  });

  test('a lower cap evicts nobody, and a higher one admits more than the table had room for', () => {
    const rig = new FlowRig({ maxFlows: 2 });
    rig.client(A, q, 0);
    rig.client(B, q, 0);
    expect(rig.config({ kind: 'SetMaxFlows', count: 1 })).toEqual([]);
    expect(rig.manager.flowCount).toBe(2);
    expect(rig.client(C, q, 0)).toEqual([SHED, dropped('Shed')]);
    expect(rig.config({ kind: 'SetMaxFlows', count: 100 })).toEqual([]);
    for (let n = 1; n <= 98; n += 1) {
      expect(rig.client({ ...C, a: C.a + n }, q, 0)).toEqual(admitted(n + 1, q));
    }
    expect(rig.client(C, q, 0)).toEqual([SHED, dropped('Shed')]);
    expect(rig.client(B, q, 0)).toEqual(forwarded(1, q));
  });

  test('the size limit changes at once for live flows too, and never binds what backends send', () => {
    const rig = new FlowRig();
    rig.client(A, bytes('12345'), 0);
    expect(rig.config({ kind: 'SetMaxRxDatagramSize', bytes: 4 })).toEqual([]);
    expect(rig.client(A, bytes('12345'), 0)).toEqual([dropped('Truncated')]);
    const largest = new Uint8Array(DATAGRAM_BYTES_MAX);
    expect(rig.backend(0, largest, 0)).toEqual(returned(0, largest, A));
    const tooLarge = new Uint8Array(DATAGRAM_BYTES_MAX + 1);
    expect(rig.backend(0, tooLarge, 0)).toEqual([dropped('Truncated')]);
    expect(rig.backend(7, tooLarge, 0)).toEqual([dropped('Truncated')]);
  });
});

describe('closing', () => {
  test('reaper_drains_active_flows_to_zero: ten flows, ten closes, nothing armed', () => {
    const rig = new FlowRig({ maxFlows: 10 });
    for (const client of clients(10)) rig.client(client, q, 0);
    const outputs = rig.timeout(30);
    expect(outputs.filter((output) => output.kind === 'CloseFlow')).toHaveLength(10);
    expect(rig.manager.flowCount).toBe(0);
    expect(rig.manager.pollTimeout()).toBeUndefined();
  });

  test('close_all_evicts_every_flow_exactly_once: each evicted, each closed, in order of id', () => {
    const rig = new FlowRig();
    for (const [index, client] of clients(3).entries()) rig.client(client, q, index);
    expect(rig.closeAll(3)).toEqual([
      ...closed(0, 'Drain', 3),
      armed(31),
      ...closed(1, 'Drain', 2),
      armed(32),
      ...closed(2, 'Drain', 1),
    ]);
    expect(rig.manager.flowCount).toBe(0);
    expect(rig.manager.pollTimeout()).toBeUndefined();
    expect(rig.manager.isDraining).toBe(false);
    expect(rig.client(A, q, 4)).toContainEqual(armed(34));
  });

  test('close_all_is_idempotent_and_empty_safe: silent when there is nothing to close', () => {
    const rig = new FlowRig();
    expect(rig.closeAll(0)).toEqual([]);
    rig.client(A, q, 0);
    rig.closeAll(0);
    expect(rig.closeAll(0)).toEqual([]);
  });

  test('abort_flow_closes_established_flow: once, then silence', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0);
    expect(rig.abort(0, 0)).toEqual(closed(0, 'Aborted'));
    expect(rig.abort(0, 0)).toEqual([]);
  });

  test('abort_flow_closes_awaiting_backend_flow: no flow awaits; slot and key are free again', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0);
    rig.abort(0, 0);
    expect(rig.client(A, q, 1)).toEqual([...admitted(0, q), armed(31)]);
  });

  test('abort_flow_unknown_id_is_noop: whatever the number', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0);
    for (const id of [1, -1, 8, 2 ** 31, 2 ** 40, 1 / 16, 0.1, Number.NaN, Infinity]) {
      expect(rig.abort(id, 0), String(id)).toEqual([]);
      expect(rig.backend(id, r, 0), String(id)).toEqual([dropped('UnknownFlow')]);
    }
    expect(rig.manager.flowCount).toBe(1);
  });

  test('an abort may name its reason', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0);
    expect(rig.abort(0, 0, 'Drain')).toEqual(closed(0, 'Drain'));
  });

  test('the slot freed last is used first', () => {
    const rig = new FlowRig();
    for (const client of clients(3)) rig.client(client, q, 0);
    rig.abort(0, 0);
    rig.abort(2, 0);
    expect(rig.client(A, q, 0)).toEqual(admitted(2, q));
    expect(rig.client(B, q, 0)).toEqual(admitted(0, q));
    expect(rig.client(C, q, 0)).toEqual(admitted(3, q));
  });

  test('a late reply to a closed flow is of no flow', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0);
    rig.timeout(30);
    expect(rig.backend(0, r, 31)).toEqual([dropped('UnknownFlow')]);
  });
});

describe('headers and local addresses', () => {
  test('proxy_protocol_first_datagram_only: a prefix on the first, none on the second', () => {
    const rig = new FlowRig({ config: cluster({ sendProxyProtocol: true }) });
    const [first] = rig.client(A, q, 0).filter((output) => output.kind === 'SendToBackend');
    expect(first?.payload).toBe(q);
    expect([...(first?.prefix ?? [])].slice(0, 14)).toEqual([
      0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a, 0x21, 0x12,
    ]);
    expect(rig.client(A, q, 0)).toEqual(forwarded(0, q));
  });

  test('a later datagram that begins like a PROXY header is refused, where only the first carries ours', () => {
    const forged = dgramHeader(B, ONE.address);
    const refused = [{ kind: 'Metric', event: { kind: 'HeaderRefused' } }, dropped('Invalid')];
    const first = { sendProxyProtocol: true };
    const rig = new FlowRig({ config: cluster(first) });
    expect(rig.client(A, forged, 0).at(-1)).toEqual(armed(30));
    expect(rig.client(A, forged, 1)).toEqual(refused);
    expect(rig.manager.flow(flowId(0))).toMatchObject({ requestsSeen: 1 });
    expect(rig.client(A, forged.slice(0, 11), 1)).toContainEqual(armed(31));
    for (const more of [
      { ...first, rejectClientHeader: false },
      { ...first, proxyProtocolEveryDatagram: true },
      { sendProxyProtocol: false },
    ]) {
      const open = new FlowRig({ config: cluster(more) });
      open.client(A, forged, 0);
      expect(open.client(A, forged, 1)).not.toEqual(refused);
    }
  });

  test('every datagram carries the header where the cluster says so, and none counts its bytes', () => {
    const config = cluster({ sendProxyProtocol: true, proxyProtocolEveryDatagram: true });
    const rig = new FlowRig({ config });
    const prefix = dgramHeader(A, ONE.address);
    rig.client(A, q, 0);
    for (let more = 0; more < 3; more += 1) {
      expect(rig.client(A, q, 0)).toEqual(forwarded(0, q, ONE, prefix));
    }
  });

  test('on a wildcard listener one client has a flow per local address, answered from it', () => {
    const rig = new FlowRig({ keyedByLocal: true });
    const [here, there] = [address('10.1.0.1:53'), address('10.1.0.2:53')];
    rig.client(A, q, 0, here);
    expect(rig.client(A, q, 0, there)).toEqual(admitted(1, q));
    expect(rig.client(A, q, 0)).toEqual(admitted(2, q));
    expect(rig.client(A, q, 0, here)).toEqual(forwarded(0, q));
    expect(rig.backend(1, r, 0)).toEqual(returned(1, r, A, there));
    expect(rig.backend(2, r, 0)).toEqual(returned(2, r, A));
  });

  test('elsewhere the local address is no part of the key', () => {
    const rig = new FlowRig();
    rig.client(A, q, 0, address('10.1.0.1:53'));
    expect(rig.client(A, q, 0, address('10.1.0.2:53'))).toEqual(forwarded(0, q));
  });
});

function clients(count: number): Address[] {
  return Array.from({ length: count }, (_, index) => ({ ...A, port: 1_000 + index }));
}
