/** Where a state is written to. What is in it: shell/control/state.ts and test/e2e/control.e2e.test.ts. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { loadState, saveState } from './state-file.ts';

const LINE = '{"v":1,"command":"cluster add","cluster":"dns"}\n';

test('a file is replaced as a whole, for its owner alone', async () => {
  const { folder, socket } = await proxy();
  const file = join(folder, 'state.json');
  expect(await saveState({ socket, file })).toBe(0);
  expect(await saveState({ socket, file })).toBe(0);
  expect(readFileSync(file, 'utf8')).toBe(LINE);
  expect(lstatSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder).sort()).toEqual(['control.sock', 'state.json']);
});

test('a pipe is written to and stays one, as /dev/stdout has to', async () => {
  const { folder, socket } = await proxy();
  const file = join(folder, 'pipe');
  execFileSync('mkfifo', [file]);
  // For both ways, so that neither end waits for the other.
  const pipe = await open(file, 'r+');
  onTestFinished(() => pipe.close());
  expect(await saveState({ socket, file })).toBe(0);
  const { buffer, bytesRead } = await pipe.read(Buffer.alloc(1_000));
  expect(buffer.toString('utf8', 0, bytesRead)).toBe(LINE);
  expect(lstatSync(file).isFIFO()).toBe(true);
});

test('a folder is no file, and stays as it is', async () => {
  const { folder, socket } = await proxy();
  expect(await saveState({ socket, file: folder })).toBe(2);
  expect(readdirSync(folder)).toEqual(['control.sock']);
});

test('lines that are no commands are all told, by their places in the file', async () => {
  const { folder, socket, said } = await proxy();
  const file = join(folder, 'state.json');
  writeFileSync(file, `\n${LINE}\n{}\n  \n[1]\nx\n{"v":2,"command":"status"}\n`);
  expect(await loadState({ socket, file })).toBe(2);
  expect(said()).toEqual(
    [4, 6, 7, 8].map((n) => `${file}: line ${n} is no command of version 1\n`),
  );
  writeFileSync(file, 'x\n'.repeat(1_000));
  expect(await loadState({ socket, file })).toBe(2);
  expect(said()).toHaveLength(4 + 21);
  expect(said().at(-1)).toBe('and 980 more lines\n');
});

/** One that has one cluster, in a folder of its own. */
async function proxy(): Promise<{ folder: string; socket: string; said: () => string[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'sozu-udp-state-'));
  const socket = join(folder, 'control.sock');
  const server = createServer((client) => {
    const answer = { requests: [{ command: 'cluster add', cluster: 'dns' }] };
    const reply = { v: 1, id: 1, ok: true, changed: false, generation: 1, answer };
    client.once('data', () => client.write(`${JSON.stringify(reply)}\n`));
  });
  server.listen(socket);
  await once(server, 'listening');
  const stdout = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  onTestFinished(() => {
    stdout.mockRestore();
    stderr.mockRestore();
    server.close();
    rmSync(folder, { recursive: true });
  });
  return { folder, socket, said: () => stderr.mock.calls.map(([line]) => String(line)) };
}
