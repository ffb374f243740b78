/** What the operating system refuses: ports that are closed, sockets without room, descriptors that have run out. */
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import { startBackend } from './backend.ts';
import { runNow, runToEnd } from './child.ts';
import { openClient, openClients } from './client.ts';
import { needPeers, needRoot } from './peers.ts';
import { freePort } from './ports.ts';
import { startProxy, temporaryFile, toml } from './proxy.ts';

test('a closed port ends no flow: what is sent once the backend is up arrives, on the same socket', async () => {
  const port = await freePort();
  const address = { port: await freePort() };
  const witness = await startBackend('witness');
  let alpha = await startBackend('alpha', address);
  const proxy = await startProxy(toml({ listen: `127.0.0.1:${port}`, backends: [alpha, witness] }));
  const [client, bystander] = [await openClient({ to: port }), await openClient({ to: port })];
  await client.ask('opening');
  const upstream = (await alpha.arrivals.next()).from.port;
  for (let lost = 0; lost < 10; lost += 1) {
    await alpha.stop();
    for (let sent = 0; sent < lost; sent += 1) await client.send('nobody is there');
    // Forwarded in order, but what comes behind a refusal waits for the next turn: after three round trips all were refused.
    for (let times = 0; times < 3; times += 1) {
      expect(await bystander.ask('hello')).toBe('witness: hello');
    }
    alpha = await startBackend('alpha', address);
    expect(await client.ask(`after ${lost}`)).toBe(`alpha: after ${lost}`);
    expect((await alpha.arrivals.next()).from.port).toBe(upstream);
  }
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 2 });
});

test('a backend that was never there gets the first datagram after it came up', async () => {
  const port = await freePort();
  const address = { port: await freePort() };
  const witness = await startBackend('witness');
  await startProxy(
    toml({ listen: `127.0.0.1:${port}`, backends: [`127.0.0.1:${address.port}`, witness] }),
  );
  const [client, bystander] = [await openClient({ to: port }), await openClient({ to: port })];
  await client.send('nobody is there');
  expect(await bystander.ask('hello')).toBe('witness: hello');
  await startBackend('alpha', address);
  expect(await client.ask('now')).toBe('alpha: now');
});

test('without descriptors new flows are refused and counted, and old ones go on', async (context) => {
  needPeers(context, 'prlimit');
  const backend = await startBackend('alpha');
  const port = await freePort();
  const setup = toml({
    listen: `127.0.0.1:${port}`,
    backends: [backend],
    listener: { max_flows: 1_000 },
  });
  const proxy = await startProxy(setup, [fileOf('counting-proxy.mjs')]);
  // Only now: loading a program takes many descriptors for a moment.
  runNow('prlimit', ['--pid', String(proxy.child.pid), '--nofile=60:60']);
  const clients = await openClients(100, { to: port });
  for (const client of clients) await client.send(String(client.port));
  // Forwarded in order: when this answer is here, all the others were served or refused.
  await clients[0]?.ask('again');
  const served = clients.filter(({ port: own }) => backend.heard.includes(String(own)));
  const refused = clients.length - served.length;
  expect(served.length).toBeGreaterThan(0);
  expect(refused).toBeGreaterThan(50);
  for (const client of served) {
    expect(await client.ask('and again')).toBe(
      `alpha: ${client === clients[0] ? 'again' : client.port}`,
    );
  }
  proxy.signal('SIGTERM');
  const { counters, unaccounted } = COUNTED.parse(await proxy.logged('counted'));
  expect(unaccounted).toBe(0);
  expect(counters).toMatchObject({
    flowsShed: refused,
    flowsCreated: served.length + counters.upstreamOpenFailed,
    droppedUnknownFlow: counters.upstreamOpenFailed,
    droppedShed: refused - counters.upstreamOpenFailed,
  });
  // After one open that failed, others are not tried for a while: what they cost would be the live flows' loss.
  expect(counters.upstreamOpenFailed).toBeGreaterThan(0);
  expect(counters.droppedShed).toBeGreaterThan(0);
  expect(await proxy.exit).toEqual({ code: 0, signal: null });
  const warnings = proxy.logs.all.filter(({ errno }) => errno === 'EMFILE');
  expect(warnings.length).toBeGreaterThan(0);
  expect(warnings.length).toBeLessThanOrEqual(2);
});

test('64 sends that would block wait and arrive in order; what comes after them is dropped and counted', async (context) => {
  needPeers(context, 'ip', 'tc');
  needRoot(context);
  const namespace = openNamespace();
  const setup = toml({ listen: '127.0.0.1:5300', backends: ['127.0.0.1:5301'] });
  const program = fileOf('blocked-sends.mjs');
  const file = temporaryFile('proxy.toml', setup);
  const inside = ['netns', 'exec', namespace, process.execPath, program, file];
  const { stdout, stderr, code } = await runToEnd('ip', inside);
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
  const { burst, blocked, end, heard } = FIGURES.parse(JSON.parse(stdout));
  process.stdout.write(
    `blocked sends: of ${burst} datagrams ${blocked.droppedWqFull} dropped as wq_full\n`,
  );
  expect(blocked).toMatchObject({ clientReceived: burst + 1, unaccounted: 64 });
  expect(blocked.droppedWqFull).toBeGreaterThan(0);
  expect(end).toMatchObject({
    forwarded: blocked.forwarded + 64 + 1,
    droppedWqFull: blocked.droppedWqFull,
    unaccounted: 0,
  });
  // Numbers begin at 0, and the last one that was handed over waits in the runtime: it arrives with the 64 behind it.
  const first = blocked.forwarded - 1;
  const waited = Array.from({ length: 1 + 64 }, (_, at) => first + at);
  expect(heard.slice(-66)).toEqual([...waited, burst + 1]);
  expect(heard).toEqual([...new Set(heard)].sort((one, other) => one - other));
});

test.for([
  { from: 'the address the kernel takes', sources: [], flows: 20 },
  { from: 'one address', sources: ['127.0.0.1'], flows: 20 },
  { from: 'three', sources: ['127.0.0.1', '127.0.0.2', '127.0.0.3'], flows: 60 },
])('20 ephemeral ports carry $flows flows to five backends from $from', async (row, context) => {
  needPeers(context, 'ip');
  needRoot(context);
  const namespace = openNamespace();
  const range = 'net.ipv4.ip_local_port_range=40000 40019';
  runNow('ip', ['netns', 'exec', namespace, 'sysctl', '-qw', range]);
  const backends = [1, 2, 3, 4, 5].map((number) => `127.0.0.1:530${number}`);
  const udp = { upstream_source: row.sources };
  const file = temporaryFile('proxy.toml', toml({ listen: '127.0.0.1:5300', backends, udp }));
  const program = [process.execPath, fileOf('port-range.mjs'), file];
  const inside = ['netns', 'exec', namespace, ...program];
  const { stdout, stderr, code } = await runToEnd('ip', inside);
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
  const { flows, counters, clients } = PORTS.parse(JSON.parse(stdout));
  const sources = row.sources.length === 0 ? ['127.0.0.1'] : row.sources;
  expect(flows).toEqual(Object.fromEntries(sources.map((source) => [source, 20])));
  expect(counters).toMatchObject({
    forwarded: row.flows,
    droppedPortExhausted: clients - row.flows,
    flowsShed: clients - row.flows,
  });
  expect(counters.upstreamOpenFailed).toBeGreaterThan(0);
  expect(counters.upstreamOpenFailed).toBeLessThan(clients - row.flows);
});

/** What counting-proxy.mjs logs in the end. */
const COUNTED = z.object({
  counters: z.looseObject({ upstreamOpenFailed: z.number(), droppedShed: z.number() }),
  unaccounted: z.number(),
});
/** What port-range.mjs prints. */
const PORTS = z.object({
  flows: z.record(z.string(), z.number()),
  counters: z.looseObject({ upstreamOpenFailed: z.number() }),
  clients: z.number(),
});
const COUNTERS = z.object({
  clientReceived: z.number(),
  forwarded: z.number(),
  droppedWqFull: z.number(),
  unaccounted: z.number(),
});
/** What blocked-sends.mjs prints. */
const FIGURES = z.object({
  burst: z.number(),
  blocked: COUNTERS,
  end: COUNTERS,
  heard: z.array(z.number()),
});

function fileOf(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}

/** A network namespace with a loopback of its own, until the end of the test. */
function openNamespace(): string {
  const name = `sozu-udp-${randomBytes(4).toString('hex')}`;
  runNow('ip', ['netns', 'add', name]);
  onTestFinished(() => runNow('ip', ['netns', 'del', name]));
  runNow('ip', ['-n', name, 'link', 'set', 'lo', 'up']);
  return name;
}
