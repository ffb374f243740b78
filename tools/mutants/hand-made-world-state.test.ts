import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { mutate } from './build.ts';
import { WORLD_STATE_MUTANTS } from './hand-made-world-state.ts';

test.each(WORLD_STATE_MUTANTS)('$id changes one place of its file', (mutant) => {
  expect(mutate(mutant, readFileSync(mutant.file, 'utf8')).kind).toBe('mutated');
});
