/** What is remembered of a file that is read again. Real processes: test/e2e/reload.e2e.test.ts. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../test/e2e/ports.ts';
import { readEnvironment } from './config/environment.ts';
import { loadConfig } from './config/load.ts';
import type { ProxyEvent } from './event-hub.ts';
import { Proxy } from './proxy.ts';
import { Reloader, type DryRun } from './reloader.ts';

test('a start counts as the first reload; each one after it is remembered and told', async () => {
  const { reloader, file, events, text } = await started();
  expect(reloader.last).toMatchObject({ cause: 'start', outcome: { ok: true, generation: 1 } });
  writeFileSync(file, text.replace('weight = 100', 'weight = 7'));
  reloader.reload('signal');
  expect(reloader.last).toMatchObject({ cause: 'signal', outcome: { ok: true, generation: 2 } });
  writeFileSync(file, 'x = [');
  reloader.reload('watch');
  expect(reloader.last).toMatchObject({
    cause: 'watch',
    outcome: { ok: false, error: { kind: 'Invalid' }, problems: [{ line: 1 }] },
  });
  expect(events.filter(({ kind }) => kind === 'Reload')).toHaveLength(2);
});

test('settings are those of the last file without an error', async () => {
  const { reloader, file, text } = await started();
  writeFileSync(file, `buffer_size = 9000\n${text}`);
  reloader.reload('command');
  expect(reloader.settings.bufferSize).toBe(9_000);
  writeFileSync(file, `buffer_size = 7000\n${text}x = [`);
  reloader.reload('command');
  expect(reloader.settings.bufferSize).toBe(9_000);
});

test('a dry run names the commands, the moved keys and the flows, and changes nothing', async () => {
  const { reloader, proxy, file, text } = await started();
  writeFileSync(file, text.replace('weight = 100', 'weight = 7'));
  const result = await dryRun(reloader);
  if (!result.ok) throw new Error(result.error.message);
  expect(result.commands.map(({ kind }) => kind)).toEqual(['AddBackend']);
  expect(result.preview.listeners).toMatchObject([{ flows: { keep: 0 } }]);
  expect(reloader.last.cause).toBe('start');
  proxy.command({ kind: 'Status' }, (reply) => {
    expect(reply).toMatchObject({ generation: 1 });
  });
});

test('a dry run of a broken file tells its problems', async () => {
  const { reloader, file } = await started();
  writeFileSync(file, 'x = [');
  expect(await dryRun(reloader)).toMatchObject({ ok: false, problems: [{ line: 1 }] });
});

test('what applies from the next start is told by its name in the file, until the file has it as at the start', async () => {
  const { reloader, file, text } = await started();
  const changed = `workers = 2\ncommand_socket = "other.sock"\nrecorder_segment_size = 65536\n${text}`;
  writeFileSync(file, changed);
  const names = ['workers', 'command_socket', 'recorder'];
  expect(await dryRun(reloader)).toMatchObject({ ok: true, atNextStart: names });
  expect(reloader.atNextStart).toEqual([]);
  reloader.reload('command');
  expect(reloader.atNextStart).toEqual(names);
  writeFileSync(file, `weight = 1\n${changed}`);
  reloader.reload('command');
  expect(reloader.atNextStart).toEqual(names);
  writeFileSync(file, text);
  reloader.reload('command');
  expect(reloader.atNextStart).toEqual([]);
});

function dryRun(reloader: Reloader): Promise<DryRun> {
  return new Promise((resolve) => reloader.dryRun(resolve));
}

async function started(): Promise<{
  reloader: Reloader;
  proxy: Proxy;
  file: string;
  text: string;
  events: ProxyEvent[];
}> {
  const folder = mkdtempSync(join(tmpdir(), 'sozu-udp-reloader-'));
  const file = join(folder, 'proxy.toml');
  const address = `127.0.0.1:${await freePort()}`;
  const text = `
[[listeners]]
protocol = "udp"
address = "${address}"
[clusters.c]
protocol = "tcp"
load_balancing = "HRW"
frontends = [{ address = "${address}" }]
backends = [{ address = "127.0.0.1:9", weight = 100 }]
`;
  writeFileSync(file, text);
  const { config, settings } = loadConfig(file, readEnvironment());
  if (config === undefined || settings === undefined) throw new Error('the file is right');
  const log = pino({ level: 'silent' });
  const proxy = new Proxy(config, log);
  onTestFinished(async () => {
    proxy.stop();
    await proxy.stopped;
    rmSync(folder, { recursive: true });
  });
  const events: ProxyEvent[] = [];
  proxy.events.subscribe((event) => events.push(event));
  return { reloader: new Reloader({ file, proxy, log, settings }), proxy, file, text, events };
}
