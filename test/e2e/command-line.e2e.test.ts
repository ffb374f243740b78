/** The real command line: exit codes, messages, and that nothing starts from a file with errors. */
import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { startBackend } from './backend.ts';
import { Child, runToEnd } from './child.ts';
import { openClient } from './client.ts';
import { freePort } from './ports.ts';
import { COMMAND, MAIN, ProxyProcess, startProxy, temporaryFile, toml } from './proxy.ts';

/** A file without problems. */
const SOUND = toml({
  listen: '127.0.0.1:5399',
  listener: { front_timeout: 120, back_timeout: 120 },
  backends: ['127.0.0.1:5398'],
});
/** Sound but for a warning: PROXY headers on the first datagram of a flow only. */
const WORRYING = SOUND + 'send_proxy_protocol = true\n';

const BAD: readonly { name: string; file: string | Uint8Array; says: readonly RegExp[] }[] = [
  {
    name: 'an unknown key',
    file: SOUND.replace('[clusters', 'max_flow = 3\n[clusters'),
    says: [/listeners\[0\]\.max_flow \(line 7\)/, /max_flows/],
  },
  {
    name: 'a wrong type',
    file: SOUND.replace('[clusters', 'max_flows = "many"\n[clusters'),
    says: [/listeners\[0\]\.max_flows \(line 7\).*number/],
  },
  {
    name: 'port 70000',
    file: SOUND.replace('5399', '70000'),
    says: [/port 70000 .* out of range/],
  },
  { name: 'port 0', file: SOUND.replace('5398', '0'), says: [/port 0 .* out of range/] },
  {
    name: 'a host name',
    file: SOUND.replace('127.0.0.1:5398', 'ns1.example.org:53'),
    says: [/"ns1\.example\.org:53" is a host name/],
  },
  {
    name: 'a weight out of range',
    file: SOUND.replace('5398"', '5398", weight = 256'),
    says: [/backends\[0\]\.weight/],
  },
  {
    name: 'a duplicate listener',
    file: SOUND.replace(
      '[clusters',
      '[[listeners]]\nprotocol = "udp"\naddress = "127.0.0.1:5399"\n[clusters',
    ),
    says: [/127\.0\.0\.1:5399/],
  },
  {
    name: 'a udp block that no UDP listener leads to',
    file: SOUND.replace('{ address = "127.0.0.1:5399" }', '{ address = "127.0.0.1:5397" }'),
    says: [/clusters\.e2e\.udp .*no declared UDP listener leads to this cluster/],
  },
  {
    name: 'a backend that is the listener itself',
    file: SOUND.replace('5398', '5399'),
    says: [/backends\[0\]/],
  },
  { name: 'broken TOML', file: `${SOUND}[[`, says: [/line \d+.*TOML/] },
  { name: 'an empty file', file: '', says: [/the file is empty/] },
  {
    name: 'a binary file',
    file: readFileSync(process.execPath).subarray(0, 65_536),
    says: [/not a text file/],
  },
];

for (const { name, file, says } of BAD) {
  test(`run refuses ${name} with exit code 2, says why, and starts nothing`, async () => {
    const path = temporaryFile('bad.toml', file);
    const { code, stdout, stderr } = await sozuUdp('run', '--config', path);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    for (const pattern of says) expect(stderr).toMatch(pattern);
    expect(stderr.split('\n').at(-1)).toBe(`${path}: nothing was started`);
    expect((await sozuUdp('check', path)).code).toBe(2);
  });
}

test('run refuses a missing file and a folder with exit code 2', async () => {
  const missing = join(tmpdir(), 'no-such-folder', 'no-such-file.toml');
  const runs = [missing, tmpdir()].map((path) => sozuUdp('run', '--config', path));
  const [absent, folder] = await Promise.all(runs);
  expect(absent).toMatchObject({ code: 2, stdout: '' });
  expect(absent?.stderr).toContain(`${missing} does not exist`);
  expect(folder).toMatchObject({ code: 2, stdout: '' });
  expect(folder?.stderr).toContain('is a directory');
});

test('every problem of a file is told in one run', async () => {
  const path = temporaryFile('bad.toml', SOUND.replaceAll('5399', '70000').replace('5398', '0'));
  const { stderr } = await sozuUdp('run', '--config', path);
  expect(stderr).toMatch(/port 70000/);
  expect(stderr).toMatch(/port 0/);
});

test('check exits with 0 for a sound file, and with --strict too', async () => {
  const path = temporaryFile('sound.toml', SOUND);
  for (const options of [[], ['--strict']]) {
    const { code, stdout, stderr } = await sozuUdp('check', ...options, path);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('0 errors, 0 warnings');
  }
});

test('check exits with 0 for warnings, and with 1 under --strict', async () => {
  const path = temporaryFile('worrying.toml', WORRYING);
  const { code, stdout } = await sozuUdp('check', path);
  expect(code).toBe(0);
  expect(stdout).toMatch(/warning clusters\.e2e\.udp\.proxy_protocol_every_datagram/);
  expect((await sozuUdp('check', '--strict', path)).code).toBe(1);
});

test('check --json prints the problems for programs', async () => {
  const path = temporaryFile('bad.toml', WORRYING.replace('5399', '70000'));
  const { code, stdout } = await sozuUdp('check', '--json', path);
  const { file, ok, problems } = ANSWER.parse(JSON.parse(stdout));
  expect({ code, file, ok }).toEqual({ code: 2, file: path, ok: false });
  expect(problems).toContainEqual(
    expect.objectContaining({ severity: 'error', path: 'listeners[0].address', line: 4 }),
  );
});

test('--version prints the version of the package', async () => {
  const { version } = PACKAGE.parse(JSON.parse(readFileSync(PACKAGE_FILE, 'utf8')));
  expect(await sozuUdp('--version')).toEqual({ code: 0, stdout: version, stderr: '' });
});

for (const words of ['--help', 'run --help', 'check --help', 'start --help']) {
  test(`"${words}" explains, with examples`, async () => {
    const { code, stdout, stderr } = await sozuUdp(...words.split(' '));
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('Usage: sozu-udp');
    expect(stdout).toContain('Example');
  });
}

for (const words of ['fly', 'run', 'run --fast', 'check', 'check --strict']) {
  test(`"${words}" is a usage error: exit code 2, with help on standard error`, async () => {
    const { code, stdout, stderr } = await sozuUdp(...words.split(' '));
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('Usage: sozu-udp');
  });
}

test('without a command there is help on standard error, and exit code 2', async () => {
  const { code, stdout, stderr } = await sozuUdp();
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain('Usage: sozu-udp');
});

test('an address in use makes run exit with 1, name the address, and leave the owner alone', async () => {
  const backend = await startBackend('alpha');
  const [port, other] = [await freePort(), await freePort()];
  await startProxy(toml({ listen: `127.0.0.1:${port}`, backends: [backend] }));
  const second = toml({ listen: [`127.0.0.1:${other}`, `127.0.0.1:${port}`], backends: [backend] });
  const { code, stderr } = await sozuUdp('run', '--config', temporaryFile('second.toml', second));
  expect(code).toBe(1);
  expect(stderr).toContain(`cannot listen on 127.0.0.1:${port}: EADDRINUSE`);
  const client = await openClient({ to: port });
  expect(await client.ask('hello')).toBe('alpha: hello');
});

test('an address that this machine does not have makes run exit with 1', async () => {
  const setup = toml({ listen: '192.0.2.1:5399', backends: ['127.0.0.1:5398'] });
  const { code, stderr } = await sozuUdp('run', '--config', temporaryFile('far.toml', setup));
  expect(code).toBe(1);
  expect(stderr).toContain('cannot listen on 192.0.2.1:5399: EADDRNOTAVAIL');
});

test('a reader that goes away leaves the exit code, and no stack', async () => {
  const file = temporaryFile('worrying.toml', WORRYING);
  const check = `"${process.execPath}" "${MAIN}" check --strict "${file}"`;
  const { stderr } = await runToEnd('sh', ['-c', `{ ${check}; echo "code $?" >&2; } | :`]);
  expect(stderr.trim()).toBe('code 1');
});

test.skipIf(!existsSync('/dev/full'))('run starts though its warnings cannot be told', async () => {
  const listen = `127.0.0.1:${await freePort()}`;
  const file = temporaryFile(
    'warned.toml',
    `activate_listeners = false\n${toml({ listen, backends: [] })}`,
  );
  const run = `exec "${process.execPath}" "${MAIN}" run --config "${file}" 2>/dev/full`;
  const proxy = new ProxyProcess(new Child('sh', ['-c', run]), file);
  await proxy.logged('started');
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 0 });
});

test('the installed command is found through a link, and gives way to node in the same process', async () => {
  const listen = `127.0.0.1:${await freePort()}`;
  const file = temporaryFile('proxy.toml', toml({ listen, backends: [] }));
  const link = join(dirname(file), 'sozu-udp');
  symlinkSync(COMMAND, link);
  const child = new Child(link, ['run', '--config', file]);
  const proxy = new ProxyProcess(child, file);
  await proxy.logged('started');
  const commandLine = readFileSync(`/proc/${child.pid}/cmdline`, 'utf8').split('\0');
  expect(commandLine.slice(0, 2)).toEqual(['node', '--single-threaded-gc']);
  expect((await proxy.softStop()).code).toBe(0);
  expect((await runToEnd(link, ['no-such-command'])).code).toBe(2);
});

const ANSWER = z.object({
  schema: z.literal(1),
  file: z.string(),
  ok: z.boolean(),
  problems: z.array(z.record(z.string(), z.unknown())),
});
const PACKAGE = z.object({ version: z.string() });
const PACKAGE_FILE = new URL('../../package.json', import.meta.url);

function sozuUdp(...words: readonly string[]): ReturnType<typeof runToEnd> {
  return runToEnd(process.execPath, [MAIN, ...words]);
}
