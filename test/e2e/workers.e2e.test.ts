/** Several workers behind one address: one proxy for whoever sends, asks or stops. */
import { beforeEach, expect, test } from 'vitest';
import { startBackend } from './backend.ts';
import { openClient, openClients } from './client.ts';
import { startControlled } from './control.ts';
import { needKoffi } from './peers.ts';
import { freePort } from './ports.ts';
import { rewriteConfig, toml } from './proxy.ts';

const TOP = { io: 'mmsg', workers: 2 } as const;

beforeEach(needKoffi);

test('they share the clients, and answer, list, change and stop as one', async () => {
  const [alpha, beta] = [await startBackend('alpha'), await startBackend('beta')];
  const port = await freePort();
  const setup = { listen: `127.0.0.1:${port}`, backends: [alpha], top: TOP };
  const control = await startControlled(setup);
  const clients = await openClients(60, { to: port });
  for (const round of ['1', '2']) {
    const answers = await Promise.all(clients.map((client) => client.ask(round)));
    expect(new Set(answers)).toEqual(new Set([`alpha: ${round}`]));
  }
  const { flows, workers, listeners } = await control.answer('status');
  expect(flows).toBe(60);
  expect(listeners).toMatchObject([{ active: true, flows: 60 }]);
  const shares = Array.isArray(workers) ? workers : [];
  expect(shares).toHaveLength(2);
  expect(shares.reduce((sum, { received }) => sum + received, 0)).toBe(240);
  // Sixty clients that all met one of two: once in 2^59 runs.
  expect(shares.filter((one) => one.flows > 0)).toHaveLength(2);
  const listed = await control.run('flows', 'list', '--json');
  expect(listed.stdout).toMatch(/"matched":\s*60/);

  const change = {
    ...setup,
    backends: [beta],
    top: { ...TOP, command_socket: './run/control.sock' },
  };
  await rewriteConfig(control.proxy, toml(change));
  const late = await openClient({ to: port });
  expect(await late.ask('3')).toBe('beta: 3');
  const { code } = await control.run('shutdown', '--hard');
  expect(code).toBe(0);
  expect((await control.proxy.exit).code).toBe(0);
  expect(control.proxy.logs.all.find(({ msg }) => msg === 'stopped')).toMatchObject({
    flows: 61,
    received: 242,
    forwarded: 121,
    returned: 121,
  });
});

test('steered by source, all of an address meet the same worker', async () => {
  const alpha = await startBackend('alpha');
  const port = await freePort();
  const control = await startControlled({
    listen: `127.0.0.1:${port}`,
    backends: [alpha],
    top: { ...TOP, steer: 'source' },
  });
  const flowsOf = async (): Promise<number[]> => {
    const { workers } = await control.answer('status');
    return Array.isArray(workers) ? workers.map(({ flows }) => Number(flows)) : [];
  };
  for (const [at, from] of ['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.4'].entries()) {
    const before = await flowsOf();
    const clients = await openClients(8, { to: port, from });
    await Promise.all(clients.map((client) => client.ask('hello')));
    const grown = (await flowsOf()).map((flows, worker) => flows - (before[worker] ?? 0));
    expect(
      grown.toSorted((one, other) => one - other),
      `source ${at}`,
    ).toEqual([0, 8]);
  }
});
