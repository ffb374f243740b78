import { expect, test } from 'vitest';
import { backend } from './policy.laws.ts';
import { RoundRobin } from './round-robin.ts';

const all = [1, 2, 3, 4].map((n) => backend(n));

test('round_robin_empty_set_returns_none_without_panic: an empty list gives nobody and keeps the turn', () => {
  const policy = new RoundRobin();
  expect(policy.select([])).toBeUndefined();
  expect(policy.select(all)).toBe(all[0]);
  expect(policy.select([])).toBeUndefined();
  expect(policy.select(all)).toBe(all[1]);
});

test('it_should_find_backend_with_roundrobin_when_some_backends_were_removed: the turn wraps within those left', () => {
  const policy = new RoundRobin();
  for (const expected of all.slice(0, 3)) expect(policy.select(all)).toBe(expected);
  const left = all.slice(0, 2);
  expect([1, 2, 3, 4].map(() => policy.select(left))).toEqual([left[1], left[0], left[1], left[0]]);
});

test('round robin ignores weights', () => {
  const policy = new RoundRobin();
  const weighted = [backend(1, { weight: 255 }), backend(2, { weight: 0 })];
  expect([1, 2, 3, 4].map(() => policy.select(weighted)?.id)).toEqual(['b1', 'b2', 'b1', 'b2']);
});

test('a full round ends at the first again, so one that joins then waits its turn', () => {
  const policy = new RoundRobin();
  const three = all.slice(0, 3);
  for (const expected of three) expect(policy.select(three)).toBe(expected);
  expect(policy.select(all)).toBe(all[0]);
});
