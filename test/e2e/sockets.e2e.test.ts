/** Keys of the file that are about sockets: what the kernel is asked for, and when. */
import { expect, test } from 'vitest';
import { startBackend } from './backend.ts';
import { runToEnd } from './child.ts';
import { openClient } from './client.ts';
import { needPeers } from './peers.ts';
import { freePort } from './ports.ts';
import { startProxy, toml } from './proxy.ts';

test('with bind_retry_seconds an address that is taken is bound once it is free', async () => {
  const [backend, port] = [await startBackend('alpha'), await freePort()];
  const squatter = await startBackend('squatter', { port });
  const proxy = await startProxy(
    toml({
      listen: `127.0.0.1:${port}`,
      backends: [backend],
      listener: { bind_retry_seconds: 1 },
    }),
  );
  expect(proxy.logs.all.find(({ errno }) => errno === 'EADDRINUSE')).toMatchObject({
    listener: `127.0.0.1:${port}`,
  });
  await squatter.stop();
  await proxy.logged('listening');
  const client = await openClient({ to: port });
  expect(await client.ask('at last')).toBe('alpha: at last');
  expect((await proxy.softStop()).code).toBe(0);
});

test('rcvbuf and sndbuf are what the kernel keeps for a listener', async (context) => {
  needPeers(context, 'ss');
  const [backend, port] = [await startBackend('alpha'), await freePort()];
  await startProxy(
    toml({
      listen: `127.0.0.1:${port}`,
      backends: [backend],
      listener: { rcvbuf: 20_000, sndbuf: 30_000 },
    }),
  );
  const { stdout } = await runToEnd('ss', ['-ulnmH', `sport = :${port}`]);
  // Linux doubles both, for what it keeps beside the data.
  expect(stdout).toMatch(/\brb40000,.*\btb60000,/);
});
