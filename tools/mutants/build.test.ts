import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { buildSources, mutate } from './build.ts';

const TEXT = 'function f(a: number): number {\n  if (a > 1) return a;\n  return a + 1;\n}\n';
const mutant = { id: 'm', file: 'x.ts', announces: '' };

test('a mutant changes its line and marks that it ran, not that its neighbour did', () => {
  const search = 'if (a > 1) return a;\n  return a + 1;';
  const replace = 'if (a > 1) return a;\n  return a - 1;';
  const mutation = mutate({ ...mutant, search, replace }, TEXT);
  expect(mutation.kind === 'mutated' && mutation.text).toBe(
    'function f(a: number): number {\n  if (a > 1) return a;\n' +
      '  globalThis.mutantReached = true; return a - 1;\n}\n',
  );
});

test.each([
  { why: 'is not in the file', search: 'return b', replace: '' },
  { why: 'stands there twice', search: 'return a', replace: '' },
  { why: 'does not parse any more', search: 'return a + 1;', replace: 'return a +;' },
])('a mutant is broken when its text $why', ({ search, replace }) => {
  expect(mutate({ ...mutant, search, replace }, TEXT).kind).toBe('broken');
});

test('a build has its own text of what changed, and leaves the one it comes from alone', async () => {
  const root = mkdtempSync(join(tmpdir(), 'build-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const [dist, directory] = [join(root, 'dist'), join(root, 'mutant')];
  for (const folder of ['core/deep', 'sim', 'scenarios']) {
    mkdirSync(join(dist, folder), { recursive: true });
  }
  for (const name of ['x', 'y']) writeFileSync(join(dist, `core/deep/${name}.js`), 'before();\n');

  // Twice: a run that was interrupted leaves its builds behind.
  for (const text of ['first(1 as number);', 'second(2 as number);']) {
    await buildSources(new Map([['core/deep/x.ts', text]]), directory, dist);
  }
  const read = (path: string): string => readFileSync(join(root, path), 'utf8');
  expect(read('mutant/core/deep/x.js')).toBe('second(2);\n');
  expect(read('mutant/core/deep/y.js')).toBe('before();\n');
  expect(read('dist/core/deep/x.js')).toBe('before();\n');
});
