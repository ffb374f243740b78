import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test, vi } from 'vitest';
import { present } from '../../core/index.ts';
import { LOCAL } from '../../test/driver-bench.ts';
import { LoopbackPeer } from '../../test/loopback-peer.ts';
import { runDemo } from './demo.ts';

const before = process.listeners('SIGTERM');

afterEach(() => {
  vi.restoreAllMocks();
});

test('starts, answers what it tells the reader to type, in turns, and stops on a signal', async () => {
  const said: string[] = [];
  vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
    said.push(String(chunk));
    return true;
  });
  const exitCode = runDemo(0);
  await vi.waitFor(() => expect(said).toHaveLength(1));
  const command = present(/^ {2}(node .*)$/m.exec(said.join(''))?.[1], 'a command to type');
  expect(await typed(command)).toBe('alpha: hello\n');
  expect(await typed(command)).toBe('beta: hello\n');
  terminate();
  terminate();
  expect(await exitCode).toBe(0);
  terminate();
  expect(said).toHaveLength(1);
});

test('exits with 1 when its port is taken, says why, and leaves nothing open', async () => {
  const said = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const taken = new LoopbackPeer(LOCAL);
  expect(await runDemo(taken.address.port)).toBe(1);
  expect(said.mock.calls.join('')).toContain(
    `cannot listen on 127.0.0.1:${taken.address.port}: EADDRINUSE`,
  );
  taken.close();
  await vi.waitFor(() => expect(process.getActiveResourcesInfo()).not.toContain('UDPWrap'));
});

async function typed(command: string): Promise<string> {
  return text(spawn('sh', ['-c', command], { stdio: ['ignore', 'pipe', 'inherit'] }).stdout);
}

/** What a signal does, without one: the test runner listens too. */
function terminate(): void {
  for (const listener of process.listeners('SIGTERM')) {
    if (!before.includes(listener)) listener('SIGTERM');
  }
}
