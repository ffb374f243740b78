/** The socket of the control commands, and clients of every kind at it. */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { pino } from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { freePort } from '../../test/e2e/ports.ts';
import { openRaw, parsed, type Line } from '../../test/raw-client.ts';
import { readEnvironment } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import { Proxy } from '../proxy.ts';
import { Reloader } from '../reloader.ts';
import { EVENT_BYTES_MAX } from './connection.ts';
import { ControlServer, SERVER_LIMITS, type ServerLimits } from './server.ts';
import { ControlService } from './service.ts';

test('the socket and the folder that is made for it are the owner’s alone, and the socket goes with the proxy', async () => {
  const { path, server } = await startControl();
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
  server.close();
  expect(existsSync(path)).toBe(false);
});

test('a socket that a process left behind is replaced, one that answers is not', async () => {
  const path = join(temporaryFolder(), 'control.sock');
  const first = createServer();
  first.listen({ path, exclusive: true });
  await once(first, 'listening');
  await expect(ControlServer.open(path)).rejects.toThrow('another process serves');
  const stale = leftBehind();
  const second = await ControlServer.open(stale);
  expect(statSync(stale).isSocket()).toBe(true);
  second.close();
  first.close();
});

test('a file in the place of the socket stays what it is', async () => {
  const path = join(temporaryFolder(), 'control.sock');
  writeFileSync(path, 'precious');
  await expect(ControlServer.open(path)).rejects.toThrow('is no socket');
  expect(statSync(path).isFile()).toBe(true);
});

test('a folder where others may write, or a path that the kernel would cut, is refused', async () => {
  const folder = join(temporaryFolder(), 'open');
  mkdirSync(folder);
  chmodSync(folder, 0o777);
  await expect(ControlServer.open(join(folder, 'x'))).rejects.toThrow('others may write');
  const long = join(temporaryFolder(), 'x'.repeat(120));
  await expect(ControlServer.open(long)).rejects.toThrow('longer than 107 bytes');
});

test('requests are answered in order, however they arrive', async () => {
  const { path } = await startControl();
  const client = await openRaw(path);
  const line = (id: number): string => `{"v":1,"id":${id},"command":"cluster list"}\n`;
  client.socket.write(line(1) + line(2) + line(3).slice(0, 9));
  client.socket.write(line(3).slice(9));
  for (const id of [1, 2, 3]) expect(await client.heard.next()).toMatchObject({ id, ok: true });
});

test('of all clients together one request is done in a turn of the loop, so that datagrams have theirs', async () => {
  let [turn, isOver] = [0, false];
  const count = (): void => {
    turn += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  onTestFinished(() => void (isOver = true));
  const turns: number[] = [];
  const { path, proxy } = await startControl();
  const command = proxy.command.bind(proxy);
  vi.spyOn(proxy, 'command').mockImplementation((...asked) => {
    turns.push(turn);
    command(...asked);
  });
  const clients = await Promise.all(Array.from({ length: 16 }, () => openRaw(path)));
  await Promise.all(
    clients.flatMap((client) => Array.from({ length: 10 }, () => client.ask('cluster list'))),
  );
  expect(turns).toHaveLength(160);
  expect(new Set(turns).size).toBe(160);
});

test.each([
  ['garbage', 'GET / HTTP/1.1\r\n\r\n'],
  ['bytes that are no text', Buffer.from([0xff, 0xfe, 10])],
  ['a request of another version', '{"v":9,"id":1,"command":"status"}\n'],
])('%s is refused and the connection closed', async (_, bytes) => {
  const { path } = await startControl();
  const client = await openRaw(path);
  client.socket.write(bytes);
  expect(await client.heard.next()).toMatchObject({ ok: false, error: { kind: 'BadRequest' } });
  await client.closed;
});

test('half a line is refused when its sender ends, and closed when he never does', async () => {
  const { path } = await startControl({ ...SERVER_LIMITS, idleMilliseconds: 50 });
  const ended = await openRaw(path);
  ended.socket.end('{"v":1,"id":1,');
  expect(await ended.heard.next()).toMatchObject({ ok: false });
  await ended.closed;
  const silent = await openRaw(path);
  silent.socket.write('{"v":1,"id":1,');
  await silent.closed;
});

test('a line of 100 MB is refused after its first megabyte, and no more of it is read', async () => {
  const { path } = await startControl({ ...SERVER_LIMITS, idleMilliseconds: 200 });
  const client = await openRaw(path);
  const piece = Buffer.alloc(1 << 20, 'x');
  let accepted = 0;
  const onWritten = (error: Error | null | undefined): void => {
    if (!(error instanceof Error)) accepted += 1;
  };
  for (let sent = 0; sent < 100; sent += 1) client.socket.write(piece, onWritten);
  await client.closed;
  expect(accepted).toBeLessThan(8);
  const next = await openRaw(path);
  expect(await next.ask('status')).toMatchObject({ ok: true });
});

test('of too many clients the last are told so, and the first go on', async () => {
  const { path } = await startControl({ ...SERVER_LIMITS, connections: 4 });
  const first = await openRaw(path);
  for (let count = 1; count < 4; count += 1) await openRaw(path);
  const late = await openRaw(path);
  expect(await late.heard.next()).toMatchObject({ ok: false, error: { kind: 'Busy' } });
  await late.closed;
  expect(await first.ask('status')).toMatchObject({ ok: true });
  first.socket.destroy();
  await first.closed;
});

test('whoever says nothing is closed, unless he waits for events', async () => {
  const { path, proxy } = await startControl({ ...SERVER_LIMITS, idleMilliseconds: 50 });
  const hearer = await openRaw(path);
  expect(await hearer.ask('events')).toMatchObject({ ok: true });
  const silent = await openRaw(path);
  await silent.closed;
  proxy.events.publish({ kind: 'ClusterRecovered', cluster: 'c', available: 1 });
  const line = await hearer.heard.first((one) => 'event' in one, 'an event');
  expect(line).toMatchObject({ v: 1, event: { kind: 'ClusterRecovered', cluster: 'c' } });
});

test('only so many hear events, so that there is room for those who act', async () => {
  const { path } = await startControl({ ...SERVER_LIMITS, hearers: 1 });
  const [one, other] = [await openRaw(path), await openRaw(path)];
  expect(await one.ask('events')).toMatchObject({ ok: true });
  expect(await one.ask('events')).toMatchObject({ ok: true });
  expect(await other.ask('events')).toMatchObject({ ok: false, error: { kind: 'Busy' } });
  one.socket.destroy();
  await one.closed;
});

test('a slow reader of events is told how many he missed, and what waits for him is bounded', async () => {
  const { path, proxy } = await startControl();
  const client = await openRaw(path);
  expect(await client.ask('events')).toMatchObject({ ok: true });
  client.socket.pause();
  const count = 20_000;
  const cluster = 'c'.repeat(200);
  for (let sent = 0; sent < count; sent += 1) {
    proxy.events.publish({ kind: 'ClusterRecovered', cluster, available: sent });
  }
  client.socket.resume();
  const line = await client.heard.first((one) => 'missed' in one, 'how many were missed');
  const got = client.heard.all.filter((one) => 'event' in one).length;
  expect(got + Number(line['missed'])).toBe(count);
  expect(got * 200).toBeLessThan(EVENT_BYTES_MAX * 4);
});

test('whoever never reads is closed, and his place is free again', async () => {
  const { path, proxy } = await startControl({
    ...SERVER_LIMITS,
    hearers: 1,
    idleMilliseconds: 50,
  });
  const client = await openRaw(path);
  expect(await client.ask('events')).toMatchObject({ ok: true });
  client.socket.pause();
  const cluster = 'c'.repeat(200);
  for (let sent = 0; sent < 20_000; sent += 1) {
    proxy.events.publish({ kind: 'ClusterRecovered', cluster, available: sent });
  }
  const next = await openRaw(path);
  for (let reply = await next.ask('events'); reply['ok'] !== true;) {
    reply = await next.ask('events');
  }
});

/** The path of a socket whose process was killed. */
function leftBehind(): string {
  const path = join(temporaryFolder(), 'stale.sock');
  const script = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
  spawnSync(process.execPath, ['-e', script]);
  expect(statSync(path).isSocket()).toBe(true);
  return path;
}

interface ControlRig {
  readonly proxy: Proxy;
  readonly reloader: Reloader;
  readonly server: ControlServer;
  /** Of the socket. */
  readonly path: string;
  /** Of the configuration: one listener, `listener`, that leads to cluster `c` with two backends. */
  readonly file: string;
  readonly listener: string;
  /** Lines of the log. */
  readonly log: Line[];
}

async function startControl(limits?: ServerLimits): Promise<ControlRig> {
  const folder = temporaryFolder();
  const file = join(folder, 'proxy.toml');
  const listener = `127.0.0.1:${await freePort()}`;
  writeFileSync(file, configOf(listener));
  const { config, settings } = loadConfig(file, readEnvironment());
  if (config === undefined || settings === undefined) throw new Error('the file is right');
  const lines: Line[] = [];
  const log = pino({}, { write: (line) => void lines.push(parsed(line)) });
  const path = join(folder, 'run', 'control.sock');
  const server = await ControlServer.open(path, limits);
  const proxy = new Proxy(config, log);
  const reloader = new Reloader({ file, proxy, log, settings });
  const service = new ControlService({ proxy, reloader, log, version: 'test' });
  server.serve({ service, events: proxy.events, now: () => proxy.now() });
  onTestFinished(async () => {
    server.close();
    proxy.stop();
    await proxy.stopped;
  });
  return { proxy, reloader, server, path, file, listener, log: lines };
}

/** A configuration with one listener. */
function configOf(listener: string): string {
  return `
[[listeners]]
protocol = "udp"
address = "${listener}"
[clusters.c]
protocol = "tcp"
load_balancing = "HRW"
frontends = [{ address = "${listener}" }]
backends = [{ address = "127.0.0.1:9" }, { address = "127.0.0.2:9" }]
[clusters.c.udp]
preset = "dns"
`;
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sozu-udp-control-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
