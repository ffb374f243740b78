/** When a watched file counts as changed. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { watchFile } from './config-watch.ts';

test('a file that is written, or replaced by another, is a change; its neighbours are not', async () => {
  const { folder, file, changes } = watched();
  writeFileSync(join(folder, 'neighbour'), 'x');
  writeFileSync(file, 'longer than before');
  await changes(1);
  writeFileSync(join(folder, 'new'), 'another');
  renameSync(join(folder, 'new'), file);
  await changes(2);
});

test('a link that leads elsewhere is a change, as Kubernetes does it', async () => {
  const { folder, file, changes } = watched((path) => {
    mkdirSync(join(path, '../v1'));
    writeFileSync(join(path, '../v1/proxy.toml'), 'one');
    symlinkSync('v1', join(path, '../data'));
    symlinkSync('data/proxy.toml', path);
  });
  mkdirSync(join(folder, 'v2'));
  writeFileSync(join(folder, 'v2/proxy.toml'), 'other');
  symlinkSync('v2', join(folder, 'data.new'));
  renameSync(join(folder, 'data.new'), join(folder, 'data'));
  await changes(1);
  expect(file).toContain('proxy.toml');
});

test('several writes at once are one change', async () => {
  const { file, changes, count } = watched();
  for (const text of ['a', 'ab', 'abc', 'abcd']) writeFileSync(file, text);
  await changes(1);
  expect(count()).toBe(1);
});

test('a link to itself is awaited like a file that is gone', async () => {
  const { folder, file, changes } = watched((path) => symlinkSync('proxy.toml', path));
  writeFileSync(join(folder, 'new'), 'another');
  renameSync(join(folder, 'new'), file);
  await changes(1);
});

test('a folder that another takes the place of is followed there', async () => {
  const { folder, file, changes } = watched();
  renameSync(folder, `${folder}.old`);
  onTestFinished(() => rmSync(`${folder}.old`, { recursive: true }));
  mkdirSync(folder);
  writeFileSync(file, 'longer than before');
  await changes(1);
  writeFileSync(file, 'longer than before and now');
  await changes(2);
});

test('a folder that is not there is told, and nothing fails', () => {
  const lines: string[] = [];
  const log = pino({}, { write: (line) => void lines.push(line) });
  watchFile(join(tmpdir(), 'sozu-udp-no-such-folder', 'file'), () => undefined, log)();
  expect(lines.join('')).toContain('is not watched');
});

/** A file in a folder of its own, whose changes are counted. */
function watched(make: (path: string) => void = (path) => writeFileSync(path, 'before')): {
  folder: string;
  file: string;
  changes: (count: number) => Promise<void>;
  count: () => number;
} {
  const folder = mkdtempSync(join(tmpdir(), 'sozu-udp-watch-'));
  const file = join(folder, 'proxy.toml');
  make(file);
  let seen = 0;
  let heard: () => void = () => undefined;
  const unwatch = watchFile(
    file,
    () => {
      seen += 1;
      heard();
    },
    pino({ level: 'silent' }),
  );
  onTestFinished(() => {
    unwatch();
    rmSync(folder, { recursive: true });
  });
  const changes = (count: number): Promise<void> =>
    new Promise((resolve) => {
      heard = () => {
        if (seen >= count) resolve();
      };
      heard();
    });
  return { folder, file, changes, count: () => seen };
}
