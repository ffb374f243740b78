import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { mutate } from './build.ts';
import { WORLD_TRAFFIC_MUTANTS } from './hand-made-world-traffic.ts';

test.each(WORLD_TRAFFIC_MUTANTS)('$id changes one place of its file', (mutant) => {
  expect(mutate(mutant, readFileSync(mutant.file, 'utf8')).kind).toBe('mutated');
});
