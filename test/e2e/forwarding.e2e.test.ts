/** The end-to-end rows of spec §12.10, each with a soft stop while its flows are live. */
import { expect, test } from 'vitest';
import { startBackend, type Backend } from './backend.ts';
import { openClient, openClients, type Client } from './client.ts';
import { freePort } from './ports.ts';
import { startProxy, toml, type ProxyProcess, type Setup } from './proxy.ts';

test('a payload reaches the backend intact and the reply reaches the client', async () => {
  const [backend] = await startBackends('alpha');
  const { port, proxy } = await startOn({ backends: [backend] });
  const client = await openClient({ to: port });
  const payload = Buffer.from(Array.from({ length: 1_500 }, (_, at) => at & 0xff));
  await client.send(payload);
  expect((await backend.arrivals.next()).datagram).toEqual(payload);
  expect(await client.replies.next()).toEqual(Buffer.concat([Buffer.from('alpha: '), payload]));
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 1 });
});

test('round robin leads six clients to both of two backends, three each', async () => {
  const backends = await startBackends('alpha', 'beta');
  const { port, proxy } = await startOn({ backends, udp: { affinity_key: 'SOURCE_IP_PORT' } });
  const names = await namesFor(await openClients(6, { to: port }));
  expect(names.sort()).toEqual(['alpha', 'alpha', 'alpha', 'beta', 'beta', 'beta']);
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 6 });
});

test('HRW leads a client port to one backend, and a new backend takes clients only to itself', async () => {
  const backends = await startBackends('alpha', 'beta', 'gamma', 'newcomer');
  const setup = {
    cluster: { load_balancing: 'HRW' },
    udp: { affinity_key: 'SOURCE_IP_PORT', responses: 1 },
  };
  const { port, proxy } = await startOn({ ...setup, backends: backends.slice(0, 3) });
  const clients = await openClients(20, { to: port });
  const before = await namesFor(clients);
  expect(await namesFor(clients)).toEqual(before);
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 0 });

  const larger = await startProxy(toml({ ...setup, listen: `127.0.0.1:${port}`, backends }));
  const after = await namesFor(clients);
  const moved = after.filter((name, client) => name !== before[client]);
  expect(moved.every((name) => name === 'newcomer')).toBe(true);
  expect(await larger.softStop()).toEqual({ code: 0, flowsClosed: 0 });
});

test('Maglev leads each of twenty client ports twice to the same backend, and uses several', async () => {
  const backends = await startBackends('alpha', 'beta', 'gamma');
  const { port, proxy } = await startOn({
    backends,
    cluster: { load_balancing: 'MAGLEV' },
    udp: { affinity_key: 'SOURCE_IP_PORT', responses: 1 },
  });
  const clients = await openClients(20, { to: port });
  const names = await namesFor(clients);
  expect(await namesFor(clients)).toEqual(names);
  expect(new Set(names).size).toBeGreaterThanOrEqual(2);
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 0 });
});

test('with responses = 1 a reply ends the flow: the next datagram is balanced anew', async () => {
  const backends = await startBackends('alpha', 'beta');
  const { port, proxy } = await startOn({ backends, udp: { responses: 1 } });
  const [first, second] = [await openClient({ to: port }), await openClient({ to: port })];
  expect(await first.ask('1')).toBe('alpha: 1');
  expect(await first.ask('2')).toBe('beta: 2');
  expect(await second.ask('3')).toBe('alpha: 3');
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 0 });
});

test('with requests = 2 the second datagram ends the flow, and none of three is lost', async () => {
  const [alpha, beta] = await startBackends('alpha', 'beta');
  const { port, proxy } = await startOn({ backends: [alpha, beta], udp: { requests: 2 } });
  const client = await openClient({ to: port });
  for (const payload of ['1', '2', '3']) await client.send(payload);
  await beta.arrivals.next();
  expect([alpha.heard, beta.heard]).toEqual([['1', '2'], ['3']]);
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 1 });
});

test('a datagram above max_rx_datagram_size is dropped whole, and the next one passes', async () => {
  const [backend] = await startBackends('alpha');
  const { port, proxy } = await startOn({
    backends: [backend],
    listener: { max_rx_datagram_size: 64 },
  });
  const client = await openClient({ to: port });
  await client.send('x'.repeat(200));
  await client.send('y'.repeat(65));
  // A listener's datagrams are forwarded in order: when the last has arrived, the others are not on their way.
  expect(await client.ask('z'.repeat(64))).toBe(`alpha: ${'z'.repeat(64)}`);
  expect(backend.heard).toEqual(['z'.repeat(64)]);
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 1 });
});

test('a PROXY header names the true client, once a flow, and payload and reply stay intact', async () => {
  const [backend] = await startBackends('alpha');
  const { port, proxy } = await startOn({
    backends: [backend],
    udp: { send_proxy_protocol: true },
  });
  const client = await openClient({ to: port, from: '127.0.0.9' });
  expect(await client.ask('first')).toBe('alpha: first');
  expect(await client.ask('second')).toBe('alpha: second');
  const [first, second] = backend.arrivals.all;
  expect(first?.datagram.subarray(0, 16).toString('hex')).toBe('0d0a0d0a000d0a515549540a2112000c');
  expect(first?.client).toBe(`127.0.0.9:${client.port}`);
  expect(second?.client).toBe('NotProxied');
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 1 });
});

test('with proxy_protocol_every_datagram each datagram carries the header', async () => {
  const [backend] = await startBackends('alpha');
  const { port, proxy } = await startOn({
    backends: [backend],
    udp: { send_proxy_protocol: true, proxy_protocol_every_datagram: true },
  });
  const client = await openClient({ to: port });
  for (const payload of ['1', '2', '3']) await client.ask(payload);
  const sources = backend.arrivals.all.map(({ client: source }) => source);
  expect(sources).toEqual(Array.from({ length: 3 }, () => `127.0.0.1:${client.port}`));
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 1 });
});

test('with one dead backend and no health checks the clients of the other are served', async () => {
  const [alive, dead] = await startBackends('alive', 'dead');
  await dead.stop();
  const { port, proxy } = await startOn({ backends: [dead, alive] });
  const clients = await openClients(6, { to: port });
  for (const client of clients) await client.send('hello');
  const served = clients.filter((_, index) => index % 2 === 1);
  for (const client of served) expect(String(await client.replies.next())).toBe('alive: hello');
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 6 });
});

test('a client socket keeps its backend for three round trips', async () => {
  const backends = await startBackends('alpha', 'beta');
  const { port, proxy } = await startOn({ backends, udp: { affinity_key: 'SOURCE_IP_PORT' } });
  const client = await openClient({ to: port });
  for (const payload of ['1', '2', '3'])
    expect(await client.ask(payload)).toBe(`alpha: ${payload}`);
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 1 });
});

test('every reply of a backend that answers twice, and one that comes late, reach the client', async () => {
  const backend = await startBackend('alpha', { answers: 2 });
  const { port, proxy } = await startOn({ backends: [backend] });
  const [client, other] = await openClients(2, { to: port });
  expect(await client?.ask('hello')).toBe('alpha: hello');
  expect(String(await client?.replies.next())).toBe('alpha: hello');
  await other?.ask('in between');
  (await backend.arrivals.next()).reply('late');
  expect(String(await client?.replies.next())).toBe('late');
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 2 });
});

type Names<T extends readonly string[]> = { [K in keyof T]: Backend };

function startBackends<const T extends readonly string[]>(...names: T): Promise<Names<T>>;
function startBackends(...names: readonly string[]): Promise<Backend[]> {
  return Promise.all(names.map((name) => startBackend(name)));
}

async function startOn(
  setup: Omit<Setup, 'listen'>,
): Promise<{ port: number; proxy: ProxyProcess }> {
  const port = await freePort();
  return { port, proxy: await startProxy(toml({ ...setup, listen: `127.0.0.1:${port}` })) };
}

/** Which backend answers each client, asked one after the other. */
async function namesFor(clients: readonly Client[]): Promise<string[]> {
  const names: string[] = [];
  for (const client of clients) names.push((await client.ask('who')).split(':')[0] ?? '');
  return names;
}
