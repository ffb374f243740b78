/** What the documents promise of a whole process: how it ends, what it logs, how it is started. */
import { expect, onTestFinished, test } from 'vitest';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { plantedBuild } from '../simulator.ts';
import { startBackend } from './backend.ts';
import { Child } from './child.ts';
import { openClient, openClients } from './client.ts';
import { freePort } from './ports.ts';
import { ProxyProcess, startProxy, temporaryFile, toml } from './proxy.ts';

test('an assertion that fails outside of one listener ends the proxy with exit code 70, and says which', async () => {
  const head = 'onClientArrived(id, src, local, payload, now) {';
  const build = plantedBuild([
    { file: 'core/data-plane.js', search: head, replace: `${head} assert(false, 'planted');` },
  ]);
  onTestFinished(() => build.dispose());
  const port = await freePort();
  const top = { recorder: false };
  const setup = toml({ listen: `127.0.0.1:${port}`, backends: ['127.0.0.1:9'], top });
  const main = join(build.dist, 'shell/main.js');
  const proxy = await startProxy(setup, [main, 'run', '--config']);
  const client = await openClient({ to: port });
  await client.send('hello');
  expect(await proxy.exit).toEqual({ code: 70, signal: null });
  expect(proxy.child.stderr.all.join('\n')).toMatch(/AssertionError: planted\n +at /);
});

test('no datagram writes a log line, at any level, whether it is served or dropped', async () => {
  const backend = await startBackend('alpha');
  const port = await freePort();
  const proxy = await startProxy(
    toml({
      listen: `127.0.0.1:${port}`,
      backends: [backend],
      top: { log_level: 'trace' },
      listener: { max_rx_datagram_size: 64, max_flows: 5 },
    }),
  );
  const clients = await openClients(10, { to: port });
  const [first] = clients;
  for (let round = 0; round < 50; round += 1) {
    for (const client of clients) {
      await client.send('served on five flows, shed for the other clients');
      await client.send('x'.repeat(65));
    }
    // Served in order: when this is answered, none of the round is left.
    await first?.send(`end ${round}`);
    const end = `alpha: end ${round}`;
    await first?.replies.first((reply) => String(reply) === end, end);
  }
  expect(backend.arrivals.all).toHaveLength(50 * 6);
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 5 });
  expect(proxy.logs.all.map(({ msg }) => msg)).toEqual([
    'listening',
    'started',
    'draining',
    'stopped',
  ]);
  expect(proxy.child.stdout.all).toHaveLength(4);
});

test('npm start -- --config FILE runs the file, and SIGTERM to npm ends it with 0', async () => {
  const backend = await startBackend('alpha');
  const port = await freePort();
  const file = temporaryFile(
    'proxy.toml',
    toml({ listen: `127.0.0.1:${port}`, backends: [backend] }),
  );
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const npm = new ProxyProcess(
    new Child('npm', ['--prefix', root, 'start', '--', '--config', file]),
    file,
  );
  const { pid } = await npm.logged('started');
  let ended = false;
  void npm.exit.then(() => (ended = true));
  // A proxy that outlives its npm would hold the test's pipes open.
  onTestFinished(() => {
    if (!ended) process.kill(Number(pid), 'SIGKILL');
  });
  const client = await openClient({ to: port });
  expect(await client.ask('hello')).toBe('alpha: hello');
  expect(await npm.softStop()).toEqual({ code: 0, flowsClosed: 1 });
});
