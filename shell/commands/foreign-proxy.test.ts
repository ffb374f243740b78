/** What the client makes of a proxy that answers what none of ours does: a sentence and exit code 3, never a stack. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { expect, onTestFinished, test, vi } from 'vitest';
import { EXIT_UNREACHABLE } from '../exit-codes.ts';
import { askOnce } from './ask.ts';
import { addControlCommands } from './control.ts';
import { saveState } from './state-file.ts';
import { top } from './top.ts';

const DEEP = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;

const ANSWERS = {
  'no answer at all': '"answer":null',
  'a number': '"answer":5',
  'lists of other things': '"answer":{"requests":[1],"flows":[1],"problems":"x","matched":"x"}',
  'lists in lists without end': `"answer":{"requests":${DEEP},"flows":${DEEP}}`,
};

test.each(Object.entries(ANSWERS))('a reply with %s', async (_, answer) => {
  const { socket, said } = await proxySaying(
    `{"v":1,"id":1,"ok":true,"changed":false,"generation":1,${answer}}\n`,
  );
  expect(await saveState({ socket, file: '/nonexistent/file' })).toBe(EXIT_UNREACHABLE);
  expect(await top({ socket, interval: 100, rows: 1 })).toBe(EXIT_UNREACHABLE);
  await run(socket, 'flows', 'list');
  await run(socket, 'reload', '--dry-run');
  expect(said().every((line) => line.includes('another language'))).toBe(true);
});

test('a reply that is too deep to be shown', async () => {
  const { socket, said } = await proxySaying(
    `{"v":1,"id":1,"ok":true,"changed":false,"generation":1,"answer":{"a":${DEEP}}}\n`,
  );
  expect(await askOnce({ socket }, { command: 'status' })).toBe(EXIT_UNREACHABLE);
  expect(await askOnce({ socket, json: true }, { command: 'status' })).toBe(EXIT_UNREACHABLE);
  expect(said()).toHaveLength(1);
});

test('parts and events of no kind that there is', async () => {
  const { socket } = await proxySaying(
    `{"v":1,"id":1,"part":{"flows":[1,"x"]}}\n{"v":1,"event":{"a":${DEEP}}}\n`,
  );
  await run(socket, 'flows', 'kill', '--cluster', 'dns');
  await run(socket, 'flows', 'list');
});

test('an event that is too deep to be shown', async () => {
  const ok = '{"v":1,"id":1,"ok":true,"changed":false,"generation":1}';
  const { socket } = await proxySaying(`${ok}\n{"v":1,"event":{"a":${DEEP}}}\n`);
  await run(socket, 'events');
});

/** Runs a command line, which has to find that nobody it knows answers. */
async function run(socket: string, ...words: string[]): Promise<void> {
  const command = new Command('sozu-udp');
  addControlCommands(command);
  await command.parseAsync([...words, '--socket', socket], { from: 'user' });
  expect(process.exitCode).toBe(EXIT_UNREACHABLE);
}

/** Somebody who says the same to everybody; and what the client then told, on standard error. */
async function proxySaying(text: string): Promise<{ socket: string; said: () => string[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'sozu-udp-foreign-'));
  const socket = join(folder, 'control.sock');
  const server = createServer((client) => {
    client.on('error', () => undefined);
    client.once('data', () => client.write(text));
  });
  server.listen(socket);
  await once(server, 'listening');
  const codeBefore = process.exitCode;
  const stdout = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  onTestFinished(() => {
    stdout.mockRestore();
    stderr.mockRestore();
    process.exitCode = codeBefore;
    server.close();
    rmSync(folder, { recursive: true });
  });
  return { socket, said: () => stderr.mock.calls.map(([line]) => String(line)) };
}
