import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { skip } from '../../test/e2e/peers.ts';
import { simulate } from '../../test/simulator.ts';

const SCRIPT = join(import.meta.dirname, '../../tools/node-versions.sh');
const IN_CI = process.env['CI'] === 'true';
const HAS_BINARIES = process.platform === 'linux' && process.arch === 'x64';

/** The binary; in CI it is fetched when it must be there, elsewhere only one that was fetched before is taken. */
function binaryOf(version: string, always: boolean): string {
  if (!HAS_BINARIES) return '';
  const args = IN_CI && always ? [version] : [version, '--fetched'];
  return execFileSync(SCRIPT, args, { encoding: 'utf8' }).trim();
}

const SWEEP = ['--seeds', '20', '--steps', '400'];

test.for([
  { version: '22.23.5', always: false },
  { version: '24.22.3', always: true },
])('Node $version has the digest of this Node', async ({ version, always }, context) => {
  const node = binaryOf(version, always);
  if (node === '') skip(context, `tools/node-versions.sh ${version} fetches it, on Linux on x64`);
  const [here, there] = await Promise.all([simulate(SWEEP), simulate(SWEEP, { node })]);
  expect(here.code).toBe(0);
  expect(there.code).toBe(0);
  expect(digestOf(there.stdout)).toMatch(/^[0-9a-f]{16}$/);
  expect(digestOf(there.stdout)).toBe(digestOf(here.stdout));
});

function digestOf(stdout: string): string | undefined {
  return /^digest (.*)$/m.exec(stdout)?.[1];
}
