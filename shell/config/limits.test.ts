/** `[clusters.<id>.udp.limits]`, sources of upstream sockets, and the listener's keys for its socket. */
import { expect, test } from 'vitest';
import { formatIp } from '../../core/address.ts';
import { AMPLIFICATION_DEFAULTS, AMPLIFICATION_OFF } from '../../core/amplification.ts';
import { ACCESS_RULES_MAX, formatCidr } from '../../core/cidr.ts';
import { NO_SOURCE_RATES, type ClusterSettings } from '../../core/config.ts';
import { milliseconds, seconds } from '../../core/time.ts';
import { parseConfig, type Parsed } from './parse.ts';

test('without the table, and with an empty one, nothing is limited', () => {
  for (const udp of ['', 'limits = {}']) {
    const { rates, amplification } = cluster(udp);
    expect(rates).toEqual(NO_SOURCE_RATES);
    expect(amplification).toEqual(AMPLIFICATION_OFF);
  }
});

test('every key of the limits reaches the core', () => {
  const { rates, amplification } = cluster(`[clusters.c.udp.limits]
new_flows_per_second = 5
new_flows_burst = 50
datagrams_per_second = 100
datagrams_burst = 300
sketch_columns = 4096
allow = ["10.0.0.0/8", "::ffff:192.0.2.0/120"]
deny = ["10.1.0.0/16", "10.2.3.4"]
amplification_factor = 10
amplification_floor = 512`);
  expect(rates).toMatchObject({
    newFlowsPerSecond: 5,
    newFlowsBurst: 50,
    datagramsPerSecond: 100,
    datagramsBurst: 300,
    columns: 4_096,
  });
  expect(rates.allow.map(formatCidr)).toEqual(['10.0.0.0/8', '192.0.2.0/24']);
  expect(rates.deny.map(formatCidr)).toEqual(['10.1.0.0/16', '10.2.3.4/32']);
  expect(amplification).toEqual({ factor: 10, floor: 512 });
});

test('a burst that is not written is the rate', () => {
  const limits = 'limits = { new_flows_per_second = 5, datagrams_per_second = 7 }';
  expect(cluster(limits).rates).toMatchObject({ newFlowsBurst: 5, datagramsBurst: 7 });
});

test('half a limit on amplification gets its other half from the core', () => {
  const { factor, floor } = AMPLIFICATION_DEFAULTS;
  const of = (limits: string): unknown => cluster(`limits = { ${limits} }`).amplification;
  expect(of('amplification_factor = 8')).toEqual({ factor: 8, floor });
  expect(of('amplification_floor = 64')).toEqual({ factor, floor: 64 });
});

test('everything that is wrong with the limits is told at once, with path and fix', () => {
  const rules = `allow = ["10.0.0.1/8", "10.0.0.0/8", "x"]\ndeny = ["::/129"]`;
  const { problems } = parse(`[clusters.c.udp.limits]
new_flows_burst = 5
datagrams_per_second = 0
datagrams_burst = 0
sketch_columns = 1000
amplification_factor = -1
colour = 3
${rules}`);
  expect(problems.map(({ path, problem, fix }) => [path, problem, fix])).toEqual([
    [at('datagrams_burst'), 'expected at least 1, found 0', 'write 1 or more'],
    [at('sketch_columns'), 'not a power of two', 'write a power of two, such as 16384'],
    [
      at('allow[0]'),
      'bits are set behind the prefix',
      'write 10.0.0.0/8, or the address without a length',
    ],
    [at('allow[2]'), '"x" is not an IP address', 'write a block such as 10.0.0.0/8'],
    [at('deny[0]'), '"129" is not a prefix length', 'write 0 to 128'],
    [at('amplification_factor'), 'expected at least 0, found -1', 'write 0 or more'],
    [at('colour'), 'unknown key', 'remove it'],
    [
      at('new_flows_burst'),
      'a burst without a rate limits nothing',
      'write new_flows_per_second, or remove it',
    ],
    [
      at('datagrams_burst'),
      'a burst without a rate limits nothing',
      'write datagrams_per_second, or remove it',
    ],
  ]);
});

test.each([
  ['limits', 'limits = 3', 'expected a table, found 3', 'write a table'],
  [
    'limits.allow',
    'limits.allow = "10.0.0.0/8"',
    'expected an array of strings, found "10.0.0.0/8"',
    'write an array, such as allow = ["10.0.0.0/8"]',
  ],
  ['limits.deny[0]', 'limits.deny = [10]', 'expected a string, found 10', 'put it in quotes'],
  [
    'limits.sketch_columns',
    'limits.sketch_columns = 128',
    'expected at least 256, found 128',
    'write 256 or more',
  ],
  [
    'limits.sketch_columns',
    'limits.sketch_columns = 131072',
    'expected at most 65536, found 131072',
    'write 65536 or less',
  ],
])('%s: %s is refused', (path, udp, problem, fix) => {
  expect(parse(udp).problems).toMatchObject([{ path: `clusters.c.udp.${path}`, problem, fix }]);
});

test('more blocks than an access list holds are an error, in one list or in two', () => {
  const blocks = (count: number): string =>
    JSON.stringify(
      Array.from({ length: count }, (_, index) => `10.0.${index >> 8}.${index & 255}`),
    );
  const half = ACCESS_RULES_MAX / 2;
  const limits = (deny: number): string =>
    `[clusters.c.udp.limits]\nallow = ${blocks(half)}\ndeny = ${blocks(deny)}`;
  expect(parse(limits(half)).problems).toEqual([]);
  expect(parse(limits(half + 1)).problems).toMatchObject([
    { path: 'clusters.c.udp.limits', problem: expect.stringContaining('more than 10000 blocks') },
  ]);
});

test('sources of upstream sockets are addresses of ours, in order, unmapped, without a port', () => {
  const { upstreamSources } = cluster(
    'upstream_source = ["10.0.0.5", "::ffff:10.0.0.6", "fe80::5%2"]',
  );
  expect(upstreamSources.map(formatIp)).toEqual(['10.0.0.5', '10.0.0.6', 'fe80::5%2']);
  expect(upstreamSources.map(({ port }) => port)).toEqual([0, 0, 0]);
});

test('each source that no socket can be bound to is told', () => {
  const sources = [
    '10.0.0.5:53',
    '[::1]:53',
    '0.0.0.0',
    '::',
    '10.0.0.6',
    '::ffff:10.0.0.6',
    '224.0.0.1',
    'localhost',
  ];
  const { problems } = parse(`upstream_source = ${JSON.stringify(sources)}`);
  expect(problems.map(({ path, problem, fix }) => [path, problem, fix])).toEqual([
    [source(0), '"10.0.0.5:53" has a port: each flow gets one of its own', 'write 10.0.0.5'],
    [source(1), '"[::1]:53" has a port: each flow gets one of its own', 'write ::1'],
    [source(2), '0.0.0.0 leaves the choice to the kernel', 'remove it, or write an address'],
    [source(3), ':: leaves the choice to the kernel', 'remove it, or write an address'],
    [source(5), '10.0.0.6 stands twice', 'remove one'],
    [source(6), '224.0.0.1 is multicast or broadcast', 'write an address of this machine'],
    [
      source(7),
      '"localhost" is not an IP address',
      'write an address of this machine, such as 10.0.0.5',
    ],
  ]);
});

test('at most 64 sources', () => {
  const sources = (count: number): string =>
    `upstream_source = ${JSON.stringify(Array.from({ length: count }, (_, index) => `10.0.0.${index + 1}`))}`;
  expect(cluster(sources(64)).upstreamSources).toHaveLength(64);
  expect(parse(sources(65)).problems).toMatchObject([
    { path: 'clusters.c.udp.upstream_source', problem: '65 addresses are more than 64' },
  ]);
});

test('the keys for flows and lost backends reach the core', () => {
  const settings = cluster(`responses = 2
responses_per_request = true
requests = 9
requests_linger = true
late_reply_grace_ms = 250
forward_empty_datagrams = true
on_backend_down = "close"
on_backend_removed = "pin"`);
  expect(settings).toMatchObject({
    responses: 2,
    responsesPerRequest: true,
    requests: 9,
    requestsLinger: true,
    lateReplyGrace: milliseconds(250),
    forwardEmptyDatagrams: true,
    onBackendDown: 'close',
    onBackendRemoved: 'pin',
  });
});

test('a listener says how much room the kernel keeps for it, and whether to try again', () => {
  const { config } = parse('', 'rcvbuf = 1048576\nsndbuf = 65536\nbind_retry_seconds = 3');
  expect(config?.listeners[0]).toMatchObject({
    receiveBuffer: 1_048_576,
    sendBuffer: 65_536,
    bindRetry: seconds(3),
  });
  const [silent] = parse('', 'bind_retry_seconds = 0').config?.listeners ?? [];
  expect([silent?.receiveBuffer, silent?.sendBuffer, silent?.bindRetry]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(parse('', 'rcvbuf = 0\nsndbuf = 1073741824').problems).toMatchObject([
    { path: 'listeners[0].rcvbuf', fix: 'write 1 or more' },
    { path: 'listeners[0].sndbuf', fix: 'write 1073741823 or less' },
  ]);
});

function at(key: string): string {
  return `clusters.c.udp.limits.${key}`;
}

function source(index: number): string {
  return `clusters.c.udp.upstream_source[${index}]`;
}

function parse(udp: string, listener = ''): Parsed {
  return parseConfig(`[[listeners]]
protocol = "udp"
address = "127.0.0.1:53"
${listener}
[clusters.c]
protocol = "tcp"
frontends = [{ address = "127.0.0.1:53" }]
backends = [{ address = "10.0.0.1:53" }]
[clusters.c.udp]
${udp}
`);
}

function cluster(udp: string): ClusterSettings {
  const { config, problems } = parse(udp);
  const [settings] = config?.clusters ?? [];
  if (settings === undefined) throw new Error(JSON.stringify(problems));
  return settings;
}
