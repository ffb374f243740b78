/** Which build this is: for `--version`, and for traces, which only the build that wrote them replays for sure. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** package.json stands two folders above the compiled file and one above the source. */
const ROOTS = ['../../', '../'];

/** From package.json; `unknown` where there is none. */
export function packageVersion(): string {
  for (const root of ROOTS) {
    const parsed = parseJson(read(`${root}package.json`) ?? '');
    if (typeof parsed === 'object' && parsed !== null && 'version' in parsed) {
      return String(parsed.version);
    }
  }
  return 'unknown';
}

/** The version, and the commit where this is a checkout: `0.1.0 (41a2ca6…)`. */
export function buildName(): string {
  const commit = ROOTS.map(commitIn).find((found) => found !== undefined);
  return commit === undefined ? packageVersion() : `${packageVersion()} (${commit})`;
}

function commitIn(root: string): string | undefined {
  const head = read(`${root}.git/HEAD`)?.trim();
  const branch = head?.startsWith('ref: ') === true ? head.slice('ref: '.length) : undefined;
  const commit = branch === undefined ? head : read(`${root}.git/${branch}`)?.trim();
  return commit !== undefined && /^[0-9a-f]{40,64}$/.test(commit) ? commit : undefined;
}

function read(path: string): string | undefined {
  try {
    return readFileSync(fileURLToPath(new URL(path, import.meta.url)), 'utf8');
  } catch {
    return undefined;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
