import { expect, test } from 'vitest';
import { backend, backendSet, policyLaws, someKeys } from '../core/balancing/policy.laws.ts';
import { instant } from '../core/index.ts';
import { canary } from './own-policy.ts';

const now = instant(0);
const all = [backend(1), backend(2), backend(3, { id: 'new' })];

policyLaws('canary', canary('b1', 30), 'load');

test('five per cent of the clients try the new backend, and the others never do', () => {
  const set = backendSet(canary('new', 5), all);
  const tried = someKeys(10_000).filter((key) => set.select(key, now)?.id === 'new');
  expect(tried.length).toBeGreaterThan(400);
  expect(tried.length).toBeLessThan(600);
});

test('clients stay where they were when the new backend fails, but for those that tried it', () => {
  const set = backendSet(canary('new', 5), all);
  const before = someKeys(500).map((key) => set.select(key, now));
  set.setHealth(backend(3).address, false);
  for (const [index, key] of someKeys(500).entries()) {
    const after = set.select(key, now);
    expect(after?.id).not.toBe('new');
    if (before[index]?.id !== 'new') expect(after).toBe(before[index]);
  }
});

test('the new backend serves everybody when nobody else can', () => {
  const set = backendSet(canary('new', 5), all);
  for (const n of [1, 2]) set.setHealth(backend(n).address, false);
  for (const key of someKeys(50)) expect(set.select(key, now)?.id).toBe('new');
});
