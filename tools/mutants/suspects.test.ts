import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { mutate } from './build.ts';
import type { RatchetEntry } from './ratchet.ts';
import { blind, CONTROL, handMade, ofWorlds } from './suspects.ts';

const ROOT = new URL('../../', import.meta.url);
const suspects = [...handMade(), ...ofWorlds(), ...blind()];
const read = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8');

describe('mutants by hand', () => {
  test.each([CONTROL, ...suspects])('$mutant.id applies to the source of today', ({ mutant }) => {
    expect(mutate(mutant, read(mutant.file))).toHaveProperty('text');
  });

  test('have ids of their own', () => {
    expect(new Set(suspects.map(({ mutant }) => mutant.id)).size).toBe(suspects.length);
  });

  test('are all in the ratchet file, and none that is gone', () => {
    const entries: RatchetEntry[] = JSON.parse(read('tools/mutants/ratchet.json'));
    const kept = entries.filter(({ origin }) => !origin.startsWith('drawn')).map(({ id }) => id);
    expect(kept.toSorted()).toEqual(suspects.map(({ mutant }) => mutant.id).toSorted());
  });

  test('are enough: twenty-five with a history or a meaning, and twenty blind ones', () => {
    expect(handMade().length).toBeGreaterThanOrEqual(25);
    expect(blind()).toHaveLength(20);
  });
});
