/** House rules about any text: no loose ends, nothing that holds on one machine only, no link or mention that leads nowhere. */
import { posix } from 'node:path';
import { finding, findLines, lineAt, type Rule, type TextFile } from './files.ts';

/** Spelled with a class, so that this very line does not match. */
const LOOSE_END = /\b(?:TO[D]O|FIX[M]E|XX[X])\b/;

/** Absolute paths of somebody's machine: home folders, work and temporary folders. */
const MACHINE_PATH = /(?<![\w.)\]}*~-])\/(?:wor[k]|tm[p]|roo[t]|hom[e]|User[s])(?![\w-])/;

const REGISTRY_HOST =
  /\/\/[^\s"']*(?:registr[y]|artifactor[y]|nexu[s]|verdacci[o])|npmj[s]\.(?:org|com)/;

export function checkLooseEnds(file: TextFile): string[] {
  if (isLockfile(file)) return [];
  return findLines(file, LOOSE_END, 'loose end; do it, or file an issue and say what holds today');
}

export function checkMachinePaths(file: TextFile): string[] {
  return [
    ...findLines(file, MACHINE_PATH, 'path of one machine; use a relative one, or os.tmpdir()'),
    ...findLines(file, REGISTRY_HOST, 'registry host; leave that to the npm configuration'),
  ];
}

/** Links of documents, and documents that sources mention, lead to files that `exists` knows. */
export function linkRule(exists: (path: string) => boolean): Rule {
  return (file) => [...brokenLinks(file, exists), ...brokenMentions(file, exists)];
}

function brokenLinks(file: TextFile, exists: (path: string) => boolean): string[] {
  if (!file.path.endsWith('.md')) return [];
  const found: string[] = [];
  for (const match of file.text.matchAll(/\]\(([^)\s]+)\)/g)) {
    const target = (match[1] ?? '').replace(/#.*$/, '');
    if (target === '' || /^[a-z]+:/.test(target)) continue;
    if (exists(posix.join(posix.dirname(file.path), target))) continue;
    found.push(broken(file, match.index, target));
  }
  return found;
}

function brokenMentions(file: TextFile, exists: (path: string) => boolean): string[] {
  const found: string[] = [];
  for (const match of file.text.matchAll(/(?<![\w/.-])(?:doc|core)\/[\w./-]+\.md\b/g)) {
    if (!exists(match[0])) found.push(broken(file, match.index, match[0]));
  }
  return found;
}

function broken(file: TextFile, offset: number, target: string): string {
  return finding(file, lineAt(file, offset), `${target} does not exist; mend the link`);
}

function isLockfile({ path }: TextFile): boolean {
  return path === 'package-lock.json';
}
