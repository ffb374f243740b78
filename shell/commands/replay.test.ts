import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runReplay } from './replay.ts';

test('a file that cannot be read is told in words, without the name of a system call', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sozu-udp-replay-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const locked = join(folder, 'locked.trace');
  writeFileSync(locked, '');
  chmodSync(locked, 0o000);
  const absent = join(folder, 'absent.trace');
  expect(said(absent)).toBe(`${absent}: unreadable: there is no such file\n`);
  expect(said(folder)).toBe(`${folder}: unreadable: it is a folder; name a file in it\n`);
  if (process.getuid?.() !== 0) expect(said(locked)).toContain('only its owner may read a trace');
});

/** With exit code 2. */
function said(file: string): string {
  let text = '';
  expect(runReplay(file, { count: 1 }, (more) => (text += more))).toBe(2);
  return text;
}
