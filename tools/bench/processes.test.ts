import { expect, test } from 'vitest';
import { parseProcessorList } from './processes.ts';

test('a processor list is ranges and single numbers', () => {
  expect(parseProcessorList('0-2,5')).toEqual([0, 1, 2, 5]);
  expect(parseProcessorList('3')).toEqual([3]);
});

test('an empty or unreadable processor list names no processor', () => {
  expect(parseProcessorList('')).toEqual([]);
  expect(parseProcessorList('x-y')).toEqual([]);
});
