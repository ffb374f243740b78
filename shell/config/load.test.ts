/** What a path can turn out to be. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { reconcile } from '../../core/reconcile.ts';
import { CONFIG_BYTES_MAX, loadConfig } from './load.ts';

const folder = mkdtempSync(join(tmpdir(), 'sozu-udp-load-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('documented_udp_dns_example_loads_and_emits_udp_requests: one cluster, and one listener that leads there', () => {
  const path = fileURLToPath(new URL('testdata/dns.toml', import.meta.url));
  const config = loadConfig(path, {}).config!;
  const commands = reconcile({ ...config, listeners: [], clusters: [] }, config);
  expect(commands).toMatchObject([
    { kind: 'AddCluster', settings: { cluster: 'dns', responses: 1, sendProxyProtocol: true } },
    { kind: 'SetBackends', cluster: 'dns', backends: config.clusters[0]!.backends },
    { kind: 'AddListener', config: { cluster: 'dns', maxRxDatagramSize: 1_500 } },
    { kind: 'ActivateListener', address: config.listeners[0]!.address },
  ]);
});

test.each([
  ['a missing file', () => join(folder, 'missing.toml'), /does not exist/],
  ['a path through a file', () => join(file('plain', 'x'), 'below'), /does not exist/],
  ['a directory', () => folder, /is a directory/],
  ['a device', () => '/dev/null', /is not a file/],
  ['an empty file', () => file('empty', ''), /the file is empty/],
  ['a binary file', () => process.execPath, /more than \d+ bytes|not a text file/],
  ['invalid UTF-8', () => file('latin1', Uint8Array.of(0x61, 0xe9, 0x0a)), /not a text file/],
  ['a path with a NUL byte', () => 'a\0b', /cannot be read/],
])('%s is refused with a reason and nothing else', (_, path, reason) => {
  const { config, problems } = loadConfig(path(), {});
  expect(config).toBeUndefined();
  expect(problems).toEqual([expect.objectContaining({ severity: 'error', path: '(file)' })]);
  expect(problems[0]?.problem).toMatch(reason);
});

test('a file over the bound is refused before it is read', () => {
  const path = file('huge', 'a = 1\n');
  truncateSync(path, CONFIG_BYTES_MAX + 1);
  expect(loadConfig(path, {}).problems[0]?.problem).toContain(`more than ${CONFIG_BYTES_MAX}`);
});

test.skipIf(process.getuid?.() === 0)(
  'an unreadable file is refused (root reads everything)',
  () => {
    const path = file('secret', 'a = 1\n');
    chmodSync(path, 0);
    expect(loadConfig(path, {}).problems[0]?.problem).toMatch(/may not be read/);
  },
);

test('a pipe is read like a file', () => {
  const path = join(folder, 'pipe');
  const script = `mkfifo "${path}" && { printf 'a = ' > "${path}" & }`;
  execFileSync('sh', ['-c', script], { stdio: 'ignore' });
  expect(loadConfig(path, {}).problems).toMatchObject([{ line: 1, column: 5 }]);
});

test('a pipe that holds too much is refused, however much would come', () => {
  const path = join(folder, 'endless');
  const script = `mkfifo "${path}" && { yes > "${path}" & }`;
  execFileSync('sh', ['-c', script], { stdio: 'ignore' });
  expect(loadConfig(path, {}).problems[0]?.problem).toContain(`more than ${CONFIG_BYTES_MAX}`);
});

function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}
