/**
 * Health against real processes: backends that die, hang, say nothing and come back, and a real resolver behind LOCAL
 * probes.
 */
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { Child } from './child.ts';
import { openClient, openClients } from './client.ts';
import { query, readResponse } from './dns.ts';
import { startEcho } from './echo.ts';
import { needPeers } from './peers.ts';
import { freePort } from './ports.ts';
import { startProxy, toml } from './proxy.ts';
import { startUnbound } from './unbound.ts';

/** The shortest that a file can say. */
const FAST = { probe_interval_seconds: 1, probe_timeout_seconds: 1 };
/** For probes that are answered or refused at once: a busy machine must not look like a dead backend. */
const PATIENT = { probe_interval_seconds: 1, probe_timeout_seconds: 10 };
const FALL = 3;

test.each([
  ['TCP probes', { mode: 'TCP_PROBE' }],
  ['UDP probes', { mode: 'UDP_PROBE', udp_probe_payload: 'how are you?' }],
])(
  '%s: a backend that is killed leaves rotation for new flows, and comes back',
  async (_, mode) => {
    const [alpha, beta] = [await startEcho('alpha'), await startEcho('beta')];
    const port = await freePort();
    const proxy = await startProxy(
      toml({
        listen: `127.0.0.1:${port}`,
        backends: [alpha.endpoint, beta.endpoint],
        health: { ...FAST, ...mode, fall: FALL, rise: 2 },
      }),
    );
    expect(await servers(port)).toEqual(['alpha', 'beta']);
    const pinned = await clientOf(port, 'alpha');
    const killed = Date.now();
    alpha.child.signal('SIGKILL');
    await alpha.child.exit;
    const down = await proxy.told('backend down', alpha.endpoint);
    expect(down).toMatchObject({ level: 40, cluster: 'e2e', streak: FALL });
    expect(String(down['evidence'])).toContain('refused');
    process.stdout.write(
      `killed, then out of rotation after ${Number(down['time']) - killed} ms (at most ${FALL * 1_000 + 1_000})\n`,
    );
    expect(await servers(port)).toEqual(['beta']);
    const again = await startEcho('alpha', alpha.port);
    const up = await proxy.told('backend up', alpha.endpoint);
    expect(up).toMatchObject({ level: 30, streak: 2 });
    expect(await servers(port)).toEqual(['alpha', 'beta']);
    // The flow that was on it when it died is there still: health steers new flows only.
    expect(await pinned.ask('still here')).toBe('alpha: still here');
    await again.child.stdout.first(
      (line) => line === `heard ${hex('still here')}`,
      'the pinned client',
    );
    expect((await proxy.softStop()).code).toBe(0);
  },
);

test('a stopped process is found by a UDP probe: its kernel takes the datagram, and nobody answers', async () => {
  const [alpha, beta] = [await startEcho('alpha'), await startEcho('beta')];
  const port = await freePort();
  const proxy = await startProxy(
    toml({
      listen: `127.0.0.1:${port}`,
      backends: [alpha.endpoint, beta.endpoint],
      health: { ...FAST, mode: 'UDP_PROBE', udp_probe_payload: 'how are you?', fall: 2 },
    }),
  );
  alpha.child.signal('SIGSTOP');
  expect(await proxy.told('backend down', alpha.endpoint)).toMatchObject({
    evidence: 'udp probe: timeout',
    streak: 2,
  });
  expect(await servers(port)).toEqual(['beta']);
  alpha.child.signal('SIGCONT');
  await proxy.told('backend up', alpha.endpoint);
  expect(await servers(port)).toEqual(['alpha', 'beta']);
});

test('a silent socket is not healthy where a reply is expected, and is where none is', async () => {
  const mute = await startEcho('mute', undefined, 'mute');
  const health = { ...FAST, mode: 'UDP_PROBE', udp_probe_payload: 'anybody?', fall: 2 };
  const setup = { listen: `127.0.0.1:${await freePort()}`, backends: [mute.endpoint] };
  const expecting = await startProxy(toml({ ...setup, health }));
  expect(await expecting.told('backend down', mute.endpoint)).toMatchObject({
    evidence: 'udp probe: timeout',
  });
  await expecting.logged('no backend is available: every one is tried');
  expect((await expecting.softStop()).code).toBe(0);
  const before = probesHeard(mute.child);
  const oneWay = await startProxy(
    toml({ ...setup, health: { ...health, udp_probe_expect_reply: false } }),
  );
  // As many probes as took it down before, and one more to be sure that they ran out.
  await waitForProbes(mute.child, before + 4);
  expect(oneWay.logs.all.filter(({ msg }) => msg === 'backend down')).toEqual([]);
  expect((await oneWay.softStop()).code).toBe(0);
});

test('fail_open = false: with everybody down new flows are dropped as no_backend; the first that recovers serves', async () => {
  const port = await freePort();
  const alpha = await startEcho('alpha');
  const setup = toml({
    listen: `127.0.0.1:${port}`,
    backends: [alpha.endpoint],
    health: { ...PATIENT, mode: 'TCP_PROBE', fall: 1, rise: 1, fail_open: false },
  });
  const program = fileURLToPath(new URL('counting-proxy.mjs', import.meta.url));
  const proxy = await startProxy(setup, [program]);
  const pinned = await openClient({ to: port });
  expect(await pinned.ask('before')).toBe('alpha: before');
  alpha.child.signal('SIGKILL');
  await alpha.child.exit;
  await proxy.logged('no backend is available: new flows are refused');
  const refused = await openClients(5, { to: port });
  for (const client of refused) await client.send('anybody?');
  const again = await startEcho('alpha', alpha.port);
  await proxy.told('backend up', alpha.endpoint);
  await proxy.logged('cluster recovered');
  // Forwarded in order: had the five been forwarded, they would be heard by now.
  expect(await pinned.ask('after')).toBe('alpha: after');
  for (const client of refused) expect(await client.ask('now?')).toBe('alpha: now?');
  expect(again.child.stdout.all).not.toContain(`heard ${hex('anybody?')}`);
  proxy.signal('SIGTERM');
  expect(await proxy.logged('counted')).toMatchObject({
    counters: { droppedNoBackend: 5, flowsCreated: 6 },
    unaccounted: 0,
  });
  expect(await proxy.exit).toEqual({ code: 0, signal: null });
});

test('unbound behind PROXY headers stays up under LOCAL probes that ask it a DNS question', async (context) => {
  needPeers(context, 'unbound');
  const port = await freePort();
  const records = { 'health.test': '192.0.2.1', 'www.test': '192.0.2.2' };
  const unbound = await startUnbound({ records, logQueries: true });
  const backend = `127.0.0.1:${unbound.proxiedPort}`;
  const proxy = await startProxy(
    toml({
      listen: `127.0.0.1:${port}`,
      backends: [backend],
      udp: { send_proxy_protocol: true, proxy_protocol_every_datagram: true },
      health: {
        ...PATIENT,
        mode: 'UDP_PROBE',
        udp_probe_payload: query(1, 'health.test').toString('latin1'),
        fall: 1,
        fail_open: false,
      },
    }),
  );
  // One probe without an answer would do, so five that were answered are proof.
  await unbound.log.first(
    () => unbound.log.all.filter((line) => line.includes('health.test. A IN')).length >= 5,
    'five probes',
  );
  expect(proxy.logs.all.filter(({ msg }) => msg === 'backend down')).toEqual([]);
  const client = await openClient({ to: port, from: '127.0.0.9' });
  await client.send(query(7, 'www.test'));
  expect(readResponse(await client.replies.next())).toMatchObject({ id: 7, address: '192.0.2.2' });
  await unbound.log.first((line) => line.includes('info: 127.0.0.9 www.test. A IN'), 'the client');
  expect((await proxy.softStop()).code).toBe(0);
});

test('a TCP probe of a PPv2 cluster sends the LOCAL header and nothing else; other TCP probes send nothing', async () => {
  const [plain, proxied] = [await startEcho('plain'), await startEcho('proxied')];
  for (const [backend, send_proxy_protocol] of [
    [plain, false],
    [proxied, true],
  ] as const) {
    const proxy = await startProxy(
      toml({
        listen: `127.0.0.1:${await freePort()}`,
        backends: [backend.endpoint],
        udp: { send_proxy_protocol, proxy_protocol_every_datagram: send_proxy_protocol },
        health: { ...FAST, mode: 'TCP_PROBE' },
      }),
    );
    const last = send_proxy_protocol ? 'TCP ' : 'connected';
    await backend.child.stdout.first((line) => line.startsWith(last), last);
    expect((await proxy.softStop()).code).toBe(0);
  }
  const said = (child: Child): string[] =>
    child.stdout.all.filter((line) => line.startsWith('TCP'));
  expect(new Set(said(proxied.child))).toEqual(new Set(['TCP 0d0a0d0a000d0a515549540a20000000']));
  expect(said(plain.child)).toEqual([]);
});

/** Who answers four new clients. */
async function servers(port: number): Promise<string[]> {
  const names = new Set<string>();
  for (const client of await openClients(4, { to: port })) {
    names.add((await client.ask('who?')).split(':')[0] ?? '');
  }
  return [...names].sort();
}

/** A client whose flow is on `name`. */
async function clientOf(
  port: number,
  name: string,
): Promise<Awaited<ReturnType<typeof openClient>>> {
  for (const client of await openClients(4, { to: port })) {
    if ((await client.ask('who?')).startsWith(`${name}:`)) return client;
  }
  throw new Error(`none of four new flows is on ${name}`);
}

function probesHeard({ stdout }: Child): number {
  return stdout.all.filter((line) => line === `heard ${hex('anybody?')}`).length;
}

async function waitForProbes(child: Child, count: number): Promise<void> {
  await child.stdout.first(() => probesHeard(child) >= count, `${count} probes`);
}

function hex(text: string): string {
  return Buffer.from(text).toString('hex');
}
