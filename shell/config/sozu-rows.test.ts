/** Each row of spec §7.3, with our stated result where it differs (doc/CONFIGURE.md, "What differs from Sōzu"). */
import { expect, test } from 'vitest';
import { HEALTH_DEFAULTS } from '../../core/health/settings.ts';
import { parseConfig } from './parse.ts';
import type { Problem } from './problem.ts';

test.each([
  ['a listener', { listener: 'colour = 1' }, 'listeners[0].colour'],
  ['a cluster', { cluster: 'colour = 1' }, 'clusters.c.colour'],
  ['a frontend', { frontend: 'colour = 1' }, 'clusters.c.frontends[0].colour'],
  ['a backend', { backend: 'colour = 1' }, 'clusters.c.backends[0].colour'],
  ['the udp table', { udp: 'colour = 1' }, 'clusters.c.udp.colour'],
  ['the health table', { health: 'colour = 1' }, 'clusters.c.udp.health.colour'],
])('an unknown key in %s is an error with its path', (_, parts, path) => {
  expect(errors(toml(parts))).toEqual([`${path}: unknown key`]);
});

test('a listener without a protocol is an error', () => {
  const text = '[[listeners]]\naddress = "127.0.0.1:53"\n';
  expect(errors(text)).toEqual([expect.stringMatching(/^listeners\[0\]\.protocol: missing/)]);
});

test('a listener without an address is an error', () => {
  const text = '[[listeners]]\nprotocol = "udp"\n';
  expect(errors(text)).toEqual(['listeners[0].address: missing: expected a string']);
});

test('two UDP listeners with the same address are an error, however it is spelt', () => {
  const twin = '[[listeners]]\nprotocol = "udp"\naddress = "[::ffff:127.0.0.1]:53"\n';
  expect(errors(toml({}) + twin)).toEqual([
    'listeners[1].address: a UDP listener on 127.0.0.1:53 stands above already',
  ]);
});

test('B14: a TCP and a UDP listener may have the same address, which Sōzu cannot express', () => {
  const { problems, config } = parseConfig(toml({}) + tcpTwin);
  expect(only('error', problems)).toEqual([]);
  expect(config?.listeners.map(({ cluster }) => cluster)).toEqual(['c']);
});

test('where a TCP and a UDP listener share an address, the cluster with a udp block is the UDP one', () => {
  const other =
    '[clusters.a]\nprotocol = "tcp"\nfrontends = [{ address = "127.0.0.1:53" }]\n' +
    'backends = [{ address = "10.0.0.9:53" }]\n';
  const { problems, config } = parseConfig(toml({ udp: 'requests = 0' }) + tcpTwin + other);
  expect(only('error', problems)).toEqual([]);
  expect(config?.clusters.map(({ cluster }) => cluster)).toEqual(['c']);
  expect(only('notice', problems)).toContain('clusters: skipped, not UDP: a');
});

test('an https listener may share the address of a UDP listener, and its http cluster is skipped', () => {
  const https = '[[listeners]]\nprotocol = "https"\naddress = "127.0.0.1:53"\n';
  const web =
    '[clusters.web]\nprotocol = "http"\nbackends = []\n' +
    'frontends = [{ address = "127.0.0.1:53", hostname = "example.org" }]\n';
  const { problems, config } = parseConfig(toml({}) + https + web);
  expect(only('error', problems)).toEqual([]);
  expect(config?.clusters.map(({ cluster }) => cluster)).toEqual(['c']);
});

test('an http cluster whose frontend is a UDP listener is an error', () => {
  expect(errors(toml({ protocol: 'http' }))).toEqual([
    'clusters.c.protocol: expected "tcp", found "http"',
  ]);
});

test('a UDP cluster with a frontend on an http listener is an error', () => {
  const http = '[[listeners]]\nprotocol = "http"\naddress = "127.0.0.1:80"\n';
  const text = toml({ moreFrontends: ', { address = "127.0.0.1:80" }' }) + http;
  expect(errors(text)).toEqual([
    expect.stringMatching(/^clusters\.c\.frontends\[1\]\.address: .*HTTP/),
  ]);
});

test.each(['hostname', 'path', 'certificate', 'certificate_chain'])(
  '%s on a frontend of a UDP cluster is an error',
  (key) => {
    const text = toml({ frontend: `${key} = "x"` });
    expect(errors(text)).toEqual([`clusters.c.frontends[0].${key}: unknown key`]);
    const { problems } = parseConfig(text);
    expect(problems[0]?.fix).toBe('it concerns HTTP or TLS: remove it');
  },
);

test('public_address together with expect_proxy is an error', () => {
  const listener = 'public_address = "203.0.113.1:53"\nexpect_proxy = true';
  expect(errors(toml({ listener }))).toEqual([
    'listeners[0].expect_proxy: expect_proxy and public_address exclude each other',
  ]);
});

test('expect_proxy alone is a warning, because nothing reads a header', () => {
  expect(warnings(toml({ listener: 'expect_proxy = true' }))).toEqual([
    'listeners[0].expect_proxy: no effect on a UDP listener',
  ]);
});

test('listeners with and without expect_proxy may lead to one cluster, which Sōzu refuses', () => {
  const twin = '[[listeners]]\nprotocol = "udp"\naddress = "127.0.0.2:53"\nexpect_proxy = true\n';
  const text = toml({ moreFrontends: ', { address = "127.0.0.2:53" }' }) + twin;
  const { config, problems } = parseConfig(text);
  expect(only('error', problems)).toEqual([]);
  expect(only('warning', problems)).toEqual([
    'listeners[1].expect_proxy: no effect on a UDP listener',
  ]);
  expect(config?.listeners.map(({ cluster }) => cluster)).toEqual(['c', 'c']);
});

test.each(['certificate = "x"', 'answer_404 = "x"', 'tls_versions = ["TLS_V13"]'])(
  'the HTTP or TLS key %s on a UDP listener is a warning',
  (listener) => {
    expect(warnings(toml({ listener }))).toEqual([expect.stringContaining('no effect')]);
    expect(errors(toml({ listener }))).toEqual([]);
  },
);

test('max_rx_datagram_size above buffer_size is a warning, and clamped', () => {
  const text = `buffer_size = 2000\n${toml({ listener: 'max_rx_datagram_size = 2001' })}`;
  expect(warnings(text)).toEqual([expect.stringContaining('clamped to 2000')]);
  expect(parseConfig(text).config?.listeners[0]?.maxRxDatagramSize).toBe(2_000);
});

test('buffer_size = 0 clamps to nothing but the longest datagram there is', () => {
  const text = `buffer_size = 0\n${toml({ listener: 'max_rx_datagram_size = 4294967295' })}`;
  expect(parseConfig(text).config?.listeners[0]?.maxRxDatagramSize).toBe(65_507);
});

test('max_flows above 70 % of the descriptor limit is a warning, and honoured', () => {
  const text = toml({ listener: 'max_flows = 701' });
  const { config, problems } = parseConfig(text, { descriptorLimit: 1_000 });
  expect(only('warning', problems)).toEqual([expect.stringContaining('70 %')]);
  expect(config?.listeners[0]?.maxFlows).toBe(701);
  const within = parseConfig(toml({ listener: 'max_flows = 700' }), { descriptorLimit: 1_000 });
  expect(only('warning', within.problems)).toEqual([]);
});

test('max_flows = 0 becomes 70 % of the descriptor limit, at most max_connections', () => {
  const flows = (text: string, descriptorLimit: number): unknown =>
    parseConfig(text, { descriptorLimit }).config?.listeners[0]?.maxFlows;
  expect(flows(toml({}), 1_000)).toBe(700);
  expect(flows(toml({}), 1_000_000)).toBe(10_000);
  expect(flows(`max_connections = 5\n${toml({})}`, 1_000)).toBe(5);
  expect(flows(`max_connections = 0\n${toml({})}`, 1_000_000)).toBe(700_000);
});

test.each([-1, 256])('weight %i is an error', (weight) => {
  expect(errors(toml({ backend: `weight = ${weight}` }))).toEqual([
    expect.stringMatching(/^clusters\.c\.backends\[0\]\.weight: expected at (least 0|most 255)/),
  ]);
});

test.each(['rise', 'fall', 'probe_interval_seconds', 'probe_timeout_seconds'])(
  '%s = 0 is a warning, and counts as 1',
  (key) => {
    const found = warnings(toml({ health: `mode = "HEALTH_OFF"\n${key} = 0` }));
    expect(found).toEqual([`clusters.c.udp.health.${key}: 0 counts as 1`]);
  },
);

test.each([0, 65_536])('tcp_port = %i is an error, where Sōzu cuts it to 16 bits', (port) => {
  expect(errors(toml({ health: `tcp_port = ${port}` }))).toEqual([
    expect.stringMatching(/^clusters\.c\.udp\.health\.tcp_port: expected at/),
  ]);
});

test.each(['', 'udp_probe_payload = ""'])(
  'UDP_PROBE without a payload (%s) is an error',
  (line) => {
    expect(errors(toml({ health: `mode = "UDP_PROBE"\n${line}` }))).toEqual([
      'clusters.c.udp.health.udp_probe_payload: missing: UDP_PROBE needs a payload to send',
    ]);
  },
);

test('B5: fail_open = false and the modes mean what they say, where Sōzu ignores the one and mixes the others', () => {
  const text = toml({ health: 'mode = "UDP_PROBE"\nudp_probe_payload = "p"\nfail_open = false' });
  const { config, problems } = parseConfig(text);
  expect(problems).toEqual([]);
  expect(config?.clusters[0]?.health).toMatchObject({ mode: 'UDP_PROBE', failOpen: false });
});

test('settings_from_proto_defaults: a health table without keys is TCP, 2 up, 3 down, every 5 s, within 2 s', () => {
  expect(parseConfig(toml({ health: '' })).config?.clusters[0]?.health).toEqual(HEALTH_DEFAULTS);
  expect(parseConfig(toml({ udp: '' })).config?.clusters[0]?.health).toBeUndefined();
});

test('udp_probe_payload_is_captured: as the bytes of its UTF-8, escapes included', () => {
  const text = toml({ health: 'mode = "UDP_PROBE"\nudp_probe_payload = "\\u0000\\u0001é"' });
  const { health } = parseConfig(text).config?.clusters[0] ?? {};
  expect(health?.udpProbePayload).toEqual(Uint8Array.of(0, 1, 0xc3, 0xa9));
});

test('exchange and passive_health reach the core; without them traffic is watched, and answers are not asked for', () => {
  const keys = toml({ udp: 'exchange = "request-response"\npassive_health = false' });
  const clusterOf = (text: string): unknown => parseConfig(text).config?.clusters[0];
  expect(clusterOf(keys)).toMatchObject({ exchange: 'request-response', passive: false });
  expect(clusterOf(toml({}))).toMatchObject({ exchange: undefined, passive: true });
});

test('a payload that no datagram carries behind a header is an error', () => {
  const payload = (bytes: number): string =>
    toml({ health: `mode = "UDP_PROBE"\nudp_probe_payload = "${'x'.repeat(bytes)}"` });
  expect(errors(payload(65_491))).toEqual([]);
  expect(errors(payload(65_492))).toEqual([
    'clusters.c.udp.health.udp_probe_payload: longer than 65491 bytes, what one datagram carries',
  ]);
});

test.each(['front_timeout', 'back_timeout'])('%s = 0 is a warning', (key) => {
  expect(warnings(toml({ listener: `${key} = 0` }))).toEqual([
    expect.stringContaining('idle at once'),
  ]);
});

test('a udp block that no declared UDP listener leads to is an error, on a tcp or an http cluster', () => {
  for (const protocol of ['tcp', 'http']) {
    const lost = `[clusters.lost]\nprotocol = "${protocol}"\nfrontends = [{ address = "127.0.0.1:54" }]\n`;
    expect(errors(`${toml({})}${lost}[clusters.lost.udp]\nresponses = "many"\n`)).toEqual([
      'clusters.lost.udp.responses: expected a whole number, found "many"',
      expect.stringMatching(/^clusters\.lost\.udp: no declared UDP listener leads to this cluster/),
    ]);
  }
});

test('a frontend without a declared listener is skipped with a notice, not made a listener', () => {
  const { config, problems } = parseConfig(
    toml({ moreFrontends: ', { address = "127.0.0.1:54" }' }),
  );
  expect(config?.listeners).toHaveLength(1);
  expect(only('notice', problems)).toEqual([
    expect.stringMatching(/^clusters\.c\.frontends\[1\]\.address: skipped: no listener/),
  ]);
});

test('a UDP listener claimed by two clusters is an error: Sōzu lets the last one win, unseen', () => {
  const second = '[clusters.d]\nprotocol = "tcp"\nfrontends = [{ address = "127.0.0.1:53" }]\n';
  expect(errors(toml({}) + second)).toEqual([
    'clusters.d.frontends[0].address: the UDP listener 127.0.0.1:53 leads to cluster "c" already',
  ]);
});

test('automatic_state_save without saved_state is a warning: neither does anything here', () => {
  expect(warnings(`automatic_state_save = true\n${toml({})}`)).toEqual([
    'automatic_state_save: Sōzu refuses this without saved_state',
  ]);
});

test('a buffer_size below 16393 is fine, because only HTTP/2 needs more', () => {
  const { problems } = parseConfig(`buffer_size = 4096\n${toml({})}`);
  expect(problems).toEqual([]);
});

test('more than 255 backends load', () => {
  const more = Array.from({ length: 300 }, (_, index) => `, { address = "10.1.0.1:${index + 1}" }`);
  expect(
    parseConfig(toml({ moreBackends: more.join('') })).config?.clusters[0]?.backends,
  ).toHaveLength(301);
});

test('listeners and clusters of other protocols are named in one notice each', () => {
  const web =
    '[[listeners]]\nprotocol = "http"\naddress = "0.0.0.0:80"\nsticky_name = "S"\n' +
    '[clusters.web]\nprotocol = "http"\nanything = true\n[clusters.api]\nprotocol = "http"\n';
  const { config, problems } = parseConfig(toml({}) + web);
  expect(config?.clusters).toHaveLength(1);
  expect(problems.map(({ severity, path, problem }) => `${severity} ${path}: ${problem}`)).toEqual([
    'notice listeners: skipped, not UDP: http 0.0.0.0:80',
    'notice clusters: skipped, not UDP: web, api',
  ]);
});

test('a file without any UDP listener is an error, because there is nothing to do', () => {
  const text = '[[listeners]]\nprotocol = "tcp"\naddress = "0.0.0.0:80"\n';
  expect(errors(text)).toEqual(['listeners: no UDP listener']);
});

interface Parts {
  listener?: string;
  cluster?: string;
  protocol?: string;
  frontend?: string;
  backend?: string;
  moreFrontends?: string;
  moreBackends?: string;
  udp?: string;
  health?: string;
}

/** A file without problems, but for the parts added to it. */
function toml(parts: Parts): string {
  const more = (text: string | undefined): string => (text === undefined ? '' : `, ${text}`);
  const lines = [
    '[[listeners]]',
    'protocol = "udp"',
    'address = "127.0.0.1:53"',
    parts.listener ?? '',
    '[clusters.c]',
    `protocol = "${parts.protocol ?? 'tcp'}"`,
    `frontends = [{ address = "127.0.0.1:53"${more(parts.frontend)} }${parts.moreFrontends ?? ''}]`,
    `backends = [{ address = "10.0.0.1:53"${more(parts.backend)} }${parts.moreBackends ?? ''}]`,
    parts.cluster ?? '',
  ];
  if (parts.udp !== undefined) lines.push('[clusters.c.udp]', parts.udp);
  if (parts.health !== undefined) lines.push('[clusters.c.udp.health]', parts.health);
  return `${lines.join('\n')}\n`;
}

const tcpTwin = '[[listeners]]\nprotocol = "tcp"\naddress = "127.0.0.1:53"\n';

function errors(text: string): readonly string[] {
  return only('error', parseConfig(text).problems);
}

function warnings(text: string): readonly string[] {
  return only('warning', parseConfig(text).problems);
}

function only(severity: Problem['severity'], problems: readonly Problem[]): readonly string[] {
  return problems
    .filter((problem) => problem.severity === severity)
    .map(({ path, problem }) => `${path}: ${problem}`);
}
