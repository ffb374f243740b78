/** SIGTERM and SIGINT: the first drains, the second closes at once; the exit code is 0 either way. */
import { expect, test } from 'vitest';
import { startBackend, type Backend } from './backend.ts';
import { runToEnd } from './child.ts';
import { openClient, type Client } from './client.ts';
import { freePort } from './ports.ts';
import { MAIN, startProxy, toml, type ProxyProcess } from './proxy.ts';

/** Longer than any test waits. */
const LONG_SECONDS = 600;

test('SIGTERM drains: a live flow gets its reply, a newcomer gets nothing', async () => {
  const { proxy, backend, live, port } = await startWithLiveFlow({ grace: LONG_SECONDS });
  proxy.signal('SIGTERM');
  await proxy.logged('draining');
  const newcomer = await openClient({ to: port });
  await newcomer.send('newcomer');
  await live.send('live');
  // Forwarded in order: when the second datagram is at the backend, the first will never be.
  await backend.arrivals.first(({ payload }) => String(payload) === 'live', 'the live flow');
  expect(backend.heard).toEqual(['opening', 'live']);
  (await backend.arrivals.next()).reply('late, but in time');
  expect(String(await live.replies.next())).toBe('late, but in time');
  expect(newcomer.replies.all).toEqual([]);
});

test('a drain ends with the last flow, long before its grace time', async () => {
  const { proxy, backend, live } = await startWithLiveFlow({ grace: LONG_SECONDS, responses: 1 });
  proxy.signal('SIGTERM');
  expect(await proxy.logged('draining')).toMatchObject({ signal: 'SIGTERM', flows: 1 });
  (await backend.arrivals.next()).reply('the only answer');
  expect(String(await live.replies.next())).toBe('the only answer');
  expect(await proxy.exit).toEqual({ code: 0, signal: null });
  expect(await proxy.logged('stopped')).toMatchObject({ flowsClosed: 0 });
});

test('a drain ends with its grace time when a flow lives on', async () => {
  const { proxy } = await startWithLiveFlow({ grace: 1 });
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 1 });
});

test('a drain without flows ends at once', async () => {
  const backend = await startBackend('alpha');
  const listen = `127.0.0.1:${await freePort()}`;
  const proxy = await startProxy(
    toml({ listen, backends: [backend], top: { grace: LONG_SECONDS } }),
  );
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 0 });
});

test('SIGUSR1 opens no debugger port', async () => {
  const { proxy } = await startWithLiveFlow({ grace: LONG_SECONDS });
  proxy.signal('SIGUSR1');
  proxy.signal('SIGTERM');
  await proxy.logged('draining');
  proxy.signal('SIGTERM');
  expect(await proxy.exit).toEqual({ code: 0, signal: null });
  expect(proxy.child.everything()).not.toMatch(/debugger/i);
});

/** Says, when somebody begins to listen for a signal, whether the program's dependencies are loaded already. */
const WATCH_LISTENERS = `
  import { createRequire } from 'node:module';
  const { cache } = createRequire(process.cwd() + '/x.js');
  process.on('newListener', (name) => {
    const isLate = Object.keys(cache).some((file) => file.includes('/commander/'));
    if (String(name).startsWith('SIG')) console.log(name, isLate ? 'late' : 'early');
  });`;

test('signals that come while the program is loading are heard, and do nothing', async () => {
  const watch = `data:text/javascript,${encodeURIComponent(WATCH_LISTENERS)}`;
  const heard = async (...words: string[]): Promise<string[]> => {
    const { stdout } = await runToEnd(process.execPath, ['--import', watch, MAIN, ...words]);
    return stdout.split('\n').filter((line) => line.startsWith('SIG'));
  };
  expect(await heard('run', '--config', '/nowhere.toml')).toEqual([
    'SIGUSR1 early',
    'SIGHUP early',
    'SIGHUP late',
  ]);
  expect(await heard('check', '/nowhere.toml')).toEqual(['SIGUSR1 early']);
});

test.for([
  ['SIGTERM', 'SIGTERM'],
  ['SIGTERM', 'SIGINT'],
  ['SIGINT', 'SIGTERM'],
  ['SIGINT', 'SIGINT'],
] as const)('after %s a %s closes at once', async ([first, second]) => {
  const { proxy } = await startWithLiveFlow({ grace: LONG_SECONDS });
  proxy.signal(first);
  await proxy.logged('draining');
  proxy.signal(second);
  expect(await proxy.exit).toEqual({ code: 0, signal: null });
  expect(await proxy.logged('closing at once')).toMatchObject({ signal: second, flows: 1 });
  expect(await proxy.logged('stopped')).toMatchObject({ flowsClosed: 1 });
});

interface LiveFlow {
  readonly proxy: ProxyProcess;
  readonly backend: Backend;
  readonly live: Client;
  readonly port: number;
}

/** A proxy whose only flow waits for an answer. */
async function startWithLiveFlow(keys: { grace: number; responses?: number }): Promise<LiveFlow> {
  const backend = await startBackend('alpha', { answers: 0 });
  const port = await freePort();
  const proxy = await startProxy(
    toml({
      listen: `127.0.0.1:${port}`,
      backends: [backend],
      top: { grace: keys.grace },
      udp: { responses: keys.responses ?? 0 },
    }),
  );
  const live = await openClient({ to: port });
  await live.send('opening');
  await backend.arrivals.first(() => true, 'the opening datagram');
  return { proxy, backend, live, port };
}
