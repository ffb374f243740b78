/** What the log says of a file that is read again. Real processes and signals: test/e2e/reload.e2e.test.ts. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { listenerId, refused, type Config, type Reply } from '../../core/index.ts';
import { addressOf } from '../../test/plane-bench.ts';
import type { ListenerFailed } from '../proxy.ts';
import { reloadFile } from './reload.ts';

const GOOD = `
log_level = "warn"
[[listeners]]
protocol = "udp"
address = "127.0.0.1:5300"
[clusters.c]
protocol = "tcp"
frontends = [{ address = "127.0.0.1:5300" }]
backends = [{ address = "127.0.0.1:5301" }]
[clusters.c.udp]
`;

const DONE: Reply = {
  ok: true,
  changed: true,
  generation: 4,
  answer: { kind: 'Reloaded', commands: 3 },
};

test('with an error in the file nothing is asked of the proxy, and each problem has its place', () => {
  const { asked, lines } = reload(`${GOOD}responsess = 1\nrequests = -1\n`, DONE);
  expect(asked).toEqual([]);
  expect(lines.filter(({ level }) => level === 50)).toMatchObject([
    { path: 'clusters.c.udp.requests', line: 12 },
    { path: 'clusters.c.udp.responsess', line: 11 },
    { msg: 'not reloaded: the old configuration stays' },
  ]);
});

test('a file that is gone changes nothing either', () => {
  const { asked, lines } = reload(undefined, DONE);
  expect(asked).toEqual([]);
  expect(lines).toMatchObject([{ path: '(file)', level: 50 }, { level: 50 }]);
  expect(lines[0]?.['msg']).toContain('does not exist');
});

test('of very many problems the first are told, errors before all, and how many there are', () => {
  const unknown = Array.from({ length: 150 }, (_, index) => `unknown_${index} = 1\n`).join('');
  const { lines } = reload(`${unknown}${GOOD}requests = -1\n`, DONE);
  expect(lines.filter(({ path }) => path !== undefined)).toHaveLength(100);
  expect(lines[0]).toMatchObject({ level: 50, path: 'clusters.c.udp.requests' });
  expect(lines.at(-2)?.['untold']).toBeGreaterThanOrEqual(51);
});

test('a pipe without a writer is refused and not awaited, for nobody would serve meanwhile', () => {
  const { asked, lines } = reload(mkfifo, DONE);
  expect(asked).toEqual([]);
  expect(lines[0]?.['msg']).toContain('is a pipe');
});

test('the whole configuration is asked for at once, and log_level applies to what is told of it', () => {
  const quiet = reload(GOOD, DONE);
  expect(quiet.asked).toHaveLength(1);
  expect(quiet.asked[0]?.listeners.map(({ address }) => address.port)).toEqual([5_300]);
  expect(quiet.lines.map(({ msg }) => msg)).not.toContain('reloaded');
  const { lines } = reload(GOOD.replace('warn', 'info'), DONE);
  expect(lines.at(-1)).toMatchObject({
    msg: 'reloaded',
    changed: true,
    commands: 3,
    generation: 4,
  });
});

test('what the proxy refuses, and what did not open, is told as an error', () => {
  const stopping = reload(GOOD, refused('Stopping', 'about to end'));
  expect(stopping.lines.at(-1)).toMatchObject({ level: 50, kind: 'Stopping' });
  const { lines } = reload(GOOD, DONE, [
    {
      kind: 'ListenerFailed',
      generation: 4,
      listener: listenerId(0),
      address: addressOf('127.0.0.1:5300'),
      errno: 'EADDRINUSE',
      retry: undefined,
    },
  ]);
  expect(lines.at(-1)).toMatchObject({ level: 50, listener: '127.0.0.1:5300' });
  expect(lines.at(-1)?.['msg']).toContain('ss -ulpn');
});

/** What was asked of a proxy that answers so, and the log. */
function reload(
  content: string | ((file: string) => void) | undefined,
  reply: Reply,
  failures: readonly ListenerFailed[] = [],
): { asked: Config[]; lines: Record<string, unknown>[] } {
  const folder = mkdtempSync(join(tmpdir(), 'sozu-udp-reload-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'proxy.toml');
  if (typeof content === 'string') writeFileSync(file, content);
  else content?.(file);
  const asked: Config[] = [];
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'info' }, { write: (line) => void lines.push({ ...parsed(line) }) });
  const proxy = {
    reload: (
      config: Config,
      answered: (reply: Reply, failures: readonly ListenerFailed[]) => void,
    ): void => {
      asked.push(config);
      answered(reply, failures);
    },
  };
  reloadFile(file, proxy, log);
  return { asked, lines };
}

function mkfifo(path: string): void {
  execFileSync('mkfifo', [path]);
}

function parsed(line: string): object {
  const value: unknown = JSON.parse(line);
  return typeof value === 'object' && value !== null ? value : {};
}
