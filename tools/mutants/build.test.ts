import { expect, test } from 'vitest';
import { mutate } from './build.ts';

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
