/** The control socket while traffic flows: drains, reloads and hostile clients, and no datagram that pays for them. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { openRaw, type RawClient } from '../raw-client.ts';
import { startBackend, type Backend } from './backend.ts';
import { Child } from './child.ts';
import { openClient, type Client } from './client.ts';
import { Controlled, SOCKET_KEY, startControlled } from './control.ts';
import { freePort } from './ports.ts';
import { MAIN, ProxyProcess, startProxy } from './proxy.ts';

test('drain --deadline 2s --wait under a constant sender: the old backend before, the new one after', async () => {
  const [alpha, beta] = [await startBackend('alpha'), await startBackend('beta')];
  const port = await freePort();
  const control = await startControlled({ listen: `127.0.0.1:${port}`, backends: [alpha, beta] });
  const sender = startSender(port);
  await alpha.arrivals.first(() => true, 'the first datagram');
  const words = ['backend', 'drain', '-i', 'e2e', '-a', alpha.endpoint];
  const drain = control.start(...words, '--deadline', '2s', '--wait');
  await drain.stderr.first((line) => line === 'draining: 1 flow left', 'its progress');
  expect(beta.heard).toEqual([]);
  const before = alpha.heard.length;
  expect(await drain.exit).toEqual({ code: 0, signal: null });
  expect(drain.stdout.all).toEqual(['drained: the deadline came with 1 flow left']);
  await beta.arrivals.first(() => true, 'the flow at its new backend');
  const sent = await sender.stop();
  await beta.arrivals.first(({ payload }) => Number(payload) === sent, 'the last datagram');
  const [old, young] = [alpha.heard.map(Number), beta.heard.map(Number)];
  expect(old.length).toBeGreaterThan(before);
  expect(old).toEqual(Array.from({ length: old.length }, (_, index) => index + 1));
  expect(young).toEqual(
    Array.from({ length: young.length }, (_, index) => sent - young.length + 1 + index),
  );
  expect(old.length + young.length).toBeGreaterThanOrEqual(sent - 1);
  const [began, ended] = ['backend draining', 'backend drained'].map((message) => {
    return Number(control.proxy.logs.all.find(({ msg }) => msg === message)?.['time']);
  });
  // Never early; two clocks agree to a millisecond or so.
  expect(ended! - began!).toBeGreaterThan(1_980);
  expect(await control.run('backend', 'list')).toMatchObject({
    stdout: expect.stringMatching(/drained/),
  });
  expect(await control.proxy.softStop()).toMatchObject({ code: 0 });
});

test('a drain that somebody calls off while it is waited for ends with 1', async () => {
  const [alpha, beta] = [await startBackend('alpha'), await startBackend('beta')];
  const port = await freePort();
  const control = await startControlled({ listen: `127.0.0.1:${port}`, backends: [alpha, beta] });
  const client = await openClient({ to: port });
  await client.ask('a flow');
  const at = ['-i', 'e2e', '-a', alpha.endpoint];
  const drain = control.start('backend', 'drain', ...at, '--wait');
  await drain.stderr.first((line) => line === 'draining: 1 flow left', 'its progress');
  await control.ask('backend', 'undrain', ...at);
  expect(await drain.exit).toMatchObject({ code: 1 });
  expect(drain.stderr.all.at(-1)).toBe('not drained: the backend is active');
  expect(await control.proxy.softStop()).toMatchObject({ code: 0 });
});

test('hot add and remove of listeners, clusters and backends leave the flows of others alone', async () => {
  const [alpha, beta] = [await startBackend('alpha'), await startBackend('beta')];
  const [port, other] = [await freePort(), await freePort()];
  const control = await startControlled({ listen: `127.0.0.1:${port}`, backends: [alpha] });
  const client = await openClient({ to: port });
  await client.ask('first');
  const upstream = alpha.arrivals.all[0]?.from.port;
  const loop = askForEver(client);
  const raw = await openRaw(control.socket);
  const address = `127.0.0.1:${other}`;
  const guest = await openClient({ to: other });
  for (let round = 1; round <= 20; round += 1) {
    await raw.ask('cluster add', { cluster: 'guest', settings: { udp: { requests: round + 1 } } });
    await raw.ask('backend add', { cluster: 'guest', backend: { address: beta.endpoint } });
    await raw.ask('listener udp add', { address });
    await raw.ask('frontend udp add', { cluster: 'guest', address });
    expect(await raw.ask('listener udp activate', { address })).toMatchObject({ ok: true });
    expect(await guest.ask(`round ${round}`)).toBe(`beta: round ${round}`);
    await raw.ask('backend remove', { cluster: 'guest', address: beta.endpoint });
    await raw.ask('listener udp deactivate', { address });
    await raw.ask('listener udp remove', { address });
    expect(await raw.ask('cluster remove', { cluster: 'guest' })).toMatchObject({ changed: true });
  }
  expect(await loop.stop()).toBeGreaterThan(0);
  expect(new Set(alpha.arrivals.all.map(({ from }) => from.port))).toEqual(new Set([upstream]));
  expect(await raw.ask('status')).toMatchObject({ answer: { flows: 1 } });
  raw.socket.destroy();
  expect(await control.proxy.softStop()).toMatchObject({ code: 0 });
});

test('after a hundred reloads of random configurations the proxy is what a fresh start with the last one is', async () => {
  const backends = [
    await startBackend('alpha'),
    await startBackend('beta'),
    await startBackend('gamma'),
  ];
  const ports = [await freePort(), await freePort(), await freePort(), await freePort()];
  const files = fc.sample(randomFiles(ports, backends), { numRuns: 100, seed: 7 });
  const proxy = await startProxy(files[0] ?? '');
  const control = new Controlled(proxy);
  const senders = ports.map((port) => startSender(port));
  const raw = await openRaw(control.socket);
  for (const file of files) {
    writeFileSync(proxy.file, file);
    expect(await raw.ask('reload')).toMatchObject({ ok: true, answer: { not_listening: [] } });
  }
  const alone = await openClient({ to: ports[0]! });
  expect(await alone.ask('served')).toMatch(/: served$/);
  await Promise.all(senders.map((sender) => sender.stop()));
  const [state, descriptors] = await atRest(control);
  raw.socket.destroy();
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 0 });

  const fresh = new ProxyProcess(
    new Child(process.execPath, [MAIN, 'run', '--config', proxy.file]),
    proxy.file,
  );
  await fresh.logged('started');
  const freshControl = new Controlled(fresh);
  const client = await openClient({ to: ports[0]! });
  expect(await client.ask('served')).toMatch(/: served$/);
  const second = await openRaw(freshControl.socket);
  const [freshState, freshDescriptors] = await atRest(freshControl);
  expect(state).toEqual(freshState);
  expect(descriptors).toBe(freshDescriptors);
  second.socket.destroy();
  expect(await fresh.softStop()).toMatchObject({ code: 0 });
});

test('hostile clients of the socket are refused, and no datagram is lost', async () => {
  const backend = await startBackend('alpha');
  const port = await freePort();
  const control = await startControlled({ listen: `127.0.0.1:${port}`, backends: [backend] });
  const loop = askForEver(await openClient({ to: port }));
  const memory = residentMegabytes(control.proxy);

  const garbage = await openRaw(control.socket);
  garbage.socket.write('\u0000\u0001GET /../../etc/passwd\n');
  expect(await garbage.heard.next()).toMatchObject({ ok: false, error: { kind: 'BadRequest' } });
  await garbage.closed;

  const half = await openRaw(control.socket);
  half.socket.end('{"v":1,"id":1,"command":"shut');
  expect(await half.heard.next()).toMatchObject({ ok: false });

  const long = await openRaw(control.socket);
  const piece = Buffer.alloc(1 << 20, 'x');
  for (let sent = 0; sent < 100; sent += 1) long.socket.write(piece);
  await long.closed;

  const slow = await openRaw(control.socket);
  await slow.ask('events');
  slow.socket.pause();
  const busy = await openRaw(control.socket);
  const at = { cluster: 'e2e', address: backend.endpoint };
  for (let round = 0; round < 500; round += 1) {
    await busy.ask('backend drain', { ...at, force: true });
    await busy.ask('backend undrain', at);
  }

  const crowd: RawClient[] = [];
  // Some at a time: more than the socket's queue holds are refused by the kernel.
  for (let round = 0; round < 20; round += 1) {
    const some = Array.from({ length: 50 }, () => openRaw(control.socket));
    crowd.push(...(await Promise.all(some)));
  }
  const refused = await Promise.all(
    crowd.slice(-100).map(async (one) => {
      const line = await one.heard.next();
      await one.closed;
      return line;
    }),
  );
  for (const line of refused) expect(line).toMatchObject({ error: { kind: 'Busy' } });
  for (const one of crowd) one.socket.destroy();
  await Promise.all(crowd.map((one) => one.closed));
  expect(await busy.ask('status')).toMatchObject({ ok: true });
  expect(residentMegabytes(control.proxy) - memory).toBeLessThan(64);

  const asked = await loop.stop();
  expect(asked).toBeGreaterThan(0);
  const { metrics } = await control.answer('metrics', 'get');
  const dropped = rows(metrics).filter(({ name }) => /dropped/.test(String(name)));
  expect(dropped.length).toBeGreaterThan(5);
  expect(dropped.filter(({ value }) => value !== 0)).toEqual([]);
  slow.socket.destroy();
  busy.socket.destroy();
  expect(await control.proxy.softStop()).toMatchObject({ code: 0 });
});

interface Sender {
  /** The number of the last datagram. */
  stop(): Promise<number>;
}

/** Sends numbers from 1 up, one each few milliseconds, and never waits for an answer. */
function startSender(port: number): Sender {
  // Not connected: it hears of no refusal, while a listener is closed.
  const socket = createSocket('udp4');
  let sent = 0;
  const timer = setInterval(() => {
    sent += 1;
    socket.send(String(sent), port, '127.0.0.1');
  }, 5);
  const stop = async (): Promise<number> => {
    clearInterval(timer);
    socket.close();
    await once(socket, 'close');
    return sent;
  };
  onTestFinished(() => clearInterval(timer));
  return { stop };
}

/** Asks and waits for each answer, so that one that is lost ends the test; says how many it had. */
function askForEver(client: Client): Sender {
  const state = { asked: 0, isOver: false };
  const loop = (async () => {
    while (!state.isOver) {
      state.asked += 1;
      const answer = await client.ask(`n${state.asked}`);
      expect(answer).toMatch(new RegExp(`: n${state.asked}$`));
    }
    return state.asked;
  })();
  // Whoever awaits it hears of a failure; until then it must not end the process.
  loop.catch(() => undefined);
  return {
    stop: () => {
      state.isOver = true;
      return loop;
    },
  };
}

/** Files with the first listener always, the others sometimes, and clusters of all kinds. */
function randomFiles(ports: readonly number[], backends: readonly Backend[]): fc.Arbitrary<string> {
  const cluster = fc.record({
    policy: fc.constantFrom('ROUND_ROBIN', 'HRW', 'MAGLEV', 'LEAST_LOADED'),
    backends: fc.subarray([...backends], { minLength: 1 }),
    weights: fc.array(fc.constantFrom(1, 100), { minLength: 3, maxLength: 3 }),
    requests: fc.constantFrom(0, 5),
  });
  return fc
    .record({
      open: fc.subarray(ports.slice(1)),
      buffer: fc.constantFrom('', 'rcvbuf = 65536\n'),
      leads: fc.array(fc.constantFrom('one', 'two'), { minLength: 4, maxLength: 4 }),
      one: cluster,
      two: cluster,
    })
    .map(({ open, buffer, leads, ...clusters }) => {
      const listeners = [ports[0]!, ...open];
      const at = (name: string): number[] => listeners.filter((_, index) => leads[index] === name);
      return [
        `grace = 1\ncommand_socket = "${SOCKET_KEY.command_socket}"\n`,
        ...listeners.map((port) => {
          return `[[listeners]]\nprotocol = "udp"\naddress = "127.0.0.1:${port}"\nfront_timeout = 1\nback_timeout = 1\n${buffer}`;
        }),
        ...Object.entries(clusters).flatMap(([name, one]) => {
          if (at(name).length === 0) return [];
          const frontends = at(name).map((port) => `{ address = "127.0.0.1:${port}" }`);
          const list = one.backends.map(({ endpoint }, index) => {
            return `{ address = "${endpoint}", weight = ${one.weights[index]} }`;
          });
          return [
            `[clusters.${name}]\nprotocol = "tcp"\nload_balancing = "${one.policy}"`,
            `frontends = [${frontends.join(', ')}]\nbackends = [${list.join(', ')}]`,
            `[clusters.${name}.udp]\nrequests = ${one.requests}\n`,
          ];
        }),
      ].join('\n');
    });
}

/** Once no flow is left: what is configured, in any order, and how many descriptors are open. */
async function atRest(control: Controlled): Promise<[readonly string[], number]> {
  const raw = await openRaw(control.socket);
  for (let isQuiet = false; !isQuiet;) {
    const { answer } = await raw.ask('status');
    isQuiet = JSON.stringify(answer).includes('"flows":0,"last_reload"');
  }
  const { answer } = await raw.ask('state');
  const { requests } = Object(answer);
  const state = rows(requests).map((request) => JSON.stringify(request));
  const descriptors = readdirSync(`/proc/${control.proxy.child.pid}/fd`).length;
  raw.socket.destroy();
  return [state.toSorted(), descriptors];
}

function rows(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value : [];
}

function residentMegabytes(proxy: ProxyProcess): number {
  const status = readFileSync(`/proc/${proxy.child.pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1_024;
}
