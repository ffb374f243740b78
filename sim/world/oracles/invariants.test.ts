import { expect, test } from 'vitest';
import { INVARIANTS } from './invariants.ts';
import { objectionOf, told } from './hand-made.ts';

test('a recount that finds nothing wrong is accepted, and one that does is not', () => {
  const fine = told('Verified', { process: 1, broken: [] });
  const wrong = told('Verified', { process: 1, broken: ['I1: 2 live slots'] });
  expect(objectionOf(INVARIANTS, [fine, fine])).toBeUndefined();
  expect(objectionOf(INVARIANTS, [fine, wrong])).toContain('I1');
});
