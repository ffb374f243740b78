/** Where the token comes from, and what is none. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readToken } from './token.ts';

test('is the first line of a file that only its owner and group may read', () => {
  expect(readToken(fileWith('0123456789abcdef\nand more'))).toBe('0123456789abcdef');
  expect(readToken(fileWith('0123456789abcdef', 0o640))).toBe('0123456789abcdef');
});

test.each([
  ['empty', '', 'no token of 16 characters or more'],
  ['short', '0123456789abcde\n', 'no token of 16 characters or more'],
  ['with blanks', '0123456789 abcdef\n', 'no token of 16 characters or more'],
  ['with a byte that no header takes', '0123456789abcdefé\n', 'no token'],
  ['endless', 'x'.repeat(5_000), 'more than 4096 bytes'],
])('one that is %s is refused', (_, content, problem) => {
  expect(() => readToken(fileWith(content))).toThrow(problem);
});

test('a file that everybody may read, or that is not there, is refused', () => {
  expect(() => readToken(fileWith('0123456789abcdef', 0o604))).toThrow('may be read by everybody');
  expect(() => readToken('/nowhere/token')).toThrow('ENOENT');
});

function fileWith(content: string, mode = 0o600): string {
  const folder = mkdtempSync(join(tmpdir(), 'sozu-udp-token-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'token');
  writeFileSync(file, content);
  chmodSync(file, mode);
  return file;
}
