/** Laws of the parser: nothing throws, every problem says where, and what is valid means what it says. */
import * as fc from 'fast-check';
import { stringify } from 'smol-toml';
import { expect, test } from 'vitest';
import { formatAddress, formatIp, ipv4, ipv6, type Address } from '../../core/address.ts';
import { AMPLIFICATION_OFF } from '../../core/amplification.ts';
import { formatCidr, parseCidr } from '../../core/cidr.ts';
import { LIMITS, type Config, type SourceRates } from '../../core/config.ts';
import type { HealthSettings } from '../../core/health/settings.ts';
import { milliseconds, seconds } from '../../core/time.ts';
import { parseConfig } from './parse.ts';
import { GLOBAL_KEYS, TABLES } from './schema.ts';

test('arbitrary bytes never throw, and are refused with a place', () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), refusesWithAPlace));
});

test('arbitrary text never throws, and is refused with a place', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom(...'[]{}=.,"\'\\#\n a1'.split('')) }),
  );
  fc.assert(fc.property(text, refusesWithAPlace));
});

test('arbitrary values under the keys of the grammar never throw', () => {
  const keys = [...new Set(TABLES.flatMap(({ shape }) => Object.keys(shape)))];
  const key = fc.oneof(fc.constantFrom(...keys, '__proto__', 'constructor'), fc.string());
  const { table } = fc.letrec<{ table: Record<string, unknown>; value: unknown }>((tie) => ({
    table: fc.dictionary(key, tie('value'), { maxKeys: 6 }),
    value: fc.oneof(
      { depthSize: 'small' },
      fc.integer(),
      fc.double({ noNaN: true }),
      fc.boolean(),
      fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(253_402_300_799_000) }),
      fc.constantFrom('udp', 'tcp', 'http', '127.0.0.1:53', '0.0.0.0:53', '[::]:53', 'HRW', ''),
      tie('table'),
      fc.array(tie('table'), { maxLength: 3 }),
    ),
  }));
  const listener = fc.record({ protocol: fc.constant('udp'), address: fc.constant('0.0.0.0:53') });
  const document = fc.record(
    {
      ...Object.fromEntries(GLOBAL_KEYS.map((name) => [name, fc.integer()])),
      listeners: fc.array(fc.oneof(listener, table), { maxLength: 3 }),
      clusters: fc.dictionary(fc.string(), table, { maxKeys: 3 }),
    },
    { requiredKeys: [] },
  );
  fc.assert(fc.property(document, (value) => saysWhere(parseConfig(stringify(value)))));
});

test('a valid configuration means what it says, whatever its values', () => {
  fc.assert(
    fc.property(configs(), fc.integer({ min: 1, max: 1_000_000 }), (config, descriptorLimit) => {
      const parsed = parseConfig(write(config), { descriptorLimit });
      expect(parsed.problems.filter(({ severity }) => severity === 'error')).toEqual([]);
      expect(parsed.config).toEqual(config);
    }),
  );
});

function refusesWithAPlace(input: string | Uint8Array): void {
  const parsed = parseConfig(input);
  expect(parsed.config).toBeUndefined();
  expect(parsed.problems.length).toBeGreaterThan(0);
  saysWhere(parsed);
}

function saysWhere({ config, problems }: ReturnType<typeof parseConfig>): void {
  const failed = problems.some(({ severity }) => severity === 'error');
  expect(config === undefined).toBe(failed);
  for (const { severity, path, line, problem, fix } of problems) {
    expect(path !== '' || line !== undefined).toBe(true);
    expect(problem).not.toBe('');
    // A file that is no TOML has no obvious remedy; every other error has one.
    if (severity === 'error' && path !== '(file)') expect(fix, problem).toBeDefined();
  }
}

/** Valid configurations: each listener has its own address, and no backend is a listener. */
function configs(): fc.Arbitrary<Config> {
  const u32 = fc.integer({ min: 0, max: 0xffff_ffff });
  const port = fc.integer({ min: 1, max: 65_535 });
  const bytes = fc.integer({ min: 1, max: 0x3fff_ffff });
  const address = (word: number): fc.Arbitrary<Address> =>
    fc.oneof(
      port.map((number) => ipv4(word, number)),
      fc.tuple(u32, port).map(([low, number]) => ipv6([0x20010db8, word, 1, low], number)),
    );
  const id = fc
    .oneof(
      fc.constantFrom('dns', '1', 'a.b', 'with "quotes"', 'é'),
      fc.string({ unit: 'grapheme', minLength: 1 }),
    )
    .filter((name) => name !== '__proto__' && name !== 'constructor');
  const backend = fc.record({
    id: fc.string({ minLength: 1 }),
    address: address(0x0a000001),
    weight: fc.integer({ min: 0, max: 255 }),
    backup: fc.boolean(),
  });
  const fate = fc.constantFrom('pin', 'rebind', 'close');
  const cluster = fc.record({
    responsesPerRequest: fc.boolean(),
    requestsLinger: fc.boolean(),
    lateReplyGrace: u32.map(milliseconds),
    forwardEmptyDatagrams: fc.boolean(),
    amplification: fc.oneof(fc.constant(AMPLIFICATION_OFF), fc.record({ factor: u32, floor: u32 })),
    onBackendDown: fate,
    onBackendRemoved: fate,
    upstreamSources: fc.uniqueArray(
      fc.oneof(
        u32.filter((word) => word > 0 && word < 0xe0000000).map((word) => ipv4(word, 0)),
        u32.map((low) => ipv6([0x20010db8, 0, 1, low], 0)),
      ),
      { selector: formatIp, maxLength: 64 },
    ),
    rates: sourceRates(),
    frontTimeout: fc.constant(undefined),
    backTimeout: fc.constant(undefined),
    cluster: id,
    affinityWithPort: fc.boolean(),
    responses: u32,
    requests: u32,
    sendProxyProtocol: fc.boolean(),
    proxyProtocolEveryDatagram: fc.boolean(),
    maxFlowsPerIp: u32,
    maxFlowsPerSubnet: u32,
    subnetPrefixIpv4: fc.integer({ min: 0, max: 32 }),
    subnetPrefixIpv6: fc.integer({ min: 0, max: 128 }),
    loadBalancing: fc.constantFrom(
      'ROUND_ROBIN',
      'RANDOM',
      'LEAST_LOADED',
      'POWER_OF_TWO',
      'HRW',
      'MAGLEV',
    ),
    rejectClientHeader: fc.boolean(),
    allowBackendAsClient: fc.boolean(),
    loadMetric: fc.constantFrom('CONNECTIONS', 'REQUESTS', 'CONNECTION_TIME'),
    backends: fc.array(backend, { maxLength: 4 }),
    exchange: fc.constantFrom(undefined, 'request-response', 'one-way'),
    passive: fc.boolean(),
    health: fc.option(healthTables(), { nil: undefined }),
  });
  const listener = fc.record({
    address: fc.integer({ min: 0x7f000001, max: 0x7fffffff }).chain(address),
    frontTimeout: fc.option(u32.map(seconds), { nil: undefined }),
    backTimeout: fc.option(u32.map(seconds), { nil: undefined }),
    maxRxDatagramSize: fc.integer({ min: 0, max: 65_507 }),
    maxFlows: fc.integer({ min: 1, max: LIMITS.flowsCeiling >> 3 }),
    receiveBuffer: fc.option(bytes, { nil: undefined }),
    sendBuffer: fc.option(bytes, { nil: undefined }),
    bindRetry: fc.option(fc.integer({ min: 1, max: 0xffff_ffff }).map(seconds), { nil: undefined }),
    ipv6Only: fc.constant(false),
    cluster: fc.constant(undefined),
  });
  return fc
    .record({
      grace: u32.map(seconds),
      clusters: fc.uniqueArray(cluster, { selector: (one) => one.cluster, maxLength: 4 }),
      listeners: fc.uniqueArray(listener, {
        selector: (one) => formatAddress(one.address),
        minLength: 4,
        maxLength: 6,
      }),
    })
    .map(({ grace, clusters, listeners }) => ({
      grace,
      // The engine sorts keys that look like integers to the front.
      clusters: inFileOrder(clusters),
      listeners: listeners.map((one, index) => ({ ...one, cluster: clusters[index]?.cluster })),
    }));
}

/** A burst that is not written is the rate. */
function sourceRates(): fc.Arbitrary<SourceRates> {
  const rate = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 0xffff_ffff }));
  const burst = fc.option(fc.integer({ min: 1, max: 0xffff_ffff }), { nil: undefined });
  const block = fc
    .tuple(fc.constantFrom('10.0.0.0/', '192.0.0.0/'), fc.integer({ min: 8, max: 32 }))
    .map(([base, bits]) => parseCidr(`${base}${bits}`))
    .map((parsed) => {
      if (!parsed.ok) throw new Error(parsed.problem);
      return parsed.cidr;
    });
  return fc
    .record({
      newFlowsPerSecond: rate,
      newFlowsBurst: burst,
      datagramsPerSecond: rate,
      datagramsBurst: burst,
      columns: fc.integer({ min: 8, max: 16 }).map((power) => 2 ** power),
      allow: fc.array(block, { maxLength: 3 }),
      deny: fc.array(block, { maxLength: 3 }),
    })
    .map((drawn) => ({
      ...drawn,
      newFlowsBurst: burstOf(drawn.newFlowsPerSecond, drawn.newFlowsBurst),
      datagramsBurst: burstOf(drawn.datagramsPerSecond, drawn.datagramsBurst),
    }));
}

function burstOf(rate: number, burst: number | undefined): number {
  return rate === 0 ? 0 : (burst ?? rate);
}

function writeLimits({ rates, amplification }: Config['clusters'][number]): object {
  return {
    new_flows_per_second: rates.newFlowsPerSecond,
    ...(rates.newFlowsBurst === rates.newFlowsPerSecond
      ? {}
      : { new_flows_burst: rates.newFlowsBurst }),
    datagrams_per_second: rates.datagramsPerSecond,
    ...(rates.datagramsBurst === rates.datagramsPerSecond
      ? {}
      : { datagrams_burst: rates.datagramsBurst }),
    sketch_columns: rates.columns,
    allow: rates.allow.map(formatCidr),
    deny: rates.deny.map(formatCidr),
    ...(amplification === AMPLIFICATION_OFF
      ? {}
      : {
          amplification_factor: amplification.factor,
          amplification_floor: amplification.floor,
        }),
  };
}

function inFileOrder(clusters: Config['clusters']): Config['clusters'] {
  const byName = Object.fromEntries(clusters.map((one) => [one.cluster, one]));
  return Object.values(byName);
}

function healthTables(): fc.Arbitrary<HealthSettings> {
  const time = fc.integer({ min: 1, max: 0xffff_ffff });
  return fc.record({
    mode: fc.constantFrom('HEALTH_OFF', 'TCP_PROBE', 'UDP_PROBE'),
    tcpPort: fc.option(fc.integer({ min: 1, max: 65_535 }), { nil: undefined }),
    rise: time,
    fall: time,
    failOpen: fc.boolean(),
    udpProbePayload: fc
      .string({ unit: 'grapheme', minLength: 1 })
      .map((text) => new TextEncoder().encode(text)),
    expectReply: fc.boolean(),
    probeInterval: time.map(seconds),
    probeTimeout: time.map(seconds),
  });
}

function writeHealth(health: HealthSettings): Record<string, unknown> {
  return {
    mode: health.mode,
    ...(health.tcpPort === undefined ? {} : { tcp_port: health.tcpPort }),
    rise: health.rise,
    fall: health.fall,
    fail_open: health.failOpen,
    udp_probe_payload: new TextDecoder('utf-8', { ignoreBOM: true }).decode(health.udpProbePayload),
    udp_probe_expect_reply: health.expectReply,
    probe_interval_seconds: health.probeInterval / 1_000_000,
    probe_timeout_seconds: health.probeTimeout / 1_000_000,
  };
}

/** A file that says `config`, written from the manual rather than from the parser. */
function write(config: Config): string {
  return stringify({
    grace: config.grace / 1_000_000,
    buffer_size: 0,
    listeners: config.listeners.map((one) => ({
      protocol: 'udp',
      address: formatAddress(one.address),
      ...(one.frontTimeout === undefined ? {} : { front_timeout: one.frontTimeout / 1_000_000 }),
      ...(one.backTimeout === undefined ? {} : { back_timeout: one.backTimeout / 1_000_000 }),
      ...(one.receiveBuffer === undefined ? {} : { rcvbuf: one.receiveBuffer }),
      ...(one.sendBuffer === undefined ? {} : { sndbuf: one.sendBuffer }),
      ...(one.bindRetry === undefined ? {} : { bind_retry_seconds: one.bindRetry / 1_000_000 }),
      max_rx_datagram_size: one.maxRxDatagramSize,
      max_flows: one.maxFlows,
    })),
    clusters: Object.fromEntries(
      config.clusters.map((one) => [
        one.cluster,
        {
          protocol: 'tcp',
          frontends: config.listeners
            .filter(({ cluster }) => cluster === one.cluster)
            .map(({ address }) => ({ address: formatAddress(address) })),
          backends: one.backends.map(({ id, address, weight, backup }) => ({
            backend_id: id,
            address: formatAddress(address),
            weight,
            backup,
          })),
          load_balancing: one.loadBalancing,
          load_metric: one.loadMetric,
          max_connections_per_ip: one.maxFlowsPerIp,
          max_connections_per_subnet: one.maxFlowsPerSubnet,
          udp: {
            affinity_key: one.affinityWithPort ? 'SOURCE_IP_PORT' : 'SOURCE_IP',
            responses: one.responses,
            responses_per_request: one.responsesPerRequest,
            requests: one.requests,
            requests_linger: one.requestsLinger,
            late_reply_grace_ms: one.lateReplyGrace / 1_000,
            forward_empty_datagrams: one.forwardEmptyDatagrams,
            on_backend_down: one.onBackendDown,
            on_backend_removed: one.onBackendRemoved,
            upstream_source: one.upstreamSources.map(formatIp),
            limits: writeLimits(one),
            send_proxy_protocol: one.sendProxyProtocol,
            proxy_protocol_every_datagram: one.proxyProtocolEveryDatagram,
            subnet_prefix_ipv4: one.subnetPrefixIpv4,
            subnet_prefix_ipv6: one.subnetPrefixIpv6,
            passive_health: one.passive,
            ...(one.exchange === undefined ? {} : { exchange: one.exchange }),
            ...(one.health === undefined ? {} : { health: writeHealth(one.health) }),
            reject_client_header: one.rejectClientHeader,
            allow_backend_as_client: one.allowBackendAsClient,
          },
        },
      ]),
    ),
  });
}
