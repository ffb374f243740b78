import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LoadBalancing } from '../config.ts';
import type { Backend } from '../contract.ts';
import { instant } from '../time.ts';
import type { BackendSet } from './backend-set.ts';
import type { PolicyFactory } from './policy.ts';
import { backend, backendSet, someKeys } from './policy.laws.ts';

const now = instant(0);
const key = { high: 1, low: 2 };

describe('adding backends', () => {
  test('it_should_add_a_backend_when_he_doesnt_already_exist: another id or another address is another backend', () => {
    const set = backendSet('ROUND_ROBIN', [backend(1)]);
    expect(set.addBackend(backend(2))).toBe(true);
    expect(set.addBackend(backend(1, { id: 'another id' }))).toBe(true);
    expect(set.backends.map(({ id }) => id)).toEqual(['b1', 'b2', 'another id']);
    expect(distinctChoices(set)).toHaveLength(3);
  });

  test('it_should_not_add_a_backend_when_he_already_exist: the same id and address changes the one that is there, in place', () => {
    const set = backendSet('ROUND_ROBIN', [backend(1), backend(2)]);
    expect(set.addBackend(backend(1, { weight: 7 }))).toBe(false);
    expect(set.backends).toEqual([backend(1, { weight: 7 }), backend(2)]);
  });

  test('a list that names one backend twice holds it once, by its last word', () => {
    const set = backendSet('HRW', [backend(1), backend(2), backend(1, { weight: 9 })]);
    expect(set.backends).toEqual([backend(1, { weight: 9 }), backend(2)]);
  });

  test('an unchanged backend stays the same object, so that live flows and the list agree', () => {
    const [one, two] = [backend(1), backend(2)];
    const set = backendSet('ROUND_ROBIN', [one, two]);
    set.setBackends([backend(1), backend(2, { weight: 5 })]);
    expect(set.backends[0]).toBe(one);
    expect(set.backends[1]).not.toBe(two);
  });

  test('a policy hears of backends that come, go or change, and of nothing else', () => {
    const heard: number[] = [];
    const listening: PolicyFactory = () => ({
      select: (candidates) => candidates[0],
      backendsChanged: (backends) => heard.push(backends.length),
    });
    const set = backendSet(listening, [backend(1), backend(2)]);
    set.setHealth(backend(1).address, false);
    set.setBackends([backend(1), backend(2)]);
    set.select(key, now);
    expect(heard).toEqual([2]);
    set.setBackends([backend(2), backend(1)]);
    set.setBackends([backend(2)]);
    set.setBackends([backend(2, { weight: 1 })]);
    expect(heard).toEqual([2, 2, 1, 1]);
    set.setPolicy(listening, 'CONNECTIONS');
    expect(heard).toEqual([2, 2, 1, 1, 1]);
  });

  test('a cluster without backends has none to give', () => {
    const set = backendSet('MAGLEV', []);
    expect(set.select(key, now)).toBeUndefined();
    expect(set.tier).toBe('none');
    expect(set.failOpenSelections).toBe(0);
    set.setBackends([backend(1)]);
    expect(set.select(key, now)).toEqual(backend(1));
    set.setBackends([]);
    expect(set.select(key, now)).toBeUndefined();
  });
});

describe('candidates', () => {
  test('backups serve only while no primary can', () => {
    const set = backendSet('ROUND_ROBIN', [backend(1), backend(2), backend(3, { backup: true })]);
    expect([set.tier, distinctChoices(set)]).toEqual(['primary', ['b1', 'b2']]);
    set.setHealth(backend(1).address, false);
    expect([set.tier, distinctChoices(set)]).toEqual(['primary', ['b2']]);
    set.setHealth(backend(2).address, false);
    expect([set.tier, distinctChoices(set)]).toEqual(['backup', ['b3']]);
    set.setHealth(backend(1).address, true);
    expect([set.tier, distinctChoices(set)]).toEqual(['primary', ['b1']]);
  });

  test('a backend that becomes a backup stands back at once', () => {
    const set = backendSet('ROUND_ROBIN', [backend(1), backend(2)]);
    set.setBackends([backend(1, { backup: true }), backend(2)]);
    expect(distinctChoices(set)).toEqual(['b2']);
  });

  test('fail_open_picks_normal_backend_in_retry_policy_okay: with all of them down, primaries and backups are tried', () => {
    const set = backendSet('ROUND_ROBIN', [backend(1), backend(2, { backup: true })]);
    set.setHealth(backend(1).address, false);
    set.setHealth(backend(2).address, false);
    expect([set.tier, distinctChoices(set)]).toEqual(['fail-open', ['b1', 'b2']]);
  });

  test('B5: without fail-open nobody is tried when all are down, and switching it takes effect at once', () => {
    const set = backendSet('MAGLEV', [backend(1), backend(2, { backup: true })]);
    set.setFailOpen(false);
    expect([set.tier, distinctChoices(set)]).toEqual(['primary', ['b1']]);
    set.setHealth(backend(1).address, false);
    expect([set.tier, distinctChoices(set)]).toEqual(['backup', ['b2']]);
    set.setHealth(backend(2).address, false);
    expect(set.select(key, now)).toBeUndefined();
    expect([set.tier, set.failOpenSelections]).toEqual(['none', 0]);
    set.setFailOpen(true);
    expect([set.tier, distinctChoices(set)]).toEqual(['fail-open', ['b1', 'b2']]);
    set.setFailOpen(false);
    set.setHealth(backend(2).address, true);
    expect([set.tier, distinctChoices(set)]).toEqual(['backup', ['b2']]);
  });

  test('fail_open_skips_backend_in_retry_backoff: one that must get no new flows, which over UDP means closing, gets none even then', () => {
    const set = backendSet('ROUND_ROBIN', [backend(1), backend(2)]);
    set.setHealth(backend(1).address, false);
    set.setHealth(backend(2).address, false);
    set.setState(backend(1).address, 'draining');
    expect([set.tier, distinctChoices(set)]).toEqual(['fail-open', ['b2']]);
    set.setState(backend(2).address, 'draining');
    expect(set.select(key, now)).toBeUndefined();
    expect(set.tier).toBe('none');
    set.setState(backend(1).address, 'active');
    expect(set.select(key, now)).toEqual(backend(1));
  });

  test('fail_open_warn_latched: each regime is told once, each selection in it is counted', () => {
    const set = backendSet('HRW', [backend(1), backend(2)]);
    set.select(key, now);
    expect(set.takeFailOpenChange()).toBeUndefined();
    for (const n of [1, 2]) set.setHealth(backend(n).address, false);
    expect(set.takeFailOpenChange()).toBeUndefined();
    for (let count = 1; count <= 3; count += 1) {
      set.select(key, now);
      expect(set.takeFailOpenChange()).toBe(count === 1 ? 'entered' : undefined);
      expect(set.failOpenSelections).toBe(count);
    }
    set.setHealth(backend(1).address, true);
    set.select(key, now);
    expect(set.takeFailOpenChange()).toBe('left');
    expect(set.takeFailOpenChange()).toBeUndefined();
    expect(set.failOpenSelections).toBe(3);
  });

  test('is_available_requires_health_status_and_retry_policy: healthy and not closing', () => {
    const set = backendSet('ROUND_ROBIN', [backend(1), backend(2), backend(3), backend(4)]);
    set.setHealth(backend(1).address, false);
    set.setState(backend(2).address, 'draining');
    set.setHealth(backend(3).address, false);
    set.setState(backend(3).address, 'draining');
    expect(distinctChoices(set)).toEqual(['b4']);
    expect(set.availability()).toEqual({ available: 1, total: 4 });
  });

  test('evaluate_availability_empty_list_returns_zero_zero', () => {
    expect(backendSet('HRW', []).availability()).toEqual({ available: 0, total: 0 });
  });

  test('a new configuration keeps the health and status of the backends that stay', () => {
    const set = backendSet('ROUND_ROBIN', [backend(1), backend(2), backend(3)]);
    set.setHealth(backend(1).address, false);
    set.setState(backend(2).address, 'draining');
    set.setBackends([backend(1, { weight: 1 }), backend(2), backend(3), backend(4)]);
    expect(distinctChoices(set)).toEqual(['b3', 'b4']);
  });

  test('a backend that left and comes back is healthy, and a late probe of one that left changes nothing', () => {
    const set = backendSet('ROUND_ROBIN', [backend(1), backend(2)]);
    set.setHealth(backend(1).address, false);
    set.setBackends([backend(2)]);
    set.setHealth(backend(1).address, false);
    set.setBackends([backend(1), backend(2)]);
    expect(distinctChoices(set)).toEqual(['b1', 'b2']);
  });

  test('the list of candidates is computed on change, never for a selection', () => {
    const seen: (readonly Backend[])[] = [];
    const set = backendSet(
      () => ({ select: (candidates) => (seen.push(candidates), undefined) }),
      [backend(1), backend(2)],
    );
    for (let count = 0; count < 5; count += 1) set.select(key, now);
    set.setHealth(backend(1).address, true);
    set.select(key, now);
    expect(new Set(seen)).toHaveLength(1);
  });

  test('selection always agrees with the rules of specification §3.1, read literally', () => {
    const states = fc.array(
      fc.record({ backup: fc.boolean(), healthy: fc.boolean(), closing: fc.boolean() }),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(states, (list) => {
        const all = list.map(({ backup }, index) => backend(index + 1, { backup }));
        const set = backendSet('ROUND_ROBIN', all);
        for (const [index, { healthy, closing }] of list.entries()) {
          set.setHealth(backend(index + 1).address, healthy);
          set.setState(backend(index + 1).address, closing ? 'draining' : 'active');
        }
        const ids = (keep: (state: (typeof list)[number]) => boolean): string[] =>
          all.filter((_, index) => keep(list[index]!)).map(({ id }) => id);
        const primaries = ids((state) => !state.backup && state.healthy && !state.closing);
        const backups = ids((state) => state.backup && state.healthy && !state.closing);
        const open = ids((state) => !state.closing);
        const expected = [primaries, backups, open].find((ones) => ones.length > 0) ?? [];
        expect(distinctChoices(set)).toEqual(expected);
      }),
    );
  });
});

test('a new policy starts afresh: round robin at the first, counters and flows untouched', () => {
  const all = [backend(1), backend(2), backend(3)];
  const set = backendSet('ROUND_ROBIN', all);
  set.select(key, now);
  set.flowOpened(all[0]!);
  set.setPolicy('ROUND_ROBIN', 'CONNECTIONS');
  expect(set.select(key, now)).toBe(all[0]);
  set.setPolicy('LEAST_LOADED', 'CONNECTIONS');
  expect(set.select(key, now)).toBe(all[1]);
});

test.each<LoadBalancing>([
  'ROUND_ROBIN',
  'RANDOM',
  'LEAST_LOADED',
  'POWER_OF_TWO',
  'HRW',
  'MAGLEV',
])('a seed and a history determine every choice of %s', (name) => {
  const all = [1, 2, 3, 4].map((n) => backend(n));
  const [one, other] = [backendSet(name, all), backendSet(name, all)];
  for (const [index, each] of someKeys(100).entries()) {
    if (index === 50) for (const set of [one, other]) set.setHealth(backend(2).address, false);
    expect(one.select(each, now)).toBe(other.select(each, now));
  }
});

/** Ids that a few hundred selections give, sorted. */
function distinctChoices(set: BackendSet): string[] {
  const ids = someKeys(200).flatMap((each) => set.select(each, now)?.id ?? []);
  return [...new Set(ids)].sort();
}
