import { expect, test } from 'vitest';
import { PLACEMENT_SEED } from '../hash.ts';
import { createRandom } from '../random.ts';
import { backend, countChoices } from './policy.laws.ts';
import { WeightedRandom } from './random.ts';

test('RANDOM takes weights raw: zero beside weighted peers gets nothing', () => {
  const policy = new WeightedRandom(createRandom(PLACEMENT_SEED));
  const all = [backend(1, { weight: 0 }), backend(2, { weight: 1 }), backend(3, { weight: 0 })];
  expect(countChoices(policy, all, 1_000)).toEqual([0, 1_000, 0]);
});

test.each([
  ['all of them are zero', [0, 0, 0, 0]],
  ['one of them is negative', [100, -1, 100, 100]],
])('RANDOM chooses evenly when the weights say nothing: %s', (_, weights) => {
  const policy = new WeightedRandom(createRandom(PLACEMENT_SEED));
  const all = weights.map((weight, index) => backend(index + 1, { weight }));
  for (const count of countChoices(policy, all, 10_000)) {
    expect(count).toBeGreaterThan(2_300);
    expect(count).toBeLessThan(2_700);
  }
});

test('RANDOM draws exactly once a choice', () => {
  const [used, counted] = [createRandom(PLACEMENT_SEED), createRandom(PLACEMENT_SEED)];
  countChoices(new WeightedRandom(used), [backend(1), backend(2, { weight: 3 })], 100);
  for (let draw = 0; draw < 100; draw += 1) counted.next();
  expect(used.state()).toEqual(counted.state());
});
