/** `sozu-udp doctor` on this machine, beside a proxy that runs and after one that was killed. */
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { startBackend } from './backend.ts';
import { runToEnd } from './child.ts';
import { freePort } from './ports.ts';
import { MAIN, startProxy, temporaryFile, toml } from './proxy.ts';

interface Answer {
  readonly schema: number;
  readonly file?: string;
  readonly findings: readonly { readonly severity: string; readonly check: string }[];
  readonly ok: boolean;
}

test('looks at this machine, and says by its exit code how it is', async () => {
  const { code, answer } = await ask();
  expect(answer.schema).toBe(1);
  const worst = answer.findings.map(({ severity }) =>
    ['notice', 'warning', 'error'].indexOf(severity),
  );
  expect(code).toBe(Math.max(0, ...worst));
  expect(answer.ok).toBe(code === 0);
});

test('beside a running proxy its addresses are not taken, and after a kill its socket is stale', async () => {
  const backend = await startBackend('alpha');
  const listen = `127.0.0.1:${await freePort()}`;
  const socket = join(dirname(temporaryFile('place', '')), 'control.sock');
  const proxy = await startProxy(
    toml({ listen, backends: [backend], top: { command_socket: socket } }),
  );
  const about = async (): Promise<string[]> => {
    const { answer } = await ask('--config', proxy.file);
    expect(answer.file).toBe(proxy.file);
    return answer.findings.map(({ check }) => check);
  };
  const running = await about();
  expect(running).not.toContain('addresses');
  expect(running).not.toContain('control-socket');
  proxy.signal('SIGKILL');
  await proxy.exit;
  expect(await about()).toContain('control-socket');
});

test('an address that another program has is an error', async () => {
  const backend = await startBackend('alpha');
  const other = await startBackend('beta');
  const file = temporaryFile(
    'taken.toml',
    toml({ listen: other.endpoint, backends: [backend], top: { command_socket: '' } }),
  );
  const { code, answer } = await ask('--config', file);
  expect(code).toBe(2);
  expect(answer.findings).toContainEqual(
    expect.objectContaining({ severity: 'error', check: 'addresses' }),
  );
});

async function ask(...args: readonly string[]): Promise<{ code: number | null; answer: Answer }> {
  const { code, stdout } = await runToEnd(process.execPath, [MAIN, 'doctor', '--json', ...args]);
  const answer: Answer = JSON.parse(stdout);
  return { code, answer };
}
