/** The access log of the real program: its lines say what clients and backends saw, and no more of them than asked for. */
import { readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { startBackend } from './backend.ts';
import { openClient, openClients } from './client.ts';
import { freePort } from './ports.ts';
import { rewriteConfig, startProxy, temporaryFile, toml, type ProxyProcess } from './proxy.ts';

interface Line {
  readonly client: string;
  readonly reason: string;
  readonly suppressed: number;
}

test('a line says what the client and the backend saw of a flow', async () => {
  const backend = await startBackend('alpha');
  const port = await freePort();
  const setup = { listen: `127.0.0.1:${port}`, backends: [backend], udp: { responses: 2 } };
  const proxy = await startProxy(withLog(toml(setup), {}));
  const client = await openClient({ to: port });
  const replies = [await client.ask('first'), await client.ask('the second')];
  const line = await proxy.logs.first((one) => 'flow' in one, 'the flow’s line');
  expect(line).toEqual({
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    flow: '0.1',
    client: `127.0.0.1:${client.port}`,
    listener: `127.0.0.1:${port}`,
    cluster: 'e2e',
    backend: backend.endpoint,
    backend_id: `e2e-0-${backend.endpoint}`,
    reason: 'responses',
    requests: backend.heard.length,
    responses: replies.length,
    request_bytes: backend.heard.join('').length,
    response_bytes: replies.join('').length,
    duration_ms: expect.any(Number),
    generation: 1,
    suppressed: 0,
  });
  expect(line['duration_ms']).toBeGreaterThan(0);
});

test('flows that are left out are counted, and none is lost count of', async () => {
  const { proxy, clients } = await manyFlows({ one_in: 1, lines_per_second: 1 });
  await proxy.softStop();
  const lines = linesIn(proxy);
  expect(lines.length).toBeLessThan(clients);
  const told = lines.filter(({ client }) => client !== undefined).length;
  const suppressed = lines.reduce((sum, line) => sum + line.suppressed, 0);
  expect(told + suppressed).toBe(clients);
});

test('a sample has its share of the flows', async () => {
  const { proxy, clients } = await manyFlows({ one_in: 4, lines_per_second: 100_000 });
  await proxy.softStop();
  const lines = linesIn(proxy);
  expect(Math.abs(lines.length - clients / 4)).toBeLessThanOrEqual(3);
  expect(lines.every(({ suppressed }) => suppressed === 0)).toBe(true);
});

test('SIGUSR1 opens the file anew, and no line is lost', async () => {
  const backend = await startBackend('alpha');
  const port = await freePort();
  const setup = { listen: `127.0.0.1:${port}`, backends: [backend], top: { grace: 0 } };
  const old = temporaryFile('access.log', '');
  const moved = join(old, '..', 'access.log.1');
  const proxy = await startProxy(
    withLog(toml({ ...setup, udp: { responses: 2 } }), { target: `file://${old}` }),
  );
  const [ended, live] = [await openClient({ to: port }), await openClient({ to: port })];
  await ended.ask('a');
  await live.ask('b');
  await ended.ask('c');
  await written(old, 1);
  renameSync(old, moved);
  proxy.signal('SIGUSR1');
  expect(await proxy.softStop()).toMatchObject({ code: 0 });
  expect(linesOf(moved)).toMatchObject([{ client: `127.0.0.1:${ended.port}` }]);
  expect(linesOf(old)).toMatchObject([{ client: `127.0.0.1:${live.port}`, reason: 'drain' }]);
  expect(linesIn(proxy)).toEqual([]);
});

test('a reload switches it on, to another target, and off', async () => {
  const backend = await startBackend('alpha');
  const port = await freePort();
  const plain = toml({
    listen: `127.0.0.1:${port}`,
    backends: [backend],
    top: { grace: 0 },
    udp: { responses: 1 },
  });
  const [first, second] = ['first.log', 'second.log'].map((name) => temporaryFile(name, ''));
  const proxy = await startProxy(plain);
  const ask = async (): Promise<string> => {
    const client = await openClient({ to: port });
    await client.ask('x');
    return `127.0.0.1:${client.port}`;
  };
  await ask();
  await rewriteConfig(proxy, withLog(plain, { target: `file://${first}` }));
  const inFirst = await ask();
  await written(first!, 1);
  await rewriteConfig(proxy, withLog(plain, { target: `file://${second}` }));
  const inSecond = await ask();
  await written(second!, 1);
  await rewriteConfig(proxy, withLog(plain, { target: 'file:///nowhere/at/all' }));
  expect(await proxy.logged('the access log could not be opened')).toMatchObject({ level: 50 });
  const stillInSecond = await ask();
  await written(second!, 2);
  await rewriteConfig(proxy, plain);
  await ask();
  await proxy.softStop();
  expect(linesOf(first!).map(({ client }) => client)).toEqual([inFirst]);
  expect(linesOf(second!).map(({ client }) => client)).toEqual([inSecond, stillInSecond]);
  expect(linesOf(first!)).toMatchObject([{ generation: 2, suppressed: 0 }]);
});

/** A proxy whose flows end with their reply, and some hundred that did. */
async function manyFlows(
  log: Readonly<Record<string, number>>,
): Promise<{ proxy: ProxyProcess; clients: number }> {
  const backend = await startBackend('alpha');
  const port = await freePort();
  const setup = { listen: `127.0.0.1:${port}`, backends: [backend], udp: { responses: 1 } };
  const proxy = await startProxy(withLog(toml(setup), log));
  const clients = await openClients(120, { to: port });
  await Promise.all(clients.map((client) => client.ask('question')));
  return { proxy, clients: clients.length };
}

/** The end of a flow is a message from its worker, which may come after the answer that ended it. */
async function written(file: string, lines: number): Promise<void> {
  await vi.waitFor(() => expect(linesOf(file)).toHaveLength(lines), { timeout: 10_000 });
}

function withLog(config: string, keys: Readonly<Record<string, string | number>>): string {
  const lines = Object.entries(keys).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  return [config, '[access_log]', ...lines, ''].join('\n');
}

/** Lines on standard output that are not the log's own. */
function linesIn({ child }: ProxyProcess): Line[] {
  return parse(child.stdout.all).filter((line) => !('msg' in line));
}

function linesOf(file: string): Line[] {
  return parse(readFileSync(file, 'utf8').trimEnd().split('\n'));
}

function parse(lines: readonly string[]): Line[] {
  return lines.filter((line) => line !== '').map((line): Line => JSON.parse(line));
}
