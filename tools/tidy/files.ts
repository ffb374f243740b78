/**
 * What the house rules look at: the repository's tracked text files, and findings as lines that an editor can jump to.
 * Rules are pure functions of a file, so that each is shown to fail on a bad sample.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface TextFile {
  /** From the root of the repository, with `/`. */
  readonly path: string;
  readonly text: string;
}

/** Everything in `file` that breaks the rule, each as `path:line: what is wrong; what to do instead`. */
export type Rule = (file: TextFile) => readonly string[];

/** The tracked text files of the repository at `root`, as they are on disk. Throws without git. */
export function trackedFiles(root: string): TextFile[] {
  const listed = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' });
  return listed
    .split('\0')
    .filter((path) => path !== '' && existsSync(join(root, path)))
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
    .filter(({ text }) => !text.includes('\0'));
}

/** A finding at a line, counted from 1. */
export function finding({ path }: TextFile, line: number, what: string): string {
  return `${path}:${line}: ${what}`;
}

/** A finding at each line that `pattern` matches. */
export function findLines(file: TextFile, pattern: RegExp, what: string): string[] {
  return file.text
    .split('\n')
    .flatMap((line, index) => (pattern.test(line) ? [finding(file, index + 1, what)] : []));
}

/** The line of an offset, counted from 1. */
export function lineAt({ text }: TextFile, offset: number): number {
  return text.slice(0, offset).split('\n').length;
}

export function isTypeScript({ path }: TextFile): boolean {
  return path.endsWith('.ts');
}

/** Tests and what only tests import. */
export function isTest({ path }: TextFile): boolean {
  return /\.(test|laws)\.ts$/.test(path) || path.startsWith('test/');
}
