/**
 * Traces of real processes: written on request and on a crash, replayed by the command line. How long the traffic lasts is in
 * SOZU_UDP_TRACE_SECONDS, 2 unless given.
 */
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { plantedBuild, simulate, type PlantedBuild } from '../simulator.ts';
import { startBackend } from './backend.ts';
import { Child } from './child.ts';
import { openClient, openClients, type Client } from './client.ts';
import { freePort } from './ports.ts';
import { MAIN, rewriteConfig, startProxy, toml, type Setup } from './proxy.ts';

const SECONDS = Number(process.env['SOZU_UDP_TRACE_SECONDS'] ?? '2');
const PROGRAM = fileURLToPath(new URL('recording-proxy.mjs', import.meta.url));

test(
  'a trace of mixed traffic with a reload replays at every input, and an off-by-one is located',
  async () => {
    const folder = temporaryFolder();
    const backends = await Promise.all(['alpha', 'beta'].map((name) => startBackend(name)));
    const mute = await startBackend('mute', { answers: 0 });
    const [dns, syslog] = [await freePort(), await freePort()];
    const setup: Setup = {
      listen: [`127.0.0.1:${dns}`, `127.0.0.1:${syslog}`],
      backends: [...backends, mute, '127.0.0.1:9'],
      top: { recorder_folder: folder, recorder_segment_size: 268_435_456 },
      listener: { front_timeout: 1, back_timeout: 1 },
      udp: { responses: 2, send_proxy_protocol: true },
    };
    const proxy = await startProxy(toml(setup), [PROGRAM]);
    const end = performance.now() + SECONDS * 1_000;
    const clients = await openClients(12, { to: dns });
    const senders = await openClients(4, { to: syslog });
    const traffic = [
      ...clients.map((client) => askUntil(end, client)),
      ...senders.map((client) => sendUntil(end, client)),
    ];
    await waitUntil(end - SECONDS * 500);
    await rewriteConfig(proxy, toml({ ...setup, backends: [...backends, mute] }));
    await Promise.all(traffic);
    proxy.signal('SIGUSR2');
    const { file } = await proxy.logged('trace written');
    const path = String(file);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toHaveLength(1);
    const replayed = await replay(MAIN, path);
    expect(replayed).toMatchObject({
      code: 0,
      report: { verdict: 'same', truncated: false, reason: 'request', schema: 1 },
    });
    expect(replayed.report['inputs']).toBeGreaterThan(SECONDS * 500);
    expect(replayed.report['replayed']).toBe(replayed.report['inputs']);
    expect(await simulate(['--replay', path])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/inputs replayed, \d+ upstream sockets: each brought what/),
    });
    const others = join(folder, 'for-others');
    const child = new Child(process.execPath, [MAIN, 'replay', path, '--anonymise', others]);
    expect(await child.exit).toMatchObject({ code: 0 });
    expect(statSync(others).mode & 0o777).toBe(0o600);
    expect(await replay(MAIN, others)).toMatchObject({ code: 0, report: { verdict: 'same' } });

    const search = 'return responsesSeen < (';
    const build = planted('core/flow.js', search, 'return responsesSeen <= (');
    expect(await replay(join(build.dist, 'shell/main.js'), path)).toMatchObject({
      code: 1,
      report: { verdict: 'differs', difference: { kind: 'outputs', what: /^backend to socket/ } },
    });
  },
  SECONDS * 1_000 + 120_000,
);

test('a bug costs one listener its flows, and a trace tells; the fourth in a minute ends the process', async () => {
  const folder = temporaryFolder();
  const head = 'onClientDatagram(src, local, payload, backends, now) {';
  const bug = `${head} assert(payload.length !== 13, 'planted');`;
  const main = join(planted('core/manager.js', head, bug).dist, 'shell/main.js');
  const backend = await startBackend('alpha');
  const [port, other] = [await freePort(), await freePort()];
  const setup: Setup = {
    listen: [`127.0.0.1:${port}`, `127.0.0.1:${other}`],
    backends: [backend],
    top: { recorder_folder: folder },
  };
  const proxy = await startProxy(toml(setup), [main, 'run', '--config']);
  const client = await openClient({ to: port });
  const spared = await openClient({ to: other });
  const before = await spared.ask('a question');
  await client.ask('a question');
  await client.send('thirteen long');
  expect(
    await proxy.logged('a bug; the listener was started afresh, without its flows'),
  ).toMatchObject({ listener: `127.0.0.1:${port}`, flowsClosed: 1, claim: 'planted' });
  const { file: told } = await proxy.logged('what led to the bug is in the trace');
  await client.ask('and on');
  const after = await spared.ask('a question');
  expect([before, after]).toEqual([after, before]);
  expect(await replay(main, String(told))).toMatchObject({ code: 0, report: { verdict: 'same' } });
  expect(await replay(MAIN, String(told))).toMatchObject({
    code: 1,
    report: { reason: 'assertion', difference: { kind: 'outputs', what: /: 13 bytes$/ } },
  });
  for (let more = 0; more < 3; more += 1) await client.send('thirteen long');
  const { file } = await proxy.logged('a bug; what led to it is in the trace');
  expect(await proxy.exit).toEqual({ code: 70, signal: null });
  expect(statSync(String(file)).mode & 0o777).toBe(0o600);
  expect(await replay(main, String(file))).toMatchObject({
    code: 0,
    report: {
      reason: 'assertion',
      failure: { what: /: 13 bytes$/, thrown: 'AssertionError: planted' },
    },
  });
});

test('what is no trace is refused with a fix, and exit code 2', async () => {
  const absent = join(temporaryFolder(), 'absent.trace');
  expect(existsSync(absent)).toBe(false);
  for (const [file, said] of [
    [absent, /no such file/],
    [MAIN, /unreadable at byte 0: not a trace of sozu-udp\n {2}fix: name a file that/],
  ] as const) {
    const child = new Child(process.execPath, [MAIN, 'replay', file]);
    expect((await child.exit).code).toBe(2);
    expect(child.stdout.all.join('\n')).toMatch(said);
  }
});

interface Replay {
  readonly code: number | null;
  readonly report: Readonly<Record<string, unknown>>;
}

async function replay(main: string, file: string): Promise<Replay> {
  const child = new Child(process.execPath, [main, 'replay', '--json', file]);
  const { code } = await child.exit;
  const parsed: unknown = JSON.parse(child.stdout.all.join('\n'));
  if (typeof parsed !== 'object' || parsed === null) throw new Error('a report is a table');
  return { code, report: { ...parsed } };
}

function planted(file: string, search: string, replace: string): PlantedBuild {
  const build = plantedBuild([{ file, search, replace }]);
  onTestFinished(() => build.dispose());
  return build;
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sozu-udp-traces-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** One question after the other. Some are never answered: a few at a time are under way. */
async function askUntil(end: number, client: Client): Promise<void> {
  for (let n = 0; performance.now() < end; n += 1) {
    await client.send(`question ${n}`);
    await waitUntil(performance.now() + 1);
  }
}

async function sendUntil(end: number, client: Client): Promise<void> {
  for (let n = 0; performance.now() < end; n += 1) {
    await client.send(`line ${n}`.repeat(1 + (n % 50)));
    await waitUntil(performance.now() + 2);
  }
}

function waitUntil(time: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, Math.max(0, time - performance.now()));
  });
}
