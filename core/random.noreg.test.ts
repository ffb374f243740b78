/** Pins what a seed means: recorded traces and pinned seeds draw from it. */
import { expect, test } from 'vitest';
import { createRandom } from './random.ts';

test('seed 42 keeps its state and its draws except on a breaking release', () => {
  const random = createRandom({ high: 0, low: 42 });
  expect(random.state()).toMatchInlineSnapshot(`
    [
      4126153516,
      2153401073,
      289378269,
      2355023100,
    ]
  `);
  expect(Array.from({ length: 4 }, () => random.next())).toMatchInlineSnapshot(`
    [
      4019597504,
      738395219,
      3023751177,
      2710452776,
    ]
  `);
  expect(random.below(1_000)).toMatchInlineSnapshot(`88`);
});
