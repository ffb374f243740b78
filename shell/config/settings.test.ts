/** Tables outside a file: what a command changes of a cluster, and what a running state says of itself. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PRESET_NAMES, PRESETS, type PresetName } from '../../core/presets.ts';
import { knobsOf } from '../../core/reconcile.ts';
import { seconds } from '../../core/time.ts';
import { addressOf } from '../../test/plane-bench.ts';
import { clusterSettings } from './cluster-settings.ts';
import { clusterTable } from './cluster-table.ts';
import { CLUSTER } from './schema.ts';
import { clusterOf, listenerPatch } from './settings.ts';

const BOUNDS = { descriptorLimit: 1_000, maxConnections: 500, bufferSize: 16_393 };

describe('the table of a cluster', () => {
  test('read again gives the same settings, whatever was written', () => {
    fc.assert(
      fc.property(udpTables, fc.constantFrom('HRW', 'MAGLEV', 'RANDOM'), (udp, policy) => {
        const knobs = clusterOf('c', { load_balancing: policy, udp }, undefined);
        const table = { ...clusterTable(knobs), protocol: 'tcp', frontends: [] };
        const again = JSON.parse(JSON.stringify(table));
        expect(knobsOf(clusterSettings({ id: 'c', table: CLUSTER.parse(again) }))).toEqual(knobs);
      }),
      { numRuns: 500 },
    );
  });

  test('of a probe payload keeps every character', () => {
    const health = { mode: 'UDP_PROBE', udp_probe_payload: '\ufeffping\n\u0000é' };
    const knobs = clusterOf('c', { udp: { health } }, undefined);
    expect(clusterTable(knobs)).toMatchObject({ udp: { health } });
  });
});

describe('the settings of a command', () => {
  test('change what they name of a cluster, and nothing else', () => {
    const before = clusterOf(
      'c',
      { load_balancing: 'HRW', udp: { responses: 3, limits: { deny: ['10.0.0.0/8'] } } },
      undefined,
    );
    expect(clusterOf('c', {}, before)).toEqual(before);
    const after = clusterOf(
      'c',
      { udp: { requests: 2, limits: { datagrams_per_second: 9 } } },
      before,
    );
    expect(after).toMatchObject({ ...before, requests: 2, rates: { datagramsPerSecond: 9 } });
    expect(after.rates.deny).toEqual(before.rates.deny);
  });

  test('with a preset change what that speaks of, but for what they name beside it', () => {
    const before = clusterOf('c', { udp: { preset: 'sip', responses: 7, requests: 5 } }, undefined);
    const after = clusterOf('c', { udp: { preset: 'dns', responses: 2 } }, before);
    const said = Object.entries(PRESETS.dns).map(([key, { value }]) => [key, value]);
    expect(after).toEqual({ ...before, ...Object.fromEntries(said), responses: 2 });
    expect(after.requests).toBe(5);
  });

  test('change what they name of a listener, within the bounds of the file', () => {
    expect(listenerPatch({}, BOUNDS)).toEqual({});
    expect(
      listenerPatch({ front_timeout: 7, max_flows: 0, max_rx_datagram_size: 60_000 }, BOUNDS),
    ).toEqual({ frontTimeout: seconds(7), maxFlows: 500, maxRxDatagramSize: 16_393 });
    const all = {
      front_timeout: 1,
      back_timeout: 2,
      max_rx_datagram_size: 3,
      max_flows: 4,
      rcvbuf: 5,
      sndbuf: 6,
      bind_retry_seconds: 7,
    };
    const patch = listenerPatch(all, BOUNDS);
    expect(Object.keys(patch)).toHaveLength(Object.keys(all).length);
  });
});

const flag = fc.boolean();
const count = fc.constantFrom(0, 1, 20, 0xffff_ffff);

const limits = fc.record(
  {
    new_flows_per_second: fc.constantFrom(1, 20),
    new_flows_burst: fc.constantFrom(1, 40),
    datagrams_per_second: count,
    sketch_columns: fc.constantFrom(256, 16_384),
    allow: fc.constant(['10.0.0.0/8', '2001:db8::/32']),
    deny: fc.constant(['10.1.0.0/16']),
    amplification_factor: count,
    amplification_floor: fc.constantFrom(0, 1_232),
  },
  { requiredKeys: ['new_flows_per_second'] },
);

const health = fc.record(
  {
    mode: fc.constantFrom('HEALTH_OFF', 'TCP_PROBE', 'UDP_PROBE'),
    udp_probe_payload: fc.constantFrom('ping', 'é\n'),
    tcp_port: fc.constantFrom(1, 65_535),
    rise: count,
    fail_open: flag,
    probe_interval_seconds: fc.constantFrom(0, 3),
  },
  { requiredKeys: ['udp_probe_payload'] },
);

const udpTables = fc.record(
  {
    preset: fc.constantFrom<PresetName[]>(...PRESET_NAMES),
    affinity_key: fc.constantFrom('SOURCE_IP', 'SOURCE_IP_PORT'),
    responses: count,
    responses_per_request: flag,
    requests: count,
    requests_linger: flag,
    late_reply_grace_ms: count,
    send_proxy_protocol: flag,
    proxy_protocol_every_datagram: flag,
    allow_backend_as_client: flag,
    subnet_prefix_ipv6: fc.constantFrom(0, 56),
    exchange: fc.constantFrom('request-response', 'one-way'),
    passive_health: flag,
    on_backend_down: fc.constantFrom('pin', 'rebind', 'close'),
    upstream_source: fc.constant(['10.0.0.5', 'fe80::1%3']),
    health,
    limits,
  },
  { requiredKeys: [] },
);

test('an address of a table is text', () => {
  const knobs = clusterOf('c', { udp: { upstream_source: ['10.0.0.5'] } }, undefined);
  expect(knobs.upstreamSources).toEqual([{ ...addressOf('10.0.0.5:1'), port: 0 }]);
});
