/** The commands of the control socket, each against a running proxy (spec §8.2, §12.9, §12.10). */
import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { startBackend } from './backend.ts';
import { Child, runToEnd } from './child.ts';
import { openClient } from './client.ts';
import { Controlled, SOCKET_KEY, startControlled } from './control.ts';
import { freePort } from './ports.ts';
import { MAIN, ProxyProcess, startProxy, temporaryFile, toml } from './proxy.ts';

test('every command of the manual does what it says, and changes what serves', async () => {
  const [alpha, beta, gamma] = [
    await startBackend('alpha'),
    await startBackend('beta'),
    await startBackend('gamma'),
  ];
  const [first, second] = [await freePort(), await freePort()];
  const traces = dirname(temporaryFile('traces', ''));
  const control = await startControlled({
    listen: `127.0.0.1:${first}`,
    backends: [alpha],
    top: { recorder_folder: traces },
  });
  const used = new Set<string>();
  const run = (command: string, options = ''): Promise<Record<string, unknown>> => {
    used.add(command);
    return control.ask(...`${command} ${options}`.trim().split(' '));
  };
  const at = `-a 127.0.0.1:${second}`;

  await run('cluster add', `-i blue --load-balancing-policy hrw --settings udp.requests=7`);
  expect(await run('cluster list', '-i blue')).toMatchObject({
    answer: { clusters: [{ cluster: 'blue', load_balancing: 'HRW', backends: 0 }] },
  });
  await run('backend add', `-i blue -a ${beta.endpoint} --backend-id b1`);
  await run('backend add', `-i blue -a ${gamma.endpoint} --weight 7 -b true`);
  expect(await run('backend list', '-i blue')).toMatchObject({
    answer: {
      backends: [
        { address: beta.endpoint, backend_id: 'b1', weight: 100, backup: false, state: 'active' },
        { address: gamma.endpoint, weight: 7, backup: true, state: 'active' },
      ],
    },
  });

  await run('listener udp add', `${at} --front-timeout 60 --max-flows 5`);
  await run('frontend udp add', `-i blue ${at}`);
  await run('listener udp activate', at);
  const client = await openClient({ to: second });
  expect(await client.ask('1')).toBe('beta: 1');
  await run('listener udp update', `${at} --max-flows 9`);

  const name = `127.0.0.1:${client.port}`;
  const list = await control.run('flows', 'list', '--cluster', 'blue');
  expect(list.stdout).toContain(name);
  const flows = await run('flows list', '--source 127.0.0.1');
  expect(flows).toMatchObject({ answer: { listed: 1, matched: 1, flows: [{ client: name }] } });
  const [flow] = /\b\d+\.\d+(?="|$)/.exec(JSON.stringify(flows)) ?? [''];
  expect(await run('flows show', flow ?? '')).toMatchObject({
    answer: { client: name, requests: 1 },
  });
  expect(await run('why', `${name} --listener 127.0.0.1:${second}`)).toMatchObject({
    answer: { cluster: 'blue', flow: { flow }, chosen: beta.endpoint, tier: 'primary' },
  });
  expect(await run('top', '--interval 100ms')).toMatchObject({ answer: { flows: 1 } });
  expect(await run('flows kill', flow ?? '')).toMatchObject({ answer: { killed: 1 } });
  expect(await run('metrics get', '--names sozu_udp_active_flows')).toMatchObject({
    answer: { metrics: expect.arrayContaining([expect.objectContaining({ value: 0 })]) },
  });

  await run('backend weight', `50 -i blue -a ${beta.endpoint}`);
  await run('backend drain', `-i blue -a ${beta.endpoint} --force --wait`);
  expect(await client.ask('2')).toBe('gamma: 2');
  await run('backend undrain', `-i blue -a ${beta.endpoint}`);
  await run('backend disable', `-i blue -a ${gamma.endpoint}`);
  expect(await client.ask('3')).toBe('beta: 3');
  await run('backend remove', `-i blue -a ${gamma.endpoint}`);

  const state = join(dirname(control.proxy.file), 'state');
  await run('state save', `-f ${state}`);
  expect(statSync(state).mode & 0o777).toBe(0o600);
  await run('frontend udp remove', `-i blue ${at}`);
  await run('listener udp deactivate', at);
  await run('listener udp remove', at);
  await run('cluster remove', '-i blue');
  expect(await run('state load', `-f ${state}`)).toMatchObject({
    ok: true,
    answer: { refused: 0 },
  });
  const back = await openClient({ to: second });
  expect(await back.ask('4')).toBe('beta: 4');

  expect(await run('reload', '--dry-run')).toMatchObject({
    answer: {
      commands: expect.arrayContaining([{ kind: 'RemoveCluster', cluster: 'blue' }]),
      listeners: expect.arrayContaining([
        expect.objectContaining({ listener: `127.0.0.1:${second}`, flows_close: 1 }),
      ]),
    },
  });
  expect(await run('reload')).toMatchObject({ changed: true, answer: { not_listening: [] } });
  expect(await run('status')).toMatchObject({
    answer: {
      flows: 0,
      last_reload: { cause: 'command', ok: true },
      clusters: [{ cluster: 'e2e' }],
    },
  });
  const { answer } = await run('trace dump');
  expect(JSON.stringify(answer)).toContain(traces);

  const events = control.start('events');
  used.add('events');
  await eventually(async () => {
    const on = await control.ask('backend', 'drain', '-i', 'e2e', '-a', alpha.endpoint, '--force');
    await control.ask('backend', 'undrain', '-i', 'e2e', '-a', alpha.endpoint);
    expect(on).toMatchObject({ ok: true });
    return events.stdout.all.length > 0;
  });
  const told = await events.stdout.next();
  expect(told).toMatch(/kind=(?:BackendDrained|Availability) cluster=e2e/);

  const audit = control.proxy.logs.all.filter(({ msg }) => msg === 'control command');
  expect(audit.length).toBeGreaterThan(18);
  expect(audit.map(({ asked }) => String(asked)).join()).not.toContain('flows list');
  expect(await run('shutdown', '--hard --wait')).toMatchObject({ ok: true });
  expect(await control.proxy.exit).toEqual({ code: 0, signal: null });
  expect(await events.exit).toMatchObject({ code: 3 });
  expect(manualCommands().filter((words) => !used.has(words))).toEqual(['completion']);
});

test('refusals, mistakes and a proxy that is not there have an exit code of their own', async () => {
  const backend = await startBackend('alpha');
  const control = await startControlled({
    listen: `127.0.0.1:${await freePort()}`,
    backends: [backend],
  });
  const last = await control.run('backend', 'drain', '-i', 'e2e', '-a', backend.endpoint);
  expect(last).toMatchObject({ code: 1, stdout: '' });
  expect(last.stderr).toContain('LastBackend');
  expect(last.stderr).toContain('insist with --force');
  const wrong = await control.run('backend', 'weight', '999', '-i', 'e2e', '-a', backend.endpoint);
  expect(wrong).toMatchObject({ code: 2 });
  expect(wrong.stderr).toContain('expected at most 255, found 999');
  expect(await control.run('backend', 'weight')).toMatchObject({ code: 2 });
  const nowhere = await runToEnd(process.execPath, [MAIN, 'status', '--socket', '/nowhere/x']);
  expect(nowhere).toMatchObject({ code: 3 });
  expect(nowhere.stderr).toContain('no proxy answers at /nowhere/x');
  expect(nowhere.stderr).toContain('--socket names it here');
  const taken = await startBackend('squatter', { port: await freePort() });
  await control.ask('listener', 'udp', 'add', '-a', taken.endpoint);
  const refused = await control.run('listener', 'udp', 'activate', '-a', taken.endpoint);
  expect(refused).toMatchObject({ code: 1 });
  expect(refused.stderr).toContain('ss -ulpn');
  expect(await control.proxy.softStop()).toMatchObject({ code: 0 });
});

test('a socket that a killed proxy left behind is replaced; beside one that serves, another does not start', async () => {
  const backend = await startBackend('alpha');
  const content = async (): Promise<string> =>
    toml({ listen: `127.0.0.1:${await freePort()}`, backends: [backend], top: SOCKET_KEY });
  const first = await startProxy(await content());
  first.signal('SIGKILL');
  await first.exit;
  const again = await runOn(first.file);
  expect(await again.answer('status')).toMatchObject({ pid: again.proxy.child.pid });
  writeFileSync(first.file, await content());
  const second = await runToEnd(process.execPath, [MAIN, 'run', '--config', first.file]);
  expect(second).toMatchObject({ code: 1 });
  expect(second.stderr).toContain('another process serves');
  expect(await again.proxy.softStop()).toMatchObject({ code: 0 });
  expect(() => statSync(again.socket)).toThrow('ENOENT');
});

test('a failed reload keeps the old configuration, and status says so until the next', async () => {
  const backend = await startBackend('alpha');
  const port = await freePort();
  const control = await startControlled({ listen: `127.0.0.1:${port}`, backends: [backend] });
  const before = readFileSync(control.proxy.file, 'utf8');
  writeFileSync(
    control.proxy.file,
    before.replace('[clusters.e2e.udp]', '[clusters.e2e.udp]\nx = 1'),
  );
  const refused = await control.run('reload');
  expect(refused).toMatchObject({ code: 1 });
  expect(refused.stderr).toContain('clusters.e2e.udp.x');
  expect(await control.answer('status')).toMatchObject({
    generation: 1,
    last_reload: { ok: false, cause: 'command', problems: [{ path: 'clusters.e2e.udp.x' }] },
  });
  const client = await openClient({ to: port });
  expect(await client.ask('still')).toBe('alpha: still');
  writeFileSync(control.proxy.file, before);
  control.proxy.signal('SIGHUP');
  await control.proxy.logged('reloaded');
  expect(await control.answer('status')).toMatchObject({
    last_reload: { ok: true, cause: 'signal' },
  });
  expect(await control.proxy.softStop()).toMatchObject({ code: 0 });
});

test('a file that is watched is read again when it changes', async () => {
  const [alpha, beta] = [await startBackend('alpha'), await startBackend('beta')];
  const port = await freePort();
  const content = (endpoint: string): string =>
    toml({
      listen: `127.0.0.1:${port}`,
      backends: [endpoint],
      top: { ...SOCKET_KEY, watch_config: true },
    });
  const proxy = await startProxy(content(alpha.endpoint));
  writeFileSync(proxy.file, content(beta.endpoint));
  await proxy.logged('reloaded');
  const client = await openClient({ to: port });
  expect(await client.ask('1')).toBe('beta: 1');
  expect(await new Controlled(proxy).answer('status')).toMatchObject({
    last_reload: { cause: 'watch' },
  });
  expect(await proxy.softStop()).toMatchObject({ code: 0 });
});

test('SIGUSR1 has the log go on in a new file after the old one was moved away', async () => {
  const backend = await startBackend('alpha');
  const log = temporaryFile('proxy.log', '');
  const listen = `127.0.0.1:${await freePort()}`;
  const top = { ...SOCKET_KEY, log_target: `file://${log}` };
  const file = temporaryFile('proxy.toml', toml({ listen, backends: [backend], top }));
  const child = new Child(process.execPath, [MAIN, 'run', '--config', file]);
  const control = new Controlled(new ProxyProcess(child, file));
  await eventually(async () => (await control.run('status')).code === 0);
  renameSync(log, `${log}.1`);
  child.signal('SIGUSR1');
  await eventually(async () => {
    await control.ask('backend', 'weight', '7', '-i', 'e2e', '-a', backend.endpoint);
    return existsSync(log);
  });
  await control.ask('backend', 'weight', '8', '-i', 'e2e', '-a', backend.endpoint);
  expect(readFileSync(`${log}.1`, 'utf8')).toContain('started');
  expect(readFileSync(log, 'utf8')).toContain('control command');
  expect(child.stdout.all).toEqual([]);
  child.signal('SIGTERM');
  expect(await child.exit).toEqual({ code: 0, signal: null });
});

/** What the manual lists. */
function manualCommands(): string[] {
  const manual = readFileSync(join(import.meta.dirname, '../../doc/CONTROL.md'), 'utf8');
  const table = manual.slice(manual.indexOf('<!-- commands -->'), manual.indexOf('<!-- end -->'));
  const listed = [...table.matchAll(/^\| `([a-z ]+?)(?: [<[].*?)?`/gm)].map(
    ([, words]) => words ?? '',
  );
  expect(listed.length).toBeGreaterThan(30);
  return listed;
}

async function runOn(file: string): Promise<Controlled> {
  const child = new Child(process.execPath, [MAIN, 'run', '--config', file]);
  const proxy = new ProxyProcess(child, file);
  await proxy.logged('started');
  return new Controlled(proxy);
}

/** Tries until it is so. */
async function eventually(look: () => Promise<boolean>): Promise<void> {
  while (!(await look()));
}
