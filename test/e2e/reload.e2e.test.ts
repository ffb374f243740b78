/** SIGHUP: the file is read again, and what it says differently is done while everything else goes on (spec §10.1, §12.9). */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { startBackend, type Backend } from './backend.ts';
import { openClient } from './client.ts';
import { freePort } from './ports.ts';
import { rewriteConfig, startProxy, toml, type ProxyProcess } from './proxy.ts';

const REFUSED = 'not reloaded: the old configuration stays';

test('test_udp_hot_add_remove_listener: one that is added serves, one that is taken out is silent', async () => {
  const { proxy, backend, ports } = await start(1);
  const [first, second] = [ports[0]!, await freePort()];
  await rewriteConfig(proxy, file([first, second], [backend]));
  const client = await openClient({ to: second });
  expect(await client.ask('new')).toBe('alpha: new');
  await rewriteConfig(proxy, file([first], [backend]));
  expect(await proxy.logged('no longer listening')).toMatchObject({
    listener: `127.0.0.1:${second}`,
    flowsClosed: 1,
  });
  expect(await answerAt(second)).toBe('ECONNREFUSED');
  await rewriteConfig(proxy, file([first, second], [backend]));
  expect(await client.ask('back')).toBe('alpha: back');
  expect(await proxy.softStop()).toMatchObject({ code: 0 });
});

test('a live flow survives a reload that is not about its listener, on the same socket', async () => {
  const { proxy, backend, ports } = await start(2);
  const [mine, other] = await Promise.all(ports.map((to) => openClient({ to })));
  await mine!.ask('before');
  await other!.ask('before');
  const upstream = backend.arrivals.all[0]?.from.port;
  const config = toml({
    listen: addresses([ports[0]!, await freePort()]),
    backends: [backend],
    udp: { requests: 7 },
  });
  await rewriteConfig(proxy, config);
  expect(await mine!.ask('after')).toBe('alpha: after');
  expect(backend.arrivals.all.at(-1)?.from.port).toBe(upstream);
  expect(await answerAt(ports[1]!)).toBe('ECONNREFUSED');
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 1 });
});

test('backends come and go for new flows, and a listener leads to another cluster', async () => {
  const { proxy, backend, ports } = await start(1);
  const beta = await startBackend('beta');
  await rewriteConfig(proxy, file(ports, [beta]));
  const client = await openClient({ to: ports[0]! });
  expect(await client.ask('1')).toBe('beta: 1');
  const renamed = file(ports, [backend]).replaceAll('clusters.e2e', 'clusters.other');
  await rewriteConfig(proxy, renamed);
  const next = await openClient({ to: ports[0]! });
  expect(await next.ask('2')).toBe('alpha: 2');
  expect(await proxy.softStop()).toMatchObject({ code: 0 });
});

test('a broken file changes nothing: every problem is told with path and line, and the proxy serves on', async () => {
  const { proxy, backend, ports } = await start(1);
  const client = await openClient({ to: ports[0]! });
  expect(await client.ask('before')).toBe('alpha: before');
  const broken = file([await freePort()], [backend])
    .replace('protocol = "udp"', 'protocol = "udp"\nmax_flows = -1')
    .replace('[clusters.e2e.udp]', '[clusters.e2e.udp]\nresponsess = 1');
  writeFileSync(proxy.file, broken);
  proxy.signal('SIGHUP');
  await proxy.logged(REFUSED);
  const problems = proxy.logs.all.filter(({ level, path }) => path !== undefined && level === 50);
  expect(problems.map(({ level, path }) => [level, path])).toEqual([
    [50, 'listeners[0].max_flows'],
    [50, 'clusters.e2e.udp.responsess'],
  ]);
  for (const { line, fix } of problems) {
    expect(line).toBeGreaterThan(0);
    expect(fix).toBeTypeOf('string');
  }
  expect(await client.ask('after')).toBe('alpha: after');
  await rewriteConfig(proxy, file(ports, [backend]));
  expect(proxy.logs.all.at(-1)).toMatchObject({ changed: false, commands: 0, generation: 1 });
  expect(await client.ask('mended')).toBe('alpha: mended');
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 1 });
});

test('a listener that does not open is told with advice, the rest is done, and the next SIGHUP tries again', async () => {
  const { proxy, backend, ports } = await start(1);
  const taken = await startBackend('squatter', { port: await freePort() });
  const { port } = taken;
  await rewriteConfig(proxy, file([...ports, port], [backend]));
  const told = proxy.logs.all.find(({ errno }) => errno === 'EADDRINUSE');
  expect(told).toMatchObject({ level: 50, listener: `127.0.0.1:${port}` });
  expect(told?.['msg']).toContain('ss -ulpn');
  expect(proxy.logs.all.map(({ msg }) => msg)).not.toContain('no longer listening');
  const client = await openClient({ to: ports[0]! });
  expect(await client.ask('still here')).toBe('alpha: still here');
  await taken.stop();
  await rewriteConfig(proxy, file([...ports, port], [backend]));
  const late = await openClient({ to: port });
  expect(await late.ask('at last')).toBe('alpha: at last');
  expect(await proxy.softStop()).toMatchObject({ code: 0 });
});

test('a listener whose socket has to be another is bound again at once, and keeps its route', async () => {
  const { proxy, backend, ports } = await start(1);
  const client = await openClient({ to: ports[0]! });
  await client.ask('before');
  const listener = { rcvbuf: 65_536 };
  await rewriteConfig(proxy, toml({ listen: addresses(ports), backends: [backend], listener }));
  expect(await client.ask('after')).toBe('alpha: after');
  expect(proxy.logs.all.filter(({ msg }) => msg === 'listening')).toHaveLength(2);
  expect(await proxy.softStop()).toMatchObject({ code: 0 });
});

test('log_level changes apply', async () => {
  const { proxy, backend, ports } = await start(1);
  const taken = await startBackend('squatter', { port: await freePort() });
  writeFileSync(proxy.file, file([...ports, taken.port], [backend], { log_level: 'error' }));
  proxy.signal('SIGHUP');
  await proxy.logs.first(({ errno }) => errno === 'EADDRINUSE', 'the listener that fails');
  await rewriteConfig(proxy, file(ports, [backend], { log_level: 'info' }));
  const reloads = proxy.logs.all.filter(({ msg }) => msg === 'reloaded');
  expect(reloads, 'the first one was not told').toHaveLength(1);
  expect(await proxy.softStop()).toMatchObject({ code: 0 });
});

test('several SIGHUPs at once are fine', async () => {
  const { proxy, backend, ports } = await start(1);
  const another = await freePort();
  writeFileSync(proxy.file, file([...ports, another], [backend]));
  for (let count = 0; count < 5; count += 1) proxy.signal('SIGHUP');
  await proxy.logged('reloaded');
  for (const to of [...ports, another]) {
    const client = await openClient({ to });
    expect(await client.ask('here')).toBe('alpha: here');
  }
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 2 });
  const opened = proxy.logs.all.filter(({ msg }) => msg === 'listening');
  expect(opened.map(({ listener }) => listener)).toEqual(addresses([...ports, another]));
});

test('during a soft stop nothing is reloaded', async () => {
  const backend = await startBackend('alpha');
  const port = await freePort();
  const long = { grace: 600 };
  const proxy = await startProxy(file([port], [backend], long));
  const client = await openClient({ to: port });
  await client.ask('live');
  proxy.signal('SIGTERM');
  await proxy.logged('draining');
  writeFileSync(proxy.file, file([await freePort()], [backend], long));
  proxy.signal('SIGHUP');
  expect(await proxy.logged(REFUSED)).toMatchObject({ kind: 'Stopping' });
  expect(await client.ask('live on')).toBe('alpha: live on');
  proxy.signal('SIGTERM');
  expect(await proxy.exit).toEqual({ code: 0, signal: null });
});

/** A proxy with so many listeners before one backend. */
async function start(
  listeners: number,
): Promise<{ proxy: ProxyProcess; backend: Backend; ports: number[] }> {
  const backend = await startBackend('alpha');
  const ports = await Promise.all(Array.from({ length: listeners }, () => freePort()));
  return { proxy: await startProxy(file(ports, [backend])), backend, ports };
}

function file(
  ports: readonly number[],
  backends: readonly Backend[],
  top: Record<string, string | number> = {},
): string {
  return toml({ listen: addresses(ports), backends, top });
}

function addresses(ports: readonly number[]): string[] {
  return ports.map((port) => `127.0.0.1:${port}`);
}

/** How the kernel answers a datagram to this port: `ECONNREFUSED` when nobody listens. */
async function answerAt(port: number): Promise<unknown> {
  const socket = createSocket('udp4');
  onTestFinished(() => void socket.close());
  socket.connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.send('anybody?');
  const [error]: unknown[] = await once(socket, 'error');
  return error instanceof Error && 'code' in error ? error.code : error;
}
