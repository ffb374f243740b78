/** Metrics of a real process: promtool and a real Prometheus read them, they are exact, and they only grow. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { startBackend } from './backend.ts';
import { Child, runToEnd } from './child.ts';
import { openClient, openClients } from './client.ts';
import { ADMIN, adminOf, get, getJson, scrape, sumOf } from './http.ts';
import { Mailbox } from './mailbox.ts';
import { needPeers } from './peers.ts';
import { freePort, freeTcpPort } from './ports.ts';
import { rewriteConfig, startProxy, temporaryFile, toml } from './proxy.ts';

const DASHBOARD = fileURLToPath(new URL('../../examples/grafana-dashboard.json', import.meta.url));
const RULES = fileURLToPath(new URL('../../examples/alerts.yml', import.meta.url));

test('promtool finds nothing to say of a scrape after traffic, nor of the rules', async (context) => {
  needPeers(context, 'promtool');
  const { url, port } = await started();
  for (const client of await openClients(3, { to: port })) await client.ask('hello');
  const { body } = await get(`${url}/metrics`);
  const file = temporaryFile('metrics.txt', body);
  expect(await runToEnd('sh', ['-c', `promtool check metrics < ${file}`])).toEqual({
    code: 0,
    stdout: '',
    stderr: '',
  });
  expect(await runToEnd('promtool', ['check', 'rules', RULES])).toMatchObject({ code: 0 });
});

test('Prometheus scrapes the proxy, knows what it forwarded, and takes every query of rules and dashboard', async (context) => {
  needPeers(context, 'prometheus');
  const { url, port } = await started();
  const client = await openClient({ to: port });
  for (let n = 0; n < 20; n += 1) await client.ask('hello');
  const api = await startPrometheus(new URL(url).host);
  expect(await valueOnceThere(api, 'up{job="sozu-udp"} == 1')).toBe(1);
  const forwarded = `sozu_udp_datagrams_forwarded_total{listener="127.0.0.1:${port}"}`;
  expect(await valueOnceThere(api, forwarded)).toBe(20);
  const queries = dashboardQueries();
  expect(queries.length).toBeGreaterThan(20);
  for (const query of queries) {
    const filled = query
      .replaceAll('$job', 'sozu-udp')
      .replaceAll('$instance', '.*')
      .replaceAll('$listener', '.*')
      .replaceAll('$__rate_interval', '1m');
    expect(await answerTo(api, filled), query).toMatchObject({ status: 'success' });
    if (!query.includes('rate(')) expect(await valueOnceThere(api, filled)).not.toBeNaN();
  }
  const rules = await getJson(`${api}/api/v1/rules`);
  expect(JSON.stringify(rules).match(/"type":"alerting"/g)).toHaveLength(
    readFileSync(RULES, 'utf8').match(/- alert: /g)?.length ?? 0,
  );
  expect(JSON.stringify(rules)).not.toContain('"health":"err"');
});

test('each datagram that was received is forwarded, returned, dropped for a reason, or waits', async () => {
  const { url, port, backend } = await started({ max_rx_datagram_size: 64, max_flows: 5 });
  const clients = await openClients(8, { to: port });
  for (let round = 0; round < 20; round += 1) {
    for (const client of clients) {
      await client.send('served on five flows, shed for the others');
      await client.send('x'.repeat(65));
      await client.send('');
    }
    await clients[0]!.send(`end ${round}`);
    await clients[0]!.replies.first((reply) => String(reply) === `alpha: end ${round}`, 'the end');
  }
  const series = await scrape(url);
  const dropped = (reason: string): number | undefined =>
    series.get(`sozu_udp_datagrams_dropped_total{listener="127.0.0.1:${port}",reason="${reason}"}`);
  expect(backend.arrivals.all).toHaveLength(20 * 6);
  expect(sumOf(series, 'sozu_udp_datagrams_forwarded_total')).toBe(20 * 6);
  expect([dropped('truncated'), dropped('invalid'), dropped('shed')]).toEqual([160, 160, 60]);
  expect(sumOf(series, 'sozu_udp_active_flows')).toBe(5);
  expectConserved(series);
});

test('what the kernel dropped of a listener is shown, and the rest adds up with it', async () => {
  const { url, port, proxy } = await started({ rcvbuf: 4_096 });
  const socket = createSocket('udp4');
  onTestFinished(() => void socket.close());
  // Stopped, so that nobody reads: what the kernel does not keep it must drop.
  proxy.signal('SIGSTOP');
  const sent = 300;
  for (let n = 0; n < sent; n += 1) {
    await new Promise<void>((resolve, reject) => {
      socket.send(Buffer.alloc(500), port, '127.0.0.1', (error) =>
        error === null ? resolve() : reject(error),
      );
    });
  }
  proxy.signal('SIGCONT');
  for (;;) {
    const series = await scrape(url);
    const lost = sumOf(series, 'sozu_udp_kernel_dropped_datagrams_total');
    const received = sumOf(series, 'sozu_udp_datagrams_received_client_total');
    if (lost + received < sent) continue;
    expect(lost).toBeGreaterThan(0);
    expect(lost + received).toBe(sent);
    break;
  }
  // One scrape asks the kernel and the data plane one after the other: the queue may be that of an instant earlier.
  while (sumOf(await scrape(url), 'sozu_udp_kernel_receive_queue_bytes') > 0);
});

test('no counter shrinks while listeners and clusters are removed and come back under traffic', async () => {
  const { url, port, backend, proxy } = await started();
  const [other, beta] = [await freePort(), await startBackend('beta')];
  const client = await openClient({ to: port });
  const config = (listen: readonly number[], cluster: string): string =>
    toml({ listen: listen.map((one) => `127.0.0.1:${one}`), backends: [backend, beta] })
      .replaceAll('clusters.e2e', `clusters.${cluster}`)
      .concat(ADMIN);
  let before = await scrape(url);
  let asked = 0;
  for (const [listen, cluster] of [
    [[port, other], 'e2e'],
    [[other], 'e2e'],
    [[port, other], 'x'],
    [[port], 'e2e'],
    [[other], 'x'],
    [[port], 'e2e'],
  ] as const) {
    await rewriteConfig(proxy, config(listen, cluster));
    if (listen.some((one) => one === port)) {
      await client.ask('hello');
      asked += 1;
    }
    const now = await scrape(url);
    const shrunk = [...before].filter(
      ([key, value]) => isCounter(key) && (now.get(key) ?? -1) < value,
    );
    expect(shrunk).toEqual([]);
    expectConserved(now);
    before = now;
  }
  const own = `sozu_udp_datagrams_returned_total{listener="127.0.0.1:${port}"}`;
  expect(before.get(own)).toBe(asked);
  expect(before.get('sozu_udp_config_generation')).toBe(7);
});

test('statsd is told under Sōzu’s names, and its deltas add up', async () => {
  const server = createSocket('udp4');
  onTestFinished(() => void server.close());
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
  const lines = new Mailbox<string>('statsd');
  server.on('message', (payload) => {
    for (const line of String(payload).split('\n')) lines.push(line);
  });
  const at = `127.0.0.1:${server.address().port}`;
  const { port, proxy } = await started({}, `[metrics]\naddress = "${at}"\nprefix = "edge"\n`);
  const client = await openClient({ to: port });
  for (let n = 0; n < 5; n += 1) await client.ask('hello');
  await lines.first((line) => line === 'edge.udp.active_flows:1|g', 'the gauge');
  for (let n = 0; n < 5; n += 1) await client.ask('hello');
  expect(await proxy.softStop()).toMatchObject({ code: 0 });
  // The last figures are sent before the end.
  await lines.first((line) => line === 'edge.udp.active_flows:0|g', 'the last gauge');
  const deltas = lines.all.flatMap((line) => {
    const [, delta] = /^edge\.udp\.datagrams\.in:(\d+)\|c$/.exec(line) ?? [];
    return delta === undefined ? [] : [Number(delta)];
  });
  expect(deltas.reduce((sum, delta) => sum + delta, 0)).toBe(10);
  expect(lines.all).toContain('edge.e2e.cluster.available_backends:1|g');
});

async function started(
  listener: Readonly<Record<string, number>> = {},
  more = '',
): Promise<{
  url: string;
  port: number;
  proxy: Awaited<ReturnType<typeof startProxy>>;
  backend: Awaited<ReturnType<typeof startBackend>>;
}> {
  const [port, backend] = [await freePort(), await startBackend('alpha')];
  const setup = toml({ listen: `127.0.0.1:${port}`, backends: [backend], listener });
  const proxy = await startProxy(`${setup}${ADMIN}${more}`);
  return { url: await adminOf(proxy), port, proxy, backend };
}

/** What its panels ask. */
function dashboardQueries(): readonly string[] {
  const dashboard: { panels: { targets: { expr: string }[] }[] } = JSON.parse(
    readFileSync(DASHBOARD, 'utf8'),
  );
  return dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
}

function expectConserved(series: ReadonlyMap<string, number>): void {
  const received =
    sumOf(series, 'sozu_udp_datagrams_received_client_total') +
    sumOf(series, 'sozu_udp_datagrams_received_backend_total');
  const ended =
    sumOf(series, 'sozu_udp_datagrams_forwarded_total') +
    sumOf(series, 'sozu_udp_datagrams_returned_total') +
    sumOf(series, 'sozu_udp_datagrams_dropped_total');
  expect(ended + sumOf(series, 'sozu_udp_queued_datagrams')).toBe(received);
}

function isCounter(series: string): boolean {
  return /^\w+_total(?:\{|$)/.test(series);
}

/** Scrapes `target` every second, with the rules; its API's address once it answers. */
async function startPrometheus(target: string): Promise<string> {
  const address = `127.0.0.1:${await freeTcpPort()}`;
  const config = temporaryFile(
    'prometheus.yml',
    `global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: ['${RULES}']
scrape_configs:
  - job_name: sozu-udp
    static_configs: [{ targets: ['${target}'] }]
`,
  );
  const prometheus = new Child('prometheus', [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(config, '..', 'data')}`,
    `--web.listen-address=${address}`,
  ]);
  await prometheus.stderr.first((line) => line.includes('Server is ready'), 'Prometheus');
  return `http://${address}`;
}

/** Scrapes come when Prometheus likes; nothing tells of them but their result. */
async function valueOnceThere(api: string, query: string): Promise<number> {
  for (;;) {
    const found = JSON.stringify(await answerTo(api, query));
    const [, value] = /"value":\[[\d.]+,"([^"]+)"\]/.exec(found) ?? [];
    if (value !== undefined) return Number(value);
    await pause(100);
  }
}

function answerTo(api: string, query: string): Promise<Readonly<Record<string, unknown>>> {
  return getJson(`${api}/api/v1/query?query=${encodeURIComponent(query)}`);
}
