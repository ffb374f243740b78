/** The program on batched system calls: `io = "mmsg"`, and what it says where they cannot be had. */
import { beforeEach, expect, test } from 'vitest';
import { startBackend, type Backend } from './backend.ts';
import { runToEnd } from './child.ts';
import { openClient, openClients } from './client.ts';
import { needKoffi } from './peers.ts';
import { freePort } from './ports.ts';
import { MAIN, startProxy, temporaryFile, toml, type ProxyProcess, type Setup } from './proxy.ts';

/** Makes koffi a package that is not installed. */
const WITHOUT_KOFFI = `const Module = require('node:module');
const resolve = Module._resolveFilename;
Module._resolveFilename = (name, ...rest) => {
  if (name === 'koffi') throw new Error('Cannot find module koffi');
  return resolve(name, ...rest);
};`;

beforeEach(needKoffi);

test('many flows have their own answers, behind a PROXY header, and end in order', async () => {
  const backend = await startBackend('alpha');
  const udp = { send_proxy_protocol: true, proxy_protocol_every_datagram: true };
  const { port, proxy } = await startMmsg({ backends: [backend], udp });
  const clients = await openClients(100, { to: port });
  for (const round of [1, 2, 3]) {
    const answers = await Promise.all(
      clients.map((client) => client.ask(`${client.port} ${round}`)),
    );
    expect(answers).toEqual(clients.map((client) => `alpha: ${client.port} ${round}`));
  }
  for (const _ of clients) {
    const { client, payload } = await backend.arrivals.next();
    expect(client).toBe(`127.0.0.1:${String(payload).split(' ')[0]}`);
  }
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 100 });
});

test('a wildcard listener answers from the address that was asked', async () => {
  const backend = await startBackend('alpha');
  const port = await freePort();
  const { proxy } = await startMmsg({ backends: [backend] }, `0.0.0.0:${port}`);
  for (const at of ['127.0.0.1', '127.0.0.2', '127.0.0.3']) {
    const client = await openClient({ to: port, at });
    expect(await client.ask('hello')).toBe('alpha: hello');
  }
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 3 });
});

test('a backend that is down for a while costs no flow', async () => {
  const backend = await startBackend('alpha');
  const { port, proxy } = await startMmsg({ backends: [backend] });
  const client = await openClient({ to: port });
  expect(await client.ask('before')).toBe('alpha: before');
  await backend.stop();
  await client.send('meanwhile');
  await startBackend('beta', { port: backend.port });
  await client.send('after');
  // The proxy may have looked at the former only when there was somebody again.
  const answers = new Set(['beta: meanwhile', 'beta: after']);
  for (let last = ''; last !== 'beta: after'; answers.delete(last)) {
    last = String(await client.replies.next());
    expect(answers).toContain(last);
  }
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 1 });
});

test('without koffi io = "auto" serves over node:dgram and says why, and "mmsg" starts nothing', async () => {
  const backend = await startBackend('alpha');
  const port = await freePort();
  const setup = { backends: [backend], listen: `127.0.0.1:${port}` };
  const preload = ['--require', temporaryFile('without-koffi.cjs', WITHOUT_KOFFI)];
  const command = [...preload, MAIN, 'run', '--config'];
  const proxy = await startProxy(toml({ ...setup, top: { io: 'auto' } }), command);
  const missing = 'koffi does not load: Error: Cannot find module koffi';
  expect(await proxy.logged('started')).toMatchObject({
    driver: 'dgram',
    workers: 1,
    because: `no mmsg: ${missing}`,
  });
  const client = await openClient({ to: port });
  expect(await client.ask('hello')).toBe('alpha: hello');
  expect((await proxy.softStop()).code).toBe(0);

  const file = temporaryFile('proxy.toml', toml({ ...setup, top: { io: 'mmsg' } }));
  const { code, stderr } = await runToEnd(process.execPath, [...command, file]);
  expect(code).toBe(1);
  expect(stderr).toContain(`io = "mmsg" cannot be had: ${missing}\n  fix: `);
});

async function startMmsg(
  setup: Omit<Setup, 'listen'> & { readonly backends: readonly Backend[] },
  listen?: string,
): Promise<{ readonly port: number; readonly proxy: ProxyProcess }> {
  const port = await freePort();
  const at = listen ?? `127.0.0.1:${port}`;
  const proxy = await startProxy(toml({ ...setup, listen: at, top: { io: 'mmsg' } }));
  expect(await proxy.logged('started')).toMatchObject({ driver: 'mmsg', because: 'io = "mmsg"' });
  return { port, proxy };
}
