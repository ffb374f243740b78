/** Programs that a test needs and this project does not bring: in CI they must be there, elsewhere the test is skipped. */
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'vitest';
import { PATH } from './child.ts';

/** The Debian package of each program. */
const PACKAGES = {
  unbound: 'unbound',
  dnsperf: 'dnsperf',
  ip: 'iproute2',
  tc: 'iproute2',
  prlimit: 'util-linux',
} as const;

export type Peer = keyof typeof PACKAGES;

/** Goes on when every peer is installed; otherwise fails in CI, and skips the test with a line to type elsewhere. */
export function needPeers(context: TestContext, ...peers: readonly Peer[]): void {
  const missing = peers.filter((peer) => !isInstalled(peer));
  if (missing.length === 0) return;
  const packages = [...new Set(missing.map((peer) => PACKAGES[peer]))].join(' ');
  skipOrFail(context, `${missing.join(' and ')} not found: apt-get install ${packages}`);
}

/** The same for the right to make network namespaces. */
export function needRoot(context: TestContext): void {
  if (process.getuid?.() !== 0) skipOrFail(context, 'needs root: run the tests with sudo');
}

function skipOrFail(context: TestContext, why: string): void {
  if (process.env['CI'] === 'true') throw new Error(why);
  process.stderr.write(`skipped: ${context.task.name}\n  ${why}\n`);
  context.skip(why);
}

function isInstalled(program: string): boolean {
  return PATH.split(':').some((folder) => isExecutable(join(folder, program)));
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
