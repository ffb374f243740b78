import { expect, test } from 'vitest';
import { readSurvivors } from './survivors.ts';

test('a line with an id, a reason and an explanation counts; other text is for people', () => {
  const text = [
    '# Survivors',
    '- `one` (equivalent): nobody can tell.',
    '- `two` (out of reach): needs IPv6.',
    '- `three` (gap):',
    '- `four` (because): no such reason.',
    'Mind `five` (gap): not a list.',
  ].join('\n');
  expect([...readSurvivors(text)]).toEqual([
    ['one', 'equivalent'],
    ['two', 'out of reach'],
  ]);
});
