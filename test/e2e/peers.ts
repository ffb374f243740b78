/**
 * What a test needs of its machine and this project does not bring: programs, IPv6, rights. In CI it must be there, elsewhere
 * the test is skipped, and a line says what is missing.
 */
import { accessSync, constants } from 'node:fs';
import { createRequire } from 'node:module';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'vitest';
import { PATH, runNow } from './child.ts';

/** The Debian package of each program. */
const PACKAGES = {
  unbound: 'unbound',
  dnsperf: 'dnsperf',
  ip: 'iproute2',
  tc: 'iproute2',
  ss: 'iproute2',
  prlimit: 'util-linux',
  gcc: 'gcc',
  promtool: 'prometheus',
  prometheus: 'prometheus',
} as const;

export type Peer = keyof typeof PACKAGES;

/** Goes on when every peer is installed; otherwise fails in CI, and skips the test with a line to type elsewhere. */
export function needPeers(context: TestContext, ...peers: readonly Peer[]): void {
  const missing = peers.filter((peer) => !isInstalled(peer));
  if (missing.length === 0) return;
  const packages = [...new Set(missing.map((peer) => PACKAGES[peer]))].join(' ');
  skipOrFail(context, `${missing.join(' and ')} not found: apt-get install ${packages}`);
}

/** The same for IPv6: without `::1` on an interface, no IPv6 socket of a test can be reached. */
export function needIpv6(context: TestContext): void {
  const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  if (addresses.some(({ address }) => address === '::1')) return;
  skipOrFail(context, 'this machine has no ::1: sysctl net.ipv6.conf.lo.disable_ipv6=0');
}

/** The same for the right to make network namespaces, which root in a container often lacks. Needs `ip`. */
export function needRoot(context: TestContext): void {
  if (process.getuid?.() !== 0) return skipOrFail(context, 'needs root: run the tests with sudo');
  namespaceRefusal ??= tryNamespace();
  if (namespaceRefusal === '') return;
  skipOrFail(context, `network namespaces cannot be made here: ${namespaceRefusal}`);
}

/** The same for the optional package koffi, which loads where it is installed for this system. */
export function needKoffi(context: TestContext): void {
  try {
    createRequire(import.meta.url)('koffi');
  } catch {
    skipOrFail(context, 'koffi not found: npm ci');
  }
}

/** A test that does not run says so: the reporter's list is easily overlooked. */
export function skip(context: TestContext, why: string): void {
  process.stderr.write(`skipped: ${context.task.name}\n  ${why}\n`);
  context.skip(why);
}

function skipOrFail(context: TestContext, why: string): void {
  if (process.env['CI'] === 'true') throw new Error(why);
  skip(context, why);
}

/** Why the one try failed; empty when it did not. */
let namespaceRefusal: string | undefined;

function tryNamespace(): string {
  const name = `sozu-udp-try-${process.pid}`;
  try {
    runNow('ip', ['netns', 'add', name]);
    runNow('ip', ['netns', 'del', name]);
    return '';
  } catch (error) {
    return error instanceof Error ? error.message.trim().replaceAll('\n', ' ') : String(error);
  }
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
