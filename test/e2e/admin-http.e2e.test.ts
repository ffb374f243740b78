/** The HTTP server of a real process: every path, every way to be refused, and a data path that does not notice. */
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startBackend, type Backend } from './backend.ts';
import { runToEnd } from './child.ts';
import { openClient, type Client } from './client.ts';
import {
  ADMIN,
  adminOf,
  askWhile,
  closed,
  dial,
  follow,
  get,
  getJson,
  raw,
  scrape,
  sumOf,
} from './http.ts';
import { freePort } from './ports.ts';
import {
  MAIN,
  rewriteConfig,
  startProxy,
  temporaryFile,
  toml,
  type ProxyProcess,
} from './proxy.ts';

const TOKEN = 'a-token-of-sixteen-and-more';

test('every path answers, and tells browsers to stay out', async () => {
  const { url, client, port } = await start();
  await client.ask('hello');
  expect(JSON.parse((await get(`${url}/live`)).body)).toEqual({ live: true });
  expect(JSON.parse((await get(`${url}/ready`)).body)).toEqual({ ready: true, reasons: [] });
  expect(await getJson(`${url}/status`)).toMatchObject({
    v: 1,
    ready: true,
    generation: 1,
    stopping: false,
    listeners: [{ address: `127.0.0.1:${port}`, active: true, flows: 1 }],
    clusters: [{ cluster: 'e2e', backends: 1, available: 1 }],
    backends: [{ cluster: 'e2e', health: 'up', state: 'active', flows: 1 }],
  });
  const page = await getJson(`${url}/flows`);
  expect(page).toMatchObject({
    v: 1,
    flows: [
      {
        listener: `127.0.0.1:${port}`,
        client: `127.0.0.1:${client.port}`,
        requests: 1,
        responses: 1,
      },
    ],
  });
  expect(page['next']).toBeUndefined();
  const metrics = await get(`${url}/metrics`);
  expect(metrics.headers).toMatchObject({
    'content-type': 'text/plain; version=0.0.4; charset=utf-8',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
  });
  const head = await get(`${url}/metrics`, {}, 'HEAD');
  expect([head.status, head.body]).toEqual([200, '']);
});

test('flows come a part at a time, and by filter', async () => {
  const { url, client, port } = await start();
  const others = await Promise.all(
    Array.from({ length: 40 }, () => openClient({ to: port, from: '127.0.0.2' })),
  );
  for (const one of [client, ...others]) await one.ask('hello');
  const flowsAt = async (query: string): Promise<unknown> => {
    return (await getJson(`${url}/flows?${query}`))['flows'];
  };
  expect(await flowsAt('')).toHaveLength(41);
  expect(await flowsAt('after=0.30')).toHaveLength(11);
  expect(await flowsAt('after=9.0')).toHaveLength(0);
  expect(await flowsAt('source=127.0.0.2')).toHaveLength(40);
  expect(await flowsAt(`listener=127.0.0.1:${port}&cluster=e2e`)).toHaveLength(41);
  expect(await flowsAt('cluster=none')).toHaveLength(0);
  for (const query of [
    'after=x',
    'after=1.2.3',
    'source=here',
    'listener=1',
    'limit=3',
    '__proto__=1',
  ])
    expect((await get(`${url}/flows?${query}`)).status, query).toBe(400);
});

test('what a stranger may try is refused and counted, while each datagram is answered', async () => {
  const { url, client } = await start();
  const head = (method: string, path: string, ...more: string[]): string =>
    [`${method} ${path} HTTP/1.1`, ...more, 'Connection: close', '', ''].join('\r\n');
  const local = 'Host: localhost';
  const tries: readonly (readonly [string, RegExp | string])[] = [
    [head('GET', '/metrics', 'Host: evil.example'), /^HTTP\/1.1 421 .*"host"/s],
    [head('GET', '/metrics', 'Host: 127.0.0.1.evil.example:80'), /^HTTP\/1.1 421 /],
    [head('GET', '/metrics'), /^HTTP\/1.1 400 /],
    [head('GET', '/metrics', local, 'Host: evil.example'), /^HTTP\/1.1 421 /],
    [
      head('POST', '/status', local, 'Content-Length: 2') + '{}',
      /^HTTP\/1.1 405 .*allow: GET, HEAD/is,
    ],
    [head('DELETE', '/flows', local), /^HTTP\/1.1 405 /],
    [head('OPTIONS', '/flows', local), /^HTTP\/1.1 405 /],
    [head('GET', '/flows', local, 'Content-Length: 2') + '{}', /^HTTP\/1.1 413 /],
    [head('GET', '/flows', local, 'Transfer-Encoding: chunked') + '0\r\n\r\n', /^HTTP\/1.1 413 /],
    [head('GET', '/', local), /^HTTP\/1.1 404 /],
    [head('GET', '/metrics/', local), /^HTTP\/1.1 404 /],
    [head('GET', '/../../etc/passwd', local), /^HTTP\/1.1 404 /],
    [head('GET', '/metrics/../status', local), /^HTTP\/1.1 404 /],
    [head('GET', '/%2e%2e/status', local), /^HTTP\/1.1 404 /],
    [head('GET', '/__proto__', local), /^HTTP\/1.1 404 /],
    [head('GET', 'http://evil.example/metrics', local), /^HTTP\/1.1 404 /],
    [head('GET', '/metrics', local, `X: ${'x'.repeat(20_000)}`), ''],
    [head('GET', `/${'x'.repeat(20_000)}`, local), ''],
    ['\0\x01\x02 not HTTP at all\r\n\r\n', ''],
    [`GET /metrics HTTP/9.9\r\n${local}\r\n\r\n`, ''],
  ];
  const work = async (): Promise<void> => {
    for (const [bytes, expected] of tries) {
      const answer = await raw(url, bytes);
      if (expected === '') expect(answer, bytes.slice(0, 60)).toBe('');
      else expect(answer, bytes.slice(0, 60)).toMatch(expected);
    }
  };
  expect(await askWhile(client, 'alpha', work())).toBeGreaterThan(0);
  const series = await scrape(url);
  const refused = (reason: string): number | undefined =>
    series.get(`sozu_udp_admin_refused_total{reason="${reason}"}`);
  expect(refused('host')).toBe(3);
  expect(refused('method')).toBe(3);
  expect(refused('body')).toBe(2);
  expect(refused('path')).toBe(7);
  expect(refused('malformed')).toBeGreaterThanOrEqual(4);
  await expectNothingLost(url);
});

test('a thousand connections that never finish a request are closed, and the next scrape is served', async () => {
  const { url, client } = await start();
  const many = Array.from({ length: 1_000 }, (_, n) => {
    const socket = dial(url);
    socket.resume();
    if (n % 2 === 0) socket.write('GET /metrics HTTP/1.1\r\nHost: local');
    return closed(socket);
  });
  expect(await askWhile(client, 'alpha', Promise.all(many))).toBeGreaterThan(0);
  const series = await scrape(url);
  const dropped = series.get('sozu_udp_admin_refused_total{reason="connections"}') ?? 0;
  expect(dropped).toBeGreaterThanOrEqual(900);
  expect(dropped).toBeLessThan(1_000);
  await expectNothingLost(url);
});

test('events are told as they happen, to eight readers and not to a ninth', async () => {
  const { url, proxy, port, backend } = await start();
  const streams = await Promise.all(Array.from({ length: 8 }, () => follow(url)));
  expect((await get(`${url}/events`)).status).toBe(503);
  const beta = await startBackend('beta');
  await rewriteConfig(proxy, configOf(port, [backend, beta]));
  for (const events of streams) {
    expect(await events.first(({ kind }) => kind === 'Availability', 'availability')).toEqual({
      kind: 'Availability',
      cluster: 'e2e',
      available: 2,
      total: 2,
    });
    const reload = await events.first(({ kind }) => kind === 'Reload', 'a reload');
    expect(reload).toMatchObject({ cause: 'signal', ok: true });
  }
});

test('a reload that was refused is told by a metric and by an event', async () => {
  const { url, proxy } = await start();
  const events = await follow(url);
  writeFileSync(proxy.file, 'not = [a');
  proxy.signal('SIGHUP');
  expect(await events.first(({ kind }) => kind === 'Reload', 'a reload')).toMatchObject({
    ok: false,
  });
  const series = await scrape(url);
  expect(sumOf(series, 'sozu_udp_config_last_reload_successful')).toBe(0);
  expect(series.get('sozu_udp_config_reloads_total{reason="refused"}')).toBe(1);
  expect(sumOf(series, 'sozu_udp_config_generation')).toBe(1);
});

test('a table that a reload changes applies from the next start, and that is said', async () => {
  const { url, proxy, port, backend } = await start();
  const told = 'changed in the file: it applies from the next start';
  await rewriteConfig(proxy, configOf(port, [backend, await startBackend('beta')]));
  expect(proxy.logs.all.filter(({ msg }) => msg === told)).toEqual([]);
  await rewriteConfig(proxy, configOf(port, [backend], 'allowed_hosts = ["lb.example.com"]\n'));
  expect(await proxy.logged(told)).toMatchObject({ setting: 'admin' });
  expect((await get(`${url}/live`, { host: 'lb.example.com' })).status).toBe(421);
  expect((await get(`${url}/live`)).status).toBe(200);
});

test('with a token, only who knows it is answered, and orchestrators need none', async () => {
  const file = tokenFile();
  const { url } = await start(`token_file = "${file}"\n`);
  for (const path of ['/metrics', '/status', '/flows', '/events']) {
    expect((await get(`${url}${path}`)).status, path).toBe(401);
    const wrong = await get(`${url}${path}`, { authorization: `Bearer ${TOKEN}x` });
    expect([wrong.status, wrong.headers['www-authenticate']], path).toEqual([401, 'Bearer']);
  }
  for (const path of ['/live', '/ready']) expect((await get(`${url}${path}`)).status).toBe(200);
  const known = await get(`${url}/metrics`, { authorization: `Bearer ${TOKEN}` });
  expect(known.body).toContain('sozu_udp_admin_refused_total{reason="token"} 8\n');
});

test('not ready without a backend that may be chosen, nor while it drains; alive all the time', async () => {
  const health = { mode: 'UDP_PROBE', udp_probe_payload: 'p', fall: 1, fail_open: false };
  const timing = { probe_interval_seconds: 1, probe_timeout_seconds: 1 };
  const { url, client, proxy, backend } = await start('', { ...health, ...timing }, 30);
  await client.ask('a flow that keeps the drain open');
  expect((await get(`${url}/ready`)).status).toBe(200);
  await backend.stop();
  await proxy.logged('no backend is available: new flows are refused');
  const down = await get(`${url}/ready`);
  expect(down.status).toBe(503);
  expect(down.body).toContain('no listener leads to a backend that may be chosen');
  proxy.signal('SIGTERM');
  await proxy.logged('draining');
  const draining = await get(`${url}/ready`);
  expect([draining.status, (await get(`${url}/live`)).status]).toEqual([503, 200]);
  expect(draining.body).toContain('draining');
  expect(sumOf(await scrape(url), 'sozu_udp_stopping')).toBe(1);
  proxy.signal('SIGTERM');
  expect((await proxy.exit).code).toBe(0);
});

test('a proxy ends at once although readers are connected', async () => {
  const { url, proxy } = await start();
  await follow(url);
  const idle = dial(url);
  idle.resume();
  await once(idle, 'connect');
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 0 });
});

test('nothing is started without the token file that is named, or where the port is taken', async () => {
  const port = await freePort();
  const backend = await startBackend('alpha');
  const missing = configOf(port, [backend], 'token_file = "/nowhere/token"\n');
  expect(await failed(missing)).toMatchObject({ code: 1, stderr: /no token .*\/nowhere\/token/ });
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const taken = server.address();
  const at = `127.0.0.1:${typeof taken === 'object' ? taken?.port : taken}`;
  const result = await failed(configOf(port, [backend]).replace('127.0.0.1:0', at));
  expect(result).toMatchObject({ code: 1 });
  expect(result.stderr).toContain(`cannot listen on http://${at}: EADDRINUSE`);
});

interface Started {
  readonly proxy: ProxyProcess;
  readonly url: string;
  readonly port: number;
  readonly client: Client;
  readonly backend: Backend;
}

async function start(
  admin = '',
  health?: Readonly<Record<string, string | number | boolean>>,
  grace = 1,
): Promise<Started> {
  const [port, backend] = [await freePort(), await startBackend('alpha')];
  const proxy = await startProxy(configOf(port, [backend], admin, health, grace));
  return {
    proxy,
    url: await adminOf(proxy),
    port,
    client: await openClient({ to: port }),
    backend,
  };
}

function configOf(
  port: number,
  backends: readonly Backend[],
  admin = '',
  health?: Readonly<Record<string, string | number | boolean>>,
  grace = 1,
): string {
  const setup = { listen: `127.0.0.1:${port}`, backends, top: { grace } };
  return `${toml({ ...setup, ...(health === undefined ? {} : { health }) })}${ADMIN}${admin}`;
}

async function expectNothingLost(url: string): Promise<void> {
  const series = await scrape(url);
  expect(sumOf(series, 'sozu_udp_datagrams_dropped_total')).toBe(0);
  expect(sumOf(series, 'sozu_udp_kernel_dropped_datagrams_total')).toBe(0);
  expect(sumOf(series, 'sozu_udp_datagrams_returned_total')).toBe(
    sumOf(series, 'sozu_udp_datagrams_received_client_total'),
  );
}

async function failed(config: string): Promise<{ code: number | null; stderr: string }> {
  const file = temporaryFile('proxy.toml', config);
  return runToEnd(process.execPath, [MAIN, 'run', '--config', file]);
}

function tokenFile(): string {
  const file = temporaryFile('token', `${TOKEN}\n`);
  chmodSync(file, 0o600);
  return file;
}
