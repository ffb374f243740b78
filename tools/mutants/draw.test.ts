import { describe, expect, test } from 'vitest';
import { mutate } from './build.ts';
import { drawMutants, type ExecutedFile } from './draw.ts';
import { functionsOf } from './instrument.ts';

const TEXT = `
export function sum(values: readonly number[]): number {
  let total = 0;
  for (const value of values) {
    if (value < 0) continue;
    total += value * 2;
  }
  assert(total >= 0, 'a sum of what is positive');
  return Math.max(total, 1);
}
function never(a: number): number {
  return a - 41;
}
`;

function executed(text: string, names = /sum/): ExecutedFile {
  const bodies = functionsOf('core/sum.ts', text).filter(({ start }) =>
    names.test(text.slice(text.lastIndexOf('function', start), start)),
  );
  return { path: 'core/sum.ts', text, functions: new Set(bodies.map(({ start }) => start)) };
}

const ALL = drawMutants([executed(TEXT)], 1_000, 'seed');

describe('drawn mutants', () => {
  test('are made by every operator that finds a site', () => {
    expect(ALL.map(({ announces }) => announces).toSorted(byText)).toEqual([
      'drop a statement: `if (value < 0) continue;` becomes `;`',
      'drop a statement: `if (value < 0) continue;` becomes `if (value < 0) ;`',
      'drop a statement: `total += value * 2;` becomes `;`',
      'off by one: `if (value < 0) continue;` becomes `if (value < 1) continue;`',
      'off by one: `let total = 0;` becomes `let total = 1;`',
      'off by one: `return Math.max(total, 1);` becomes `return Math.max(total, 2);`',
      'off by one: `total += value * 2;` becomes `total += value * 3;`',
      'replace an operator: `if (value < 0) continue;` becomes `if (value <= 0) continue;`',
      'replace an operator: `total += value * 2;` becomes `total += value + 2;`',
      'replace an operator: `total += value * 2;` becomes `total -= value * 2;`',
      'swap operands: `if (value < 0) continue;` becomes `if (0 < value) continue;`',
      'swap operands: `return Math.max(total, 1);` becomes `return Math.max(1, total);`',
    ]);
  });

  test('apply to the text they were drawn from', () => {
    for (const mutant of ALL) expect(mutate(mutant, TEXT), mutant.announces).toHaveProperty('text');
    expect(new Set(ALL.map(({ id }) => id)).size).toBe(ALL.length);
  });

  test('leave assertions alone, and functions that never ran', () => {
    const touched = ALL.map(({ search, replace }) => `${search}${replace}`).join('\n');
    expect(touched).not.toContain('positive');
    expect(touched).not.toContain('41');
  });

  test('are the same for the same seed, and others for another', () => {
    const ids = (seed: string): string[] =>
      drawMutants([executed(TEXT)], 5, seed).map(({ announces }) => announces);
    expect(ids('seed')).toEqual(ids('seed'));
    expect(ids('seed')).not.toEqual(ids('other'));
  });

  test('stay the same when other lines change', () => {
    const longer = TEXT.replace('let total = 0;', 'let total = 0;\n  total -= 7;');
    const known = new Set(drawMutants([executed(longer)], 1_000, 'seed').map(({ id }) => id));
    for (const { id } of ALL) expect(known).toContain(id);
  });
});

function byText(one = '', other = ''): number {
  return one < other ? -1 : 1;
}
