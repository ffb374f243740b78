/** Legal and hurts: each warning where it belongs, and silence where it does not. */
import { expect, test } from 'vitest';
import type { Environment } from './environment.ts';
import { parseConfig } from './parse.ts';

test('a sound configuration has no problems at all', () => {
  expect(warnings({})).toEqual([]);
});

test('the PROXY header on the first datagram only is a warning, on every one it is not', () => {
  expect(warnings({ udp: 'send_proxy_protocol = true' })).toEqual([
    expect.stringMatching(/^clusters\.c\.udp\.proxy_protocol_every_datagram: .*2026-04-27/),
  ]);
  const every = 'send_proxy_protocol = true\nproxy_protocol_every_datagram = true';
  expect(warnings({ udp: every })).toEqual([]);
});

test('every datagram without the PROXY header itself has no effect', () => {
  expect(warnings({ udp: 'proxy_protocol_every_datagram = true' })).toEqual([
    expect.stringContaining('no effect without send_proxy_protocol'),
  ]);
});

test('a cap on responses is a warning where DNS is served, not for NTP', () => {
  expect(warnings({ udp: 'responses = 1' })).toEqual([expect.stringContaining('A and AAAA')]);
  expect(warnings({ udp: 'responses = 2\nexchange = "request-response"' })).toEqual([
    expect.stringContaining('the flow ends with answer 2, the next is lost'),
  ]);
  for (const moot of ['responses_per_request = true', 'preset = "dns"', 'exchange = "one-way"']) {
    expect(warnings({ udp: `responses = 1\n${moot}` })).toEqual([]);
  }
  expect(warnings({ udp: 'preset = "dns"\nresponses_per_request = false' })).toEqual([
    expect.stringContaining('A and AAAA'),
  ]);
  const ntp = { listener: '127.0.0.1:123', backend: '10.0.0.1:123', udp: 'responses = 1' };
  expect(warnings(ntp)).toEqual([]);
});

test('a cap on requests is a warning, but not for syslog', () => {
  expect(warnings({ udp: 'requests = 1' })).toEqual([expect.stringContaining('last request')]);
  expect(warnings({ listener: '127.0.0.1:514', udp: 'requests = 1' })).toEqual([]);
  for (const moot of ['requests_linger = true', 'preset = "dns"', 'exchange = "one-way"']) {
    expect(warnings({ udp: `requests = 1\n${moot}` })).toEqual([]);
  }
});

test.each([53, 123, 161, 514, 1812, 1813])('30 s are enough on port %i', (port) => {
  expect(warnings({ listener: `127.0.0.1:${port}` })).toEqual([]);
});

test('an idle time below the 120 s of RFC 4787 is a warning on any other port', () => {
  const port = { listener: '127.0.0.1:51820' };
  expect(warnings({ ...port, keys: 'front_timeout = 119\nback_timeout = 300' })).toEqual([
    expect.stringMatching(/^listeners\[0\]\.front_timeout: 119 s .* RFC 4787/),
  ]);
  expect(warnings({ ...port, keys: 'front_timeout = 300\nback_timeout = 60' })).toEqual([
    expect.stringMatching(/^listeners\[0\]\.back_timeout: 60 s/),
  ]);
  expect(warnings({ ...port, keys: 'front_timeout = 120\nback_timeout = 120' })).toEqual([]);
  expect(fixes({ ...port, keys: 'front_timeout = 119\nback_timeout = 120' })).toEqual([
    expect.stringMatching(/^write front_timeout = 120, unless/),
  ]);
  expect(fixes(port)).toEqual([
    expect.stringMatching(/^write front_timeout = 120 and back_timeout = 120, unless/),
  ]);
  expect(warnings({ ...port, keys: 'front_timeout = 0\nback_timeout = 300' })).toEqual([
    expect.stringContaining('idle at once'),
  ]);
});

test('an idle time is judged by the preset, which knows the protocol, before the port', () => {
  const at = (preset: string, keys = ''): readonly string[] =>
    warnings({ listener: '127.0.0.1:9999', udp: `preset = "${preset}"`, keys });
  expect(at('dns')).toEqual([]);
  expect(at('dns', 'front_timeout = 10')).toEqual([]);
  expect(at('quic')).toEqual([]);
  expect(at('quic', 'back_timeout = 30')).toEqual([
    expect.stringMatching(/^listeners\[0\]\.back_timeout: 30 s .* RFC 4787/),
  ]);
  const dnsPort = { listener: '127.0.0.1:53', udp: 'preset = "wireguard"' };
  expect(warnings({ ...dnsPort, keys: 'front_timeout = 30' })).toEqual([
    expect.stringContaining('RFC 4787'),
  ]);
  expect(warnings({ listener: '127.0.0.1:9999' })).toEqual([expect.stringContaining('30 s')]);
});

test.each([
  ['responses_per_request = true', 'responses_per_request'],
  ['requests_linger = true', 'requests_linger'],
  ['late_reply_grace_ms = 5', 'late_reply_grace_ms'],
  ['requests = 1\nexchange = "one-way"\nlate_reply_grace_ms = 5', 'late_reply_grace_ms'],
])('a key that changes nothing is a warning: %s', (udp, key) => {
  expect(warnings({ udp })).toEqual([expect.stringMatching(`^clusters.c.udp.${key}: no effect`)]);
});

test('a grace for late replies has an effect where replies or requests are counted', () => {
  const grace = 'late_reply_grace_ms = 5\n';
  expect(warnings({ udp: `${grace}preset = "dns"` })).toEqual([]);
  expect(warnings({ udp: `${grace}requests = 1\nrequests_linger = true` })).toEqual([]);
});

test('what a lost backend causes is a warning where nobody could notice the loss', () => {
  const blind = 'passive_health = false\n';
  const never = expect.stringMatching(/^clusters\.c\.udp\.on_backend_down: ".*" never happens/);
  expect(warnings({ udp: `${blind}on_backend_down = "rebind"` })).toEqual([never]);
  expect(warnings({ udp: `${blind}on_backend_down = "close"` })).toEqual([never]);
  expect(warnings({ udp: `${blind}preset = "dns"` })).toEqual([never]);
  expect(warnings({ udp: `${blind}preset = "dns"\nhealth.mode = "HEALTH_OFF"` })).toEqual([never]);
  expect(warnings({ udp: `${blind}preset = "dns"\nhealth.mode = "TCP_PROBE"` })).toEqual([]);
  expect(warnings({ udp: `${blind}on_backend_down = "pin"` })).toEqual([]);
  expect(warnings({ udp: blind })).toEqual([]);
  expect(warnings({ udp: 'on_backend_down = "close"' })).toEqual([]);
});

test('HRW over more than a thousand backends is a warning, MAGLEV is not', () => {
  const of = (count: number, balancing: string): readonly string[] =>
    warnings({
      backends: Array.from(
        { length: count },
        (_, index) => `{ address = "10.0.${index >> 8}.${index & 255}:53" }`,
      ).join(', '),
      cluster: `load_balancing = "${balancing}"`,
    });
  expect(of(1_000, 'HRW')).toEqual([]);
  expect(of(1_001, 'HRW')).toEqual([
    expect.stringMatching(/^clusters\.c\.load_balancing: HRW scores all 1001 backends/),
  ]);
  expect(of(1_001, 'MAGLEV')).toEqual([]);
});

test('a sketch that a small flood fills is a warning that says how wide it should be', () => {
  const of = (limits: string): unknown =>
    parseConfig(toml({ udp: `limits = { ${limits} }` })).problems.map(({ path, fix }) => [
      path,
      fix,
    ]);
  const path = 'clusters.c.udp.limits.sketch_columns';
  expect(of('datagrams_per_second = 10, sketch_columns = 1024')).toEqual([
    [path, 'write sketch_columns = 2048'],
  ]);
  expect(of('datagrams_per_second = 10, sketch_columns = 2048')).toEqual([]);
  expect(of('new_flows_per_second = 1, datagrams_per_second = 100')).toEqual([
    [path, 'write sketch_columns = 32768'],
  ]);
  expect(of('new_flows_per_second = 1000000, sketch_columns = 256')).toEqual([]);
  expect(of('sketch_columns = 256')).toEqual([]);
});

test('an empty list of those let in, and a floor without a factor, are warnings', () => {
  expect(warnings({ udp: 'limits = { allow = [], deny = [] }' })).toEqual([
    'clusters.c.udp.limits.allow: an empty list lets everybody in',
  ]);
  const off = 'limits = { amplification_factor = 0, amplification_floor = 9 }';
  expect(warnings({ udp: off })).toEqual([
    expect.stringMatching(/^clusters\.c\.udp\.limits\.amplification_floor: no effect/),
  ]);
});

test('a backend that no source can reach is a warning, and a source that is not ours', () => {
  const backends = '{ address = "10.0.0.1:53" }, { address = "[2001:db8::1]:53" }';
  const udp = 'upstream_source = ["10.0.0.5", "127.0.0.9"]';
  const at = 'clusters.c.udp.upstream_source';
  const family = `${at}: no IPv6 address for 2001:db8::1: the kernel chooses there`;
  expect(warnings({ udp, backends })).toEqual([family]);
  expect(warnings({ udp, backends }, { localAddresses: ['10.0.0.5', '::1'] })).toEqual([family]);
  expect(warnings({ udp }, { localAddresses: ['10.0.0.6'] })).toEqual([
    `${at}[0]: 10.0.0.5 is no address of this machine: no socket can be bound to it`,
  ]);
  const both = 'upstream_source = ["10.0.0.5", "2001:db8::5"]';
  expect(warnings({ udp: both, backends })).toEqual([]);
});

test('more flows over all listeners than one process should have are an error', () => {
  const listener = (port: number, keys: string): string =>
    `[[listeners]]\nprotocol = "udp"\naddress = "127.0.0.1:${port}"\n${keys}\n`;
  const of = (one: string, other: string): unknown =>
    parseConfig(listener(123, one) + listener(53, other))
      .problems.filter(({ severity }) => severity === 'error')
      .map(({ path, problem, fix }) => [path, problem, fix]);
  expect(of('max_flows = 4194303', 'max_flows = 1')).toEqual([]);
  expect(of('max_flows = 4194304', 'max_flows = 1')).toEqual([
    [
      'listeners',
      '4194305 flows over all listeners are more than the 4194304 of a process',
      'write max_flows = 2097152 or less in each',
    ],
  ]);
});

test('a receive size of zero, or beyond any datagram, is a warning', () => {
  expect(warnings({ keys: 'max_rx_datagram_size = 0' })).toEqual([
    expect.stringContaining('dropped as too long'),
  ]);
  const { problems } = parseConfig(
    `buffer_size = 0\n${toml({ keys: 'max_rx_datagram_size = 65508' })}`,
  );
  expect(problems.map(({ problem }) => problem)).toEqual([expect.stringContaining('65507')]);
});

test('more flows than ephemeral ports is a warning', () => {
  expect(warnings({ keys: 'max_flows = 28233' }, { ephemeralPorts: 28_232 })).toEqual([
    expect.stringContaining('28232 ephemeral ports'),
  ]);
  expect(warnings({ keys: 'max_flows = 28232' }, { ephemeralPorts: 28_232 })).toEqual([]);
  const udp = 'upstream_source = ["10.0.0.5", "10.0.0.6"]';
  expect(warnings({ keys: 'max_flows = 56465', udp }, { ephemeralPorts: 28_232 })).toEqual([
    expect.stringContaining('56464 ephemeral ports'),
  ]);
  expect(warnings({ keys: 'max_flows = 56464', udp }, { ephemeralPorts: 28_232 })).toEqual([]);
});

test('more flows than one table holds is a warning, and clamped', () => {
  expect(warnings({ keys: 'max_flows = 4194305' })).toEqual([expect.stringContaining('clamped')]);
});

test('listeners that together want more descriptors than there are get a warning', () => {
  const second = '[[listeners]]\nprotocol = "udp"\naddress = "127.0.0.1:123"\n';
  const text = (toml({}) + second).replace(
    'frontends = [',
    'frontends = [{ address = "127.0.0.1:123" }, ',
  );
  const found = (descriptorLimit: number): readonly string[] =>
    parseConfig(text, { descriptorLimit }).problems.map(({ path }) => path);
  expect(found(1_000)).toEqual(['listeners']);
  expect(found(100_000)).toEqual([]);
});

test('a wildcard listener is a warning unless the machine is known to have one address', () => {
  const listener = '0.0.0.0:53';
  const message = expect.stringContaining('replies may leave from another');
  const of = (...localAddresses: string[]): Environment => ({ localAddresses });
  expect(warnings({ listener })).toEqual([message]);
  expect(warnings({ listener }, of('127.0.0.1', '192.0.2.1', '192.0.2.2'))).toEqual([message]);
  expect(warnings({ listener }, of('127.0.0.1', '192.0.2.1', 'fe80::1', '2001:db8::1'))).toEqual(
    [],
  );
  expect(warnings({ listener: '[::]:53' }, of('192.0.2.1', 'fe80::1', '2001:db8::1'))).toEqual([
    message,
  ]);
});

test('a wildcard listener is none on batched system calls, which know the address that was asked', () => {
  const text = toml({ listener: '0.0.0.0:53' });
  expect(parseConfig(text).problems).toHaveLength(1);
  expect(parseConfig(`io = "mmsg"\n${text}`).problems).toEqual([]);
});

test('a listener that no cluster names is a warning', () => {
  const lonely = '[[listeners]]\nprotocol = "udp"\naddress = "127.0.0.1:123"\n';
  const { problems } = parseConfig(toml({}) + lonely);
  expect(problems.map(({ path, problem }) => `${path}: ${problem}`)).toEqual([
    expect.stringMatching(/^listeners\[1\]\.address: no cluster/),
  ]);
});

test('weight 0 is a warning', () => {
  expect(warnings({ backends: '{ address = "10.0.0.1:53", weight = 0 }' })).toEqual([
    expect.stringContaining('counts as 1 under HRW and MAGLEV'),
  ]);
});

test('a cluster of backups alone, or without backends, is a warning', () => {
  expect(warnings({ backends: '{ address = "10.0.0.1:53", backup = true }' })).toEqual([
    expect.stringContaining('every backend is a backup'),
  ]);
  expect(warnings({ backends: '' })).toEqual([expect.stringContaining('NoBackend')]);
});

test('a backend address or id that stands twice in a cluster is a warning', () => {
  const one = '{ address = "10.0.0.1:53", backend_id = "x" }';
  expect(warnings({ backends: `${one}, { address = "10.0.0.1:53" }` })).toEqual([
    expect.stringMatching(/^clusters\.c\.backends\[1\]\.address: .*stands twice/),
  ]);
  expect(warnings({ backends: `${one}, { address = "10.0.0.2:53", backend_id = "x" }` })).toEqual([
    expect.stringMatching(/^clusters\.c\.backends\[1\]\.backend_id: /),
  ]);
});

test('the same frontend twice in a cluster is a warning', () => {
  const text = toml({}).replace('frontends = [', 'frontends = [{ address = "127.0.0.1:53" }, ');
  expect(parseConfig(text).problems.map(({ severity, path }) => `${severity} ${path}`)).toEqual([
    'warning clusters.c.frontends[1].address',
  ]);
});

test.each([
  ['mapped', '[::ffff:10.0.0.1]:53', 'hashed as 10.0.0.1:53'],
  ['unspecified', '0.0.0.0:99', 'loopback'],
  ['multicast', '224.0.0.251:5353', 'multicast or broadcast'],
  ['broadcast', '255.255.255.255:53', 'multicast or broadcast'],
])('a backend whose address is %s is a warning', (_, backend, message) => {
  expect(warnings({ backend })).toEqual([expect.stringContaining(message)]);
});

test('CONNECTION_TIME is a warning where nothing measures one', () => {
  const cluster = 'load_balancing = "LEAST_LOADED"\nload_metric = "CONNECTION_TIME"';
  expect(warnings({ cluster })).toEqual([expect.stringContaining('live flows are compared')]);
  expect(warnings({ cluster: cluster.replace('LEAST_LOADED', 'HRW') })).toEqual([]);
});

test('listeners that are not to be activated are a warning', () => {
  const { problems } = parseConfig(`activate_listeners = false\n${toml({})}`);
  expect(problems.map(({ severity, path }) => `${severity} ${path}`)).toEqual([
    'warning activate_listeners',
  ]);
});

test.each([
  [
    'mode = "UDP_PROBE", udp_probe_payload = "p", udp_probe_expect_reply = false',
    'udp_probe_expect_reply: silence says nothing: a dead host, or a firewall that drops, counts as up',
  ],
  [
    'mode = "UDP_PROBE", udp_probe_payload = "p", tcp_port = 53',
    'tcp_port: no effect: a UDP probe goes to the port of the backend',
  ],
  [
    'mode = "TCP_PROBE", udp_probe_payload = "p"',
    'udp_probe_payload: no effect: a TCP probe sends nothing',
  ],
])('a health check that cannot do what it seems to: %s', (health, warning) => {
  expect(warnings({ udp: `health = { ${health} }` })).toEqual([`clusters.c.udp.health.${warning}`]);
});

test('every warning says how to mend it', () => {
  const text =
    'activate_listeners = false\nunknown_thing = 1\n' +
    toml({
      listener: '0.0.0.0:9999',
      keys: 'max_flows = 4294967295\nmax_rx_datagram_size = 99999',
      backends: '{ address = "[::ffff:10.0.0.1]:53", weight = 0, backup = true }',
      udp:
        'responses = 1\nrequests = 1\nsend_proxy_protocol = true\nhealth = { rise = 0, udp_probe_payload = "p" }\n' +
        'late_reply_grace_ms = 1\nupstream_source = ["2001:db8::5"]\n' +
        'limits = { allow = [], new_flows_per_second = 1, amplification_factor = 0, amplification_floor = 1 }',
    });
  const { problems } = parseConfig(text, { descriptorLimit: 10, ephemeralPorts: 10 });
  expect(problems.length).toBeGreaterThan(15);
  for (const { severity, fix } of problems) {
    expect(severity).toBe('warning');
    expect(fix).toMatch(/\w/);
  }
});

interface Parts {
  listener?: string;
  keys?: string;
  cluster?: string;
  backend?: string;
  backends?: string;
  udp?: string;
}

function toml(parts: Parts): string {
  const listener = parts.listener ?? '127.0.0.1:53';
  const backends = parts.backends ?? `{ address = "${parts.backend ?? '10.0.0.1:53'}" }`;
  return `${[
    '[[listeners]]',
    'protocol = "udp"',
    `address = "${listener}"`,
    parts.keys ?? '',
    '[clusters.c]',
    'protocol = "tcp"',
    `frontends = [{ address = "${listener}" }]`,
    `backends = [${backends}]`,
    parts.cluster ?? '',
    '[clusters.c.udp]',
    parts.udp ?? '',
  ].join('\n')}\n`;
}

/** The problems of a file that must have no errors. */
function warnings(parts: Parts, environment: Environment = {}): readonly string[] {
  const { config, problems } = parseConfig(toml(parts), environment);
  expect(config).toBeDefined();
  return problems.map(({ path, problem }) => `${path}: ${problem}`);
}

function fixes(parts: Parts): readonly (string | undefined)[] {
  return parseConfig(toml(parts)).problems.map(({ fix }) => fix);
}
