/** What the doctor says of machines that are well, of those that lack one thing, and of garbage. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { runDoctor } from '../commands/doctor.ts';
import { examine } from './examine.ts';
import type { Finding } from './finding.ts';
import { thisMachine, type Machine, type SocketAnswer } from './machine.ts';

const folder = mkdtempSync(join(tmpdir(), 'sozu-udp-doctor-'));
afterAll(() => rmSync(folder, { recursive: true }));

const PORT_RANGE = '/proc/sys/net/ipv4/ip_local_port_range';
const UDP_HEADER = '   sl  local_address rem_address   st tx_queue rx_queue drops\n';

/** A machine with room for everything, on which nothing else runs. */
const WELL: Readonly<Record<string, string>> = {
  '/proc/self/limits': limits(1_048_576, 1_048_576),
  '/proc/sys/fs/nr_open': '1048576\n',
  [PORT_RANGE]: '1024\t65535\n',
  '/proc/sys/net/ipv4/ip_local_reserved_ports': '5000-6000,7000\n',
  '/proc/sys/net/core/rmem_max': '8388608\n',
  '/proc/sys/net/core/wmem_max': '8388608\n',
  '/proc/net/snmp': snmp(0),
  '/proc/net/udp': UDP_HEADER,
  '/proc/net/udp6': UDP_HEADER,
  '/proc/net/if_inet6': '00000000000000000000000000000001 01 80 10 80 lo\n',
  '/proc/sys/net/ipv6/conf/all/disable_ipv6': '0\n',
  '/proc/sys/net/ipv6/bindv6only': '0\n',
};

describe('a machine that is well', () => {
  test('has no findings, alone or with a configuration', async () => {
    expect(await examine(invented(), undefined)).toEqual([]);
    expect(await examine(invented(), config())).toEqual([]);
  });

  test('is this one, or one that can be told of', async () => {
    const found = await examine(thisMachine(), config());
    expect(found.filter(({ check }) => check === 'configuration')).toEqual([]);
  });
});

describe('one thing amiss', () => {
  test('too few descriptors', async () => {
    const files = { '/proc/self/limits': limits(1_024, 4_096) };
    expect(await findings(files, config({ max_flows: 5_000 }))).toEqual([
      {
        severity: 'warning',
        check: 'descriptors',
        what: expect.stringContaining('need 5512 descriptors; a process has 1024 (at most 4096)'),
        why: expect.stringContaining('shed'),
        fix: 'systemctl edit sozu-udp   # under systemd: LimitNOFILE=5512',
      },
    ]);
    const raised = await findings(files, config({ max_flows: 3_000 }));
    expect(raised).toMatchObject([{ fix: expect.stringMatching(/^ulimit -n 3512 /) }]);
    const most = { ...files, '/proc/sys/fs/nr_open': '5000\n' };
    const [beyond] = await findings(most, config({ max_flows: 5_000 }));
    expect(beyond?.fix).toMatch(/^sysctl -w fs.nr_open=5512 && /);
  });

  test('too few ports', async () => {
    const files = { [PORT_RANGE]: '10000 11999\n' };
    expect(await findings(files, config({ max_flows: 2_001 }))).toMatchObject([
      { check: 'ports', severity: 'warning', fix: expect.stringContaining('="1024 65535"') },
    ]);
    expect(await findings(files, config({ max_flows: 2_000 }))).toEqual([]);
    const more = { [PORT_RANGE]: '1024 65535\n' };
    expect(await findings(more, config({ max_flows: 100_000 }))).toMatchObject([
      { check: 'ports', fix: 'write upstream_source with 2 addresses of this machine' },
    ]);
  });

  test('a listener on a port that the kernel hands out', async () => {
    expect(await findings({}, config({}, '10.0.0.1:40000'))).toMatchObject([
      {
        check: 'ports',
        fix: 'sysctl -w net.ipv4.ip_local_reserved_ports=5000-6000,7000,40000',
      },
    ]);
    expect(await findings({}, config({}, '10.0.0.1:5300'))).toEqual([]);
    expect(await findings({}, config({}, '10.0.0.1:7000'))).toEqual([]);
  });

  test('small buffers', async () => {
    const files = { '/proc/sys/net/core/rmem_max': '212992\n' };
    expect(await findings(files)).toMatchObject([
      { check: 'buffers', severity: 'warning', fix: 'sysctl -w net.core.rmem_max=4194304' },
    ]);
    expect(await findings(files, config({ rcvbuf: 212_992 }))).toEqual([]);
    expect(await examine(invented(files), undefined)).toHaveLength(1);
    const send = { '/proc/sys/net/core/wmem_max': '1000\n' };
    expect(await findings(send, config({ sndbuf: 2_000 }))).toMatchObject([
      { fix: 'sysctl -w net.core.wmem_max=2000' },
    ]);
  });

  test('conntrack, with rules for our ports, and a full table', async () => {
    const tracks = (most: number): Record<string, string> => ({
      '/proc/sys/net/netfilter/nf_conntrack_max': `${most}\n`,
      '/proc/sys/net/netfilter/nf_conntrack_count': '100\n',
    });
    const [notice] = await findings(tracks(2_100), config({ max_flows: 1_000 }));
    expect(notice).toMatchObject({ severity: 'notice', check: 'conntrack' });
    expect(notice?.fix).toContain(
      'prerouting priority raw; udp dport { 53 } notrack; udp sport { 5353 } notrack; }',
    );
    expect(notice?.fix).toContain(
      'output priority raw; udp sport { 53 } notrack; udp dport { 5353 } notrack; }',
    );
    expect(await findings(tracks(2_099), config({ max_flows: 1_000 }))).toMatchObject([
      { severity: 'warning', what: expect.stringContaining('100 of 2099') },
    ]);
  });

  test('no IPv6 for a listener that needs it, or none of IPv4 on ::', async () => {
    const off = { '/proc/sys/net/ipv6/conf/all/disable_ipv6': '1\n' };
    const v6 = config({}, '[2001:db8::1]:53');
    expect(await findings(off, v6)).toMatchObject([{ check: 'ipv6', severity: 'error' }]);
    expect(await findings({ '/proc/net/if_inet6': undefined }, v6)).toHaveLength(1);
    expect(await findings(off)).toEqual([]);
    const only = { '/proc/sys/net/ipv6/bindv6only': '1\n' };
    expect(await findings(only, v6)).toEqual([]);
    const dual = config({}, '[::]:53');
    expect(await findings(only, dual)).toMatchObject([{ check: 'ipv6', severity: 'warning' }]);
    const twin = '[[listeners]]\nprotocol = "udp"\naddress = "0.0.0.0:53"\n';
    const both = write('both.toml', readFileSync(dual, 'utf8').replace('[[', `${twin}[[`));
    expect(await findings(only, both)).toEqual([]);
  });

  test('an address that another program has, unless it may be ours', async () => {
    // 127.0.0.53:53, as systemd-resolved has it.
    const taken = { '/proc/net/udp': `${UDP_HEADER} 1: 3500007F:0035 00000000:0000 07 0 0 0\n` };
    const listens = config({}, '0.0.0.0:53');
    expect(await findings(taken, listens)).toMatchObject([
      { check: 'addresses', severity: 'error', fix: expect.stringMatching(/^ss -ulpn .*:53'/) },
    ]);
    expect(await findings(taken, listens, 'alive')).toEqual([]);
    expect(await findings(taken, config({}, '127.0.0.54:53'))).toEqual([]);
    const connected = { '/proc/net/udp': taken['/proc/net/udp'].replace(' 07 ', ' 01 ') };
    expect(await findings(connected, listens)).toEqual([]);
  });

  test('what the kernel dropped, here and in all', async () => {
    const files = {
      // [2001:db8::1]:53, with 12 drops.
      '/proc/net/udp6': `${UDP_HEADER} 1: B80D0120000000000000000001000000:0035 0:0 07 0 0 12\n`,
      '/proc/net/snmp': snmp(20),
    };
    const found = await findings(files, config({}, '[2001:db8::1]:53'), 'alive');
    expect(found).toMatchObject([
      { check: 'drops', severity: 'warning', what: expect.stringContaining('dropped 12') },
      { check: 'drops', severity: 'notice', what: expect.stringContaining('dropped 20') },
    ]);
    expect(await findings(files, config(), 'alive')).toHaveLength(1);
  });

  test('a control socket that nobody answers, or that is not ours', async () => {
    expect(await findings({}, config(), 'stale')).toMatchObject([
      { check: 'control-socket', severity: 'warning', fix: `rm '${folder}/control.sock'` },
    ]);
    expect(await findings({}, config(), 'denied')).toMatchObject([{ check: 'control-socket' }]);
    expect(await findings({}, config(), 'alive')).toEqual([]);
  });

  test.each([
    ['a wildcard on a machine with several addresses', { address: '0.0.0.0:53' }, 'several'],
    ['idle times below RFC 4787', { address: '10.0.0.1:443' }, 'RFC 4787'],
    ['the PROXY header on the first datagram only', { udp: 'send_proxy_protocol = true' }, 'PROXY'],
  ] as const)('%s, as check tells it', async (_, setup, what) => {
    const file = config(
      {},
      'address' in setup ? setup.address : undefined,
      'udp' in setup ? setup.udp : '',
    );
    expect(await examine(invented(), file)).toMatchObject([
      { severity: 'warning', check: 'configuration', what: expect.stringContaining(what) },
    ]);
  });

  test('a file with errors: they are told, and the machine is looked at all the same', async () => {
    const file = write('broken.toml', 'listeners = 3\ncommand_socket = ""\n');
    const found = await examine(invented({ '/proc/sys/net/core/rmem_max': '1\n' }), file);
    expect(found).toMatchObject([
      { severity: 'error', check: 'configuration' },
      { severity: 'error', check: 'configuration' },
      { severity: 'warning', check: 'buffers' },
    ]);
  });

  test.each([
    ['io = "mmsg"', 'no koffi', { severity: 'error', what: 'io = "mmsg" cannot be had: no koffi' }],
    ['workers = 2', 'no koffi', { severity: 'warning', what: 'one worker instead of 2: no koffi' }],
    ['workers = 3', undefined, { severity: 'warning', fix: 'write workers = 2, or "auto"' }],
    [
      'workers = "auto"',
      'no koffi',
      { severity: 'notice', what: 'node:dgram moves the datagrams: no koffi' },
    ],
    ['workers = 2', undefined, undefined],
    ['io = "dgram"', 'no koffi', undefined],
  ] as const)('%s where %s is missing, on two processors', async (line, missing, finding) => {
    const file = write('workers.toml', `${line}\n${readFileSync(config(), 'utf8')}`);
    const found = await examine({ ...invented(), missingForBatches: () => missing }, file);
    expect(found).toMatchObject(finding === undefined ? [] : [{ check: 'workers', ...finding }]);
  });

  test('no /proc at all', async () => {
    const bare: Machine = { ...invented(), read: () => undefined };
    expect(await examine(bare, config())).toMatchObject([{ severity: 'notice', check: 'machine' }]);
  });
});

test('whatever the files hold, the doctor finds words', async () => {
  const texts = fc.oneof(
    fc.string(),
    fc.stringMatching(/^[0-9A-F: \n\t-]{0,80}$/),
    fc.constant(undefined),
  );
  const files = fc.record(Object.fromEntries(Object.keys(WELL).map((path) => [path, texts])));
  const file = config();
  await fc.assert(
    fc.asyncProperty(files, async (other) => {
      const found = await findings(other, file);
      for (const { what, fix } of found)
        expect(`${what}${fix}`).not.toMatch(/NaN|undefined\b(?!$)/);
    }),
    { numRuns: 300 },
  );
});

test('a socket is asked, and told apart by whoever listens', async () => {
  const machine = thisMachine();
  const path = join(folder, 'asked.sock');
  expect(await machine.askSocket(path)).toBe('none');
  const server = createServer().listen(path);
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  expect(await machine.askSocket(path)).toBe('alive');
  const file = write('plain', '');
  expect(await machine.askSocket(file)).toBe('stale');
});

describe('the command', () => {
  test.each([
    ['without findings', {}, 0],
    ['with a notice', { '/proc/net/snmp': snmp(3) }, 0],
    ['with a warning', { '/proc/sys/net/core/rmem_max': '1\n' }, 1],
    ['with an error', { '/proc/net/udp': `${UDP_HEADER} 1: 0100000A:0035 0:0 07 0 0 0\n` }, 2],
  ] as const)('%s: the exit code, and both ways to tell it', async (_, files, code) => {
    const file = config();
    const said = await run({ machine: invented(files), config: file });
    expect(said.code).toBe(code);
    expect(said.text).toMatch(/\d errors?, \d warnings?, \d notices?\n$/);
    const json = await run({ machine: invented(files), config: file, json: true });
    expect(json.code).toBe(code);
    const parsed: unknown = JSON.parse(json.text);
    const found = await examine(invented(files), file);
    expect(parsed).toEqual({ schema: 1, file, findings: found, ok: code === 0 });
  });

  test('makes text from outside safe for a terminal', async () => {
    const { text } = await run({ machine: invented(), config: `${folder}/\u001b[31m\u009b` });
    expect(text).toContain('\\u001b[31m\\u009b');
    expect(text.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
  });
});

async function run(
  options: Parameters<typeof runDoctor>[0],
): Promise<{ code: number; text: string }> {
  let text = '';
  const code = await runDoctor({ ...options, write: (part) => (text += part) });
  return { code, text };
}

/** Those of the machine. What the file alone shows is check's business. */
async function findings(
  files: Readonly<Record<string, string | undefined>>,
  file = config(),
  answer: SocketAnswer = 'none',
): Promise<Finding[]> {
  const found = await examine(invented(files, answer), file);
  return found.filter(({ check }) => check !== 'configuration');
}

/** A machine that is well but for some of its files. */
function invented(
  files: Readonly<Record<string, string | undefined>> = {},
  answer: SocketAnswer = 'none',
): Machine {
  const all: Readonly<Record<string, string | undefined>> = { ...WELL, ...files };
  const descriptorLimit = Number(/\d+/.exec(all['/proc/self/limits'] ?? '')?.[0] ?? 1_024);
  return {
    environment: {
      descriptorLimit,
      localAddresses: ['10.0.0.1', '10.0.0.2', '2001:db8::1'],
      ephemeralPorts: 64_512,
    },
    processors: 2,
    missingForBatches: () => undefined,
    read: (path) => all[path],
    askSocket: () => Promise.resolve(answer),
  };
}

let files = 0;

/** A configuration without a fault; keys of its listener, its address, and lines for its cluster's `udp`. */
function config(
  keys: Readonly<Record<string, number>> = {},
  address = '10.0.0.1:53',
  udp = '',
): string {
  files += 1;
  const lines = Object.entries({ max_flows: 100, ...keys }).map(
    ([key, value]) => `${key} = ${value}`,
  );
  return write(
    `${files}.toml`,
    `command_socket = "${folder}/control.sock"
[[listeners]]
protocol = "udp"
address = "${address}"
${lines.join('\n')}
[clusters.c]
protocol = "tcp"
frontends = [{ address = "${address}" }]
backends = [{ address = "10.9.0.1:5353" }]
[clusters.c.udp]
${udp}
`,
  );
}

function write(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

function limits(soft: number, hard: number): string {
  return `Limit  Soft Limit  Hard Limit  Units\nMax open files            ${soft}   ${hard}    files\n`;
}

function snmp(drops: number): string {
  return `Ip: Forwarding\nIp: 1\nUdp: InDatagrams RcvbufErrors\nUdp: 5 ${drops}\n`;
}
