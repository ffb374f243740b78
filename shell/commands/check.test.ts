/** What `check` prints and answers. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { formatProblems, runCheck, type CheckOptions } from './check.ts';

const folder = mkdtempSync(join(tmpdir(), 'sozu-udp-check-'));
afterAll(() => rmSync(folder, { recursive: true }));

const clean = `[[listeners]]
protocol = "udp"
address = "127.0.0.1:53"
[clusters.c]
protocol = "tcp"
frontends = [{ address = "127.0.0.1:53" }]
backends = [{ address = "10.0.0.1:53" }]
`;
const warned = `activate_listeners = false\n${clean}`;
const broken = clean.replace('53"\n', '0"\n');

test.each([
  ['a clean file', clean, 0, 0],
  ['a file with warnings', warned, 0, 1],
  ['a file with errors', broken, 2, 2],
  ['an empty file', '', 2, 2],
])('%s: the exit code, and with --strict', async (_, text, code, strictCode) => {
  expect((await check(text)).code).toBe(code);
  expect((await check(text, { strict: true })).code).toBe(strictCode);
});

test('notices never change the exit code', async () => {
  expect((await check(`log_target = "stdout"\n${clean}`, { strict: true })).code).toBe(0);
});

test('a missing file is an error', async () => {
  const printed: string[] = [];
  const write = (text: string): void => void printed.push(text);
  expect(await runCheck(join(folder, 'missing.toml'), { write, environment: {} })).toBe(2);
  expect(printed.join('')).toContain('does not exist');
});

test('a problem takes one line, its fix the next, and a summary ends the answer', async () => {
  const { printed, file } = await check(warned);
  expect(printed).toBe(
    'warning activate_listeners (line 1): every UDP listener is bound at start all the same\n' +
      '  fix: remove the listeners that should not run\n' +
      `${file}: 0 errors, 1 warning, 0 notices\n`,
  );
});

test('--json prints one document with a schema number', async () => {
  const { printed, file } = await check(broken, { json: true, colour: true });
  expect(JSON.parse(printed)).toEqual({
    schema: 1,
    file,
    ok: false,
    problems: expect.arrayContaining([
      expect.objectContaining({ severity: 'error', path: 'listeners[0].address', line: 3 }),
    ]),
  });
  expect(JSON.parse((await check(warned, { json: true })).printed)).toMatchObject({ ok: true });
});

test('colour only when asked', () => {
  const problems = [{ severity: 'error', path: 'a', problem: 'b', fix: 'c' }] as const;
  expect(formatProblems(problems, { colour: false })).toBe('error a: b\n  fix: c\n');
  expect(formatProblems(problems, { colour: true })).toContain('\u001b[31merror\u001b[39m');
});

test('a syntax error shows line and column', () => {
  const problem = { severity: 'error', path: '(file)', line: 2, column: 5, problem: 'b' } as const;
  expect(formatProblems([problem], { colour: false })).toBe('error (file) (line 2, column 5): b\n');
});

test('control characters of a file never reach the terminal', async () => {
  const { printed } = await check(`"\\u001b[2J\\n" = 1\n${clean}`);
  expect(printed).toContain('\\u001b');
  // oxlint-disable-next-line no-control-regex -- the escape character is what must be missing
  expect(printed).not.toMatch(/\u001b/);
});

test('nothing in a file turns the direction of what is printed', async () => {
  const { printed } = await check(`"\\u202e\\u2066" = 1\n${clean}`);
  expect(printed).toContain('\\u202e\\u2066');
  expect(printed).not.toMatch(/\p{Bidi_Control}/u);
});

async function check(
  text: string,
  options: CheckOptions = {},
): Promise<{ code: number; printed: string; file: string }> {
  const file = join(folder, 'check.toml');
  writeFileSync(file, text);
  const printed: string[] = [];
  const write = (part: string): void => void printed.push(part);
  const code = await runCheck(file, { environment: {}, write, ...options });
  return { code, printed: printed.join(''), file };
}

test('as JSON too it has nothing that a terminal obeys, and says the same', async () => {
  const { printed } = await check(`"\u009b\u202ekey" = 1\n${clean}`, { json: true });
  expect(printed.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u);
  expect(JSON.stringify(JSON.parse(printed))).toContain('\u009b\u202ekey');
});
