/** Where figures were measured: what a reader needs to know who wants to compare them with others. */
import { spawnSync } from 'node:child_process';
import { cpus, arch, release, totalmem } from 'node:os';
import { ROOT } from './paths.ts';
import { findProgram } from './programs.ts';

export interface Machine {
  readonly processor: string;
  readonly processors: number;
  readonly architecture: string;
  readonly memoryMiB: number;
  readonly kernel: string;
  readonly node: string;
  /** Of the programs it was compared with, those that are installed. */
  readonly versions: Readonly<Record<string, string>>;
  /** Of this checkout; empty outside of one. `isClean`: nothing differed from it. */
  readonly commit: string;
  readonly isClean: boolean;
  readonly when: string;
}

const VERSION_WORDS: Readonly<Record<string, readonly string[]>> = {
  nginx: ['-v'],
  dnsdist: ['--version'],
  dnsperf: ['-h'],
  gcc: ['--version'],
};

export function describeMachine(): Machine {
  const versions = Object.entries(VERSION_WORDS).flatMap(([name, words]) => {
    const version = versionOf(name, words);
    return version === undefined ? [] : [[name, version]];
  });
  return {
    processor: cpus()[0]?.model ?? 'unknown',
    processors: cpus().length,
    architecture: arch(),
    memoryMiB: Math.round(totalmem() / 2 ** 20),
    kernel: release(),
    node: process.version,
    versions: Object.fromEntries(versions),
    commit: git('rev-parse', '--short', 'HEAD'),
    isClean: git('status', '--porcelain', '--untracked-files=no') === '',
    when: new Date().toISOString(),
  };
}

/** What it calls its version, or else the first number of that kind. */
function versionOf(name: string, words: readonly string[]): string | undefined {
  const path = findProgram(name);
  if (path === undefined) return undefined;
  const { stdout, stderr } = spawnSync(path, words, { encoding: 'utf8' });
  const text = stderr + stdout;
  const named = /version\D{0,12}(\d+(?:\.\d+)+)/i.exec(text)?.[1];
  return named ?? /\d+(?:\.\d+)+/.exec(text)?.[0];
}

function git(...words: readonly string[]): string {
  return spawnSync('git', words, { cwd: ROOT, encoding: 'utf8' }).stdout?.trim() ?? '';
}
