/** The way from TOML to Config: Sōzu's example, every problem at once, and bad input of each kind. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ipv4, parseAddress } from '../../core/address.ts';
import { LISTENERS_MAX } from '../../core/brand.ts';
import { CLUSTER_DEFAULTS } from '../../core/config.ts';
import { seconds } from '../../core/time.ts';
import { parseConfig } from './parse.ts';
import type { Problem } from './problem.ts';

const dns = readFileSync(new URL('testdata/dns.toml', import.meta.url), 'utf8');

test('the Sōzu file of spec §7.1 loads unchanged, without an error', () => {
  const { config, settings, problems } = parseConfig(dns, { descriptorLimit: 1_000 });
  expect(of('error', problems)).toEqual([]);
  expect(settings).toEqual({
    logLevel: 'info',
    io: 'auto',
    workers: 2,
    steer: 'tuple',
    commandSocket: './sozu.sock',
    logTarget: undefined,
    recorder: { segmentBytes: 4_194_304, folder: undefined },
    text: dns,
    watchConfig: false,
    maxConnections: 10_000,
    bufferSize: 16_393,
    admin: undefined,
    statsd: {
      address: parseAddress('127.0.0.1:8125'),
      prefix: 'sozu',
      tagged: false,
      clusters: true,
    },
  });
  expect(config).toEqual({
    grace: seconds(5),
    listeners: [
      {
        address: ipv4(0, 5353),
        frontTimeout: seconds(30),
        backTimeout: seconds(30),
        maxRxDatagramSize: 1_500,
        maxFlows: 700,
        ipv6Only: false,
        cluster: 'dns',
      },
    ],
    clusters: [
      {
        ...CLUSTER_DEFAULTS,
        cluster: 'dns',
        affinityWithPort: false,
        responses: 1,
        requests: 0,
        sendProxyProtocol: true,
        proxyProtocolEveryDatagram: false,
        maxFlowsPerIp: 64,
        maxFlowsPerSubnet: 0,
        subnetPrefixIpv4: 24,
        subnetPrefixIpv6: 64,
        rejectClientHeader: true,
        allowBackendAsClient: false,
        loadBalancing: 'HRW',
        loadMetric: 'CONNECTIONS',
        backends: [
          { id: 'dns-0', address: parseAddress('10.0.0.10:53'), weight: 100, backup: false },
          { id: 'dns-1', address: parseAddress('10.0.0.11:53'), weight: 200, backup: false },
          { id: 'dns-2', address: parseAddress('10.0.0.12:53'), weight: 100, backup: true },
        ],
        exchange: undefined,
        passive: true,
        health: {
          mode: 'TCP_PROBE',
          tcpPort: 53,
          rise: 2,
          fall: 3,
          failOpen: true,
          udpProbePayload: Uint8Array.from('ping', (letter) => letter.charCodeAt(0)),
          expectReply: true,
          probeInterval: seconds(5),
          probeTimeout: seconds(2),
        },
      },
    ],
  });
});

test('more listeners than a process has numbers for are an error, not a crash', () => {
  const many = Array.from(
    { length: LISTENERS_MAX + 1 },
    (_, index) =>
      `[[listeners]]\nprotocol = "udp"\naddress = "127.0.${index >> 8}.${index & 255}:53"\n`,
  );
  const { config, problems } = parseConfig(many.join(''));
  expect(config).toBeUndefined();
  expect(of('error', problems)).toMatchObject([
    { path: 'listeners', problem: '1025 UDP listeners are more than the 1024 of a process' },
  ]);
  expect(of('error', parseConfig(many.slice(1).join('')).problems)).toEqual([]);
});

test.each([
  ['nan', 'NaN'],
  ['-inf', '-Infinity'],
  ['1e999', 'Infinity'],
])('a number such as %s is told as it was read', (written, told) => {
  const { problems } = parseConfig(
    `worker_count = ${written}\n${dns.replace(/^worker_count.*$/m, '')}`,
  );
  expect(of('error', problems)).toMatchObject([
    { path: 'worker_count', problem: `expected a whole number, found ${told}` },
  ]);
});

test('the Sōzu file of spec §7.1 gets the warnings it deserves, each with its line', () => {
  const { problems } = parseConfig(dns, { localAddresses: ['127.0.0.1', '192.0.2.1'] });
  expect(of('warning', problems).map(({ path, line }) => `${path} ${line}`)).toEqual([
    'clusters.dns.udp.proxy_protocol_every_datagram 51',
    'clusters.dns.udp.responses 48',
    'clusters.dns.udp.health.udp_probe_payload 59',
  ]);
});

test('keys that are not written get the documented defaults', () => {
  const { config } = parseConfig(minimal);
  expect(config?.listeners[0]).toMatchObject({ maxRxDatagramSize: 1_500, maxFlows: 1_024 });
  expect(config?.clusters[0]).toMatchObject({
    loadBalancing: 'ROUND_ROBIN',
    loadMetric: 'CONNECTIONS',
    maxFlowsPerIp: 0,
    maxFlowsPerSubnet: 0,
    backends: [{ id: 'c-0-127.0.0.1:9000', weight: 100, backup: false }],
  });
});

test('every key of ours and of the cluster limits reaches the Config', () => {
  const text = `grace = 9\nlog_level = "debug"\n${minimal.replace(
    '[clusters.c]',
    '[clusters.c]\nmax_connections_per_ip = 7\nmax_connections_per_subnet = 8',
  )}[clusters.c.udp]\naffinity_key = "SOURCE_IP_PORT"\nsubnet_prefix_ipv4 = 16\nsubnet_prefix_ipv6 = 48\n`;
  const { config, settings } = parseConfig(text);
  expect(settings?.logLevel).toBe('debug');
  expect(config?.grace).toBe(seconds(9));
  expect(config?.clusters[0]).toMatchObject({
    affinityWithPort: true,
    maxFlowsPerIp: 7,
    maxFlowsPerSubnet: 8,
    subnetPrefixIpv4: 16,
    subnetPrefixIpv6: 48,
    rejectClientHeader: true,
    allowBackendAsClient: false,
  });
});

test('the global max_connections_per_ip is not applied to flows, and a warning says so', () => {
  const { config, problems } = parseConfig(`max_connections_per_ip = 5\n${minimal}`);
  expect(config?.clusters[0]?.maxFlowsPerIp).toBe(0);
  expect(of('warning', problems).map(({ path }) => path)).toContain('max_connections_per_ip');
});

test('a wildcard for IPv6 is bound without IPv4 only beside its IPv4 twin', () => {
  const listener = (address: string): string =>
    `[[listeners]]\nprotocol = "udp"\naddress = "${address}"\n`;
  const ipv6Only = (text: string): unknown =>
    parseConfig(text).config?.listeners.map((one) => one.ipv6Only);
  expect(ipv6Only(listener('[::]:53') + listener('0.0.0.0:53'))).toEqual([true, false]);
  expect(ipv6Only(listener('[::]:53') + listener('0.0.0.0:54'))).toEqual([false, false]);
  expect(ipv6Only(listener('[::1]:53') + listener('0.0.0.0:53'))).toEqual([false, false]);
});

test('IPv4-mapped addresses are unmapped before they are compared', () => {
  const text = minimal.replace('address = "127.0.0.1:53"', 'address = "[::ffff:127.0.0.1]:53"');
  const { config } = parseConfig(text);
  expect(config?.listeners[0]?.address).toEqual(parseAddress('127.0.0.1:53'));
  expect(config?.listeners[0]?.cluster).toBe('c');
});

test('every problem is reported at once, with its path and line', () => {
  const text = [
    'grace = "five"', // 1
    '[[listeners]]',
    'protocol = "udp"',
    'address = "ns1.example.org:53"', // 4
    'max_flow = 3', // 5
    '[[listeners]]',
    'protocol = "udp"',
    'address = "127.0.0.1:53"',
    'front_timeout = -1', // 9
    '[clusters.c]',
    'protocol = "udp"', // 11
    'frontends = [{ address = "127.0.0.1:53", hostname = "x" }]', // 12
    'backends = [', // 13
    '  { address = "10.0.0.1:0" },', // 14
    '  { weight = 256 },', // 15
    ']',
    'load_balancing = "hrw"', // 17
    'responses = 1', // 18
    'udp.health = { mode = "UDP_PROBE", tcp_port = 65536 }', // 19
  ].join('\n');
  const { config, settings, problems } = parseConfig(text);
  expect(config).toBeUndefined();
  expect(settings).toBeUndefined();
  expect(
    of('error', problems)
      .map(({ path, line }) => `${path} ${line}`)
      .sort(),
  ).toEqual(
    [
      'grace 1',
      'listeners[0].address 4',
      'listeners[0].max_flow 5',
      'listeners[1].front_timeout 9',
      'clusters.c.protocol 11',
      'clusters.c.frontends[0].hostname 12',
      'clusters.c.backends[0].address 14',
      'clusters.c.backends[1].address 15',
      'clusters.c.backends[1].weight 15',
      'clusters.c.load_balancing 17',
      'clusters.c.responses 18',
      'clusters.c.udp.health.tcp_port 19',
      'clusters.c.udp.health.udp_probe_payload 19',
    ].sort(),
  );
  expect(problems.find(({ path }) => path === 'clusters.c.responses')?.fix).toBe(
    'it belongs in [clusters.<id>.udp]',
  );
  expect(problems.find(({ path }) => path === 'listeners[0].max_flow')?.fix).toBe(
    'did you mean max_flows?',
  );
  expect(problems.find(({ path }) => path === 'clusters.c.load_balancing')?.fix).toBe(
    'write "HRW"',
  );
});

test('a TOML syntax error carries its line and column', () => {
  const { problems } = parseConfig('a = 1\nb = \n');
  expect(problems).toMatchObject([{ severity: 'error', path: '(file)', line: 2, column: 5 }]);
});

test.each([
  ['an empty file', '', /empty/],
  ['a file of white space', ' \n\t\n', /empty/],
  ['a file of comments', '# nothing\n', /no UDP listener/],
  ['NUL bytes', 'a = 1\0', /not a text file/],
  ['invalid UTF-8', Uint8Array.of(0x61, 0xff, 0xfe), /not a text file/],
  ['a binary file', Uint8Array.of(0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0, 0), /not a text file/],
])('%s is refused', (_, input, message) => {
  const { config, problems } = parseConfig(input);
  expect(config).toBeUndefined();
  expect(problems.map(({ problem }) => problem).join()).toMatch(message);
});

test.each([
  ['a host name', '"localhost:53"', /host name/],
  ['a host name without a port', '"ns1.example.org"', /host name/],
  ['port 0', '"10.0.0.1:0"', /port 0 .* out of range/],
  ['port 70000', '"10.0.0.1:70000"', /port 70000 .* out of range/],
  ['no port', '"10.0.0.1"', /not an address and a port/],
  ['an octet above 255', '"10.0.0.256:53"', /not an address and a port/],
  ['IPv6 without brackets', '"::1:53"', /not an address and a port/],
  ['a number', '53', /expected a string, found 53/],
  ['a date', '1979-05-27', /not an address and a port/],
  ['a table', '{ ip = "10.0.0.1" }', /expected a string, found a table/],
])('%s for a backend address is an error at its path', (_, address, message) => {
  const { problems } = parseConfig(minimal.replace('"127.0.0.1:9000"', address));
  const [error] = of('error', problems);
  expect(error?.path).toBe('clusters.c.backends[0].address');
  expect(error?.line).toBe(7);
  expect(error?.problem).toMatch(message);
});

test.each(['__proto__', 'constructor'])(
  '%s is an unknown key everywhere and pollutes nothing',
  (key) => {
    const text = [
      `${key} = 1`,
      '[[listeners]]',
      'protocol = "udp"',
      'address = "127.0.0.1:53"',
      `${key} = { polluted = true }`,
      '[clusters.c]',
      'protocol = "tcp"',
      `frontends = [{ address = "127.0.0.1:53", ${key} = { polluted = true } }]`,
      `backends = [{ address = "127.0.0.1:9000", ${key} = { polluted = true } }]`,
      `${key} = { polluted = true }`,
      `udp.${key} = { polluted = true }`,
      `udp.health = { ${key} = { polluted = true } }`,
      `[clusters.${key}]`,
      'polluted = true',
    ].join('\n');
    const { config, problems } = parseConfig(text);
    expect(config).toBeUndefined();
    expect(of('warning', problems).map(({ path }) => path)).toContain(key);
    expect(
      of('error', problems)
        .map(({ path }) => path)
        .sort(),
    ).toEqual(
      [
        `listeners[0].${key}`,
        `clusters.c.frontends[0].${key}`,
        `clusters.c.backends[0].${key}`,
        `clusters.c.${key}`,
        `clusters.c.udp.${key}`,
        `clusters.c.udp.health.${key}`,
        `clusters.${key}`,
      ].sort(),
    );
    expect({}).not.toHaveProperty('polluted');
  },
);

test('an unknown top-level key is a warning, and the file loads', () => {
  const { config, problems } = parseConfig(`max_conections = 5\n${minimal}`);
  expect(config).toBeDefined();
  expect(problems.find(({ path }) => path === 'max_conections')).toMatchObject({
    severity: 'warning',
    line: 1,
    fix: 'did you mean max_connections?',
  });
});

test("Sōzu's top-level keys without effect here share one notice", () => {
  const { problems } = parseConfig(`saved_state = "x"\npid_file_path = "y"\n${minimal}`);
  const notices = of('notice', problems);
  expect(notices).toHaveLength(1);
  expect(notices[0]?.problem).toBe('no effect here: saved_state, pid_file_path');
});

test('a log goes to a file by its absolute path; of a target that is not known here `check` warns', () => {
  const targetOf = (target: string): unknown => {
    const { settings, problems } = parseConfig(`log_target = "${target}"\n${minimal}`);
    return [settings?.logTarget, of('warning', problems).map(({ path }) => path)];
  };
  expect(targetOf('file:///var/log/x')).toEqual(['/var/log/x', []]);
  expect(targetOf('stdout')).toEqual([undefined, []]);
  expect(targetOf('file://x')).toEqual([undefined, ['log_target']]);
  expect(targetOf('udp://127.0.0.1:514')).toEqual([undefined, ['log_target']]);
});

test('the recorder can be switched off, sized, and told where to write', () => {
  const recorderOf = (keys: string): unknown => {
    const { settings, problems } = parseConfig(`${keys}\n${minimal}`);
    return settings === undefined ? problems.map(({ path }) => path) : settings.recorder;
  };
  expect(recorderOf('recorder = false')).toBeUndefined();
  expect(recorderOf('recorder_segment_size = 65536\nrecorder_folder = "/var/lib"')).toEqual({
    segmentBytes: 65_536,
    folder: '/var/lib',
  });
  expect(recorderOf('recorder_segment_size = 65535')).toEqual(['recorder_segment_size']);
  expect(recorderOf('recorder_folder = ""')).toEqual(['recorder_folder']);
});

const minimal = `[[listeners]]
protocol = "udp"
address = "127.0.0.1:53"
[clusters.c]
protocol = "tcp"
frontends = [{ address = "127.0.0.1:53" }]
backends = [{ address = "127.0.0.1:9000" }]
`;

function of(severity: Problem['severity'], problems: readonly Problem[]): readonly Problem[] {
  return problems.filter((problem) => problem.severity === severity);
}
