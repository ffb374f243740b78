/** The tables of those who watch: what they mean, and what is refused, with path and fix. */
import { expect, test } from 'vitest';
import { parseAddress } from '../../core/index.ts';
import { parseConfig, type Parsed } from './parse.ts';
import type { Problem } from './problem.ts';

test('without the tables nothing is served or pushed', () => {
  expect(parsed('').settings).toMatchObject({ admin: undefined, statsd: undefined });
});

test('an address is enough', () => {
  const { problems, settings } = parsed(`
[admin]
address = "127.0.0.1:0"
[metrics]
address = "10.0.0.9:8125"`);
  expect(problems).toEqual([]);
  expect(settings?.admin).toEqual({
    address: parseAddress('127.0.0.1:0'),
    tokenFile: undefined,
    hosts: [],
  });
  expect(settings?.statsd).toEqual({
    address: parseAddress('10.0.0.9:8125'),
    prefix: 'sozu',
    tagged: false,
    clusters: true,
  });
});

test('detail says whether clusters are told apart', () => {
  for (const [detail, clusters] of [
    ['process', false],
    ['frontend', false],
    ['cluster', true],
    ['backend', true],
  ] as const) {
    const { settings } = parsed(`[metrics]\naddress = "10.0.0.9:8125"\ndetail = "${detail}"`);
    expect(settings?.statsd?.clusters).toBe(clusters);
  }
});

test.each(['0.0.0.0:9464', '10.0.0.1:9464', '[::]:9464', '[2001:db8::1]:1', '[::ffff:10.0.0.1]:1'])(
  'whoever may be reached by others, at %s, needs a token',
  (address) => {
    const [problem] = errors(parsed(`[admin]\naddress = "${address}"`));
    expect(problem).toMatchObject({
      path: 'admin.address',
      line: 2,
      fix: 'write token_file, or an address on 127.0.0.1',
    });
    const secured = parsed(`[admin]\naddress = "${address}"\ntoken_file = "/etc/token"`);
    expect(errors(secured)).toEqual([]);
    expect(secured.settings?.admin?.tokenFile).toBe('/etc/token');
  },
);

test.each(['127.0.0.1:1', '127.9.9.9:1', '[::1]:1', '[::ffff:127.0.0.1]:1'])(
  '%s is loopback and needs none',
  (address) => {
    expect(errors(parsed(`[admin]\naddress = "${address}"`))).toEqual([]);
  },
);

test('every mistake is told at once, with its path and a fix', () => {
  const { problems } = parsed(`
[admin]
adress = "127.0.0.1:1"
allowed_hosts = "lb.example.com"
[metrics]
address = "statsd:8125"
prefix = ""
detail = "clusters"`);
  const told = problems
    .filter(({ severity }) => severity === 'error')
    .map(({ path, fix }) => [path, fix]);
  expect(new Map(told.map(([path, fix]) => [path, fix]))).toEqual(
    new Map([
      ['admin.address', 'add the key'],
      ['admin.adress', 'did you mean address?'],
      ['admin.allowed_hosts', 'write an array, such as allowed_hosts = ["lb.example.com"]'],
      ['metrics.address', 'write its IP address and port, such as 10.0.0.10:53'],
      ['metrics.prefix', 'write a text, or remove the key'],
      ['metrics.detail', 'write "cluster"'],
    ]),
  );
});

test.each([
  ['[admin]\naddress = "[::1]:1"\nallowed_hosts = ["lb:80", "*", "*.a", "a b", "ok.example"]', 4],
  ['[admin]\naddress = "[::1]:1"\ntoken_file = "/a\\u0000b"', 1],
  ['[metrics]\naddress = "[::1]:1"\nprefix = "a:1|c\\nb"', 1],
  [`[metrics]\naddress = "[::1]:1"\nprefix = "${'a'.repeat(201)}"`, 1],
  ['[metrics]\naddress = "[::1]:1"\nprefix = "edge-1.sozu_udp"', 0],
  ['recorder_folder = "/a\\u0000b"', 1],
  ['command_socket = "/a\\u0000b"', 1],
  ['command_socket = ""', 0],
])('text that could never mean what was meant is an error: %j', (tables, count) => {
  const { problems } = parsed(tables);
  const told = problems.filter(({ severity }) => severity === 'error');
  expect(told).toHaveLength(count);
  for (const { fix } of told) expect(fix).toMatch(/^write /);
});

test('names are compared without regard to case', () => {
  const { settings } = parsed('[admin]\naddress = "[::1]:1"\nallowed_hosts = ["LB.Example.com"]');
  expect(settings?.admin?.hosts).toEqual(['lb.example.com']);
});

function parsed(tables: string): Parsed {
  return parseConfig(`${tables}
[[listeners]]
protocol = "udp"
address = "127.0.0.1:5353"
[clusters.c]
protocol = "tcp"
frontends = [{ address = "127.0.0.1:5353" }]
backends = [{ address = "127.0.0.1:5354" }]`);
}

function errors({ problems }: Parsed): readonly Problem[] {
  return problems.filter(({ severity }) => severity === 'error');
}
