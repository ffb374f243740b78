/** What every balancing policy must keep, the six and a user's own. `policyLaws('mine', …)` in a test runs them all. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ipv4, sameAddress } from '../address.ts';
import { present } from '../assert.ts';
import type { LoadBalancing, LoadMetric } from '../config.ts';
import type { Backend } from '../contract.ts';
import { PLACEMENT_SEED, type Hash64 } from '../hash.ts';
import { createRandom } from '../random.ts';
import { instant } from '../time.ts';
import { BackendSet } from './backend-set.ts';
import type { BalancingPolicy, PolicyFactory, PolicyTools } from './policy.ts';

/** How a policy spreads many flows over backends that all stay: by weight, evenly, or as load has it. */
export type Share = 'weight' | 'even' | 'load';

export function policyLaws(name: string, make: PolicyFactory, share: Share): void {
  describe(`${name} as a balancing policy`, () => {
    test('chooses one of the candidates and nothing else', () => {
      fc.assert(
        fc.property(backendLists, hashes, keyLists, fc.integer(), (all, seed, keys, mask) => {
          const candidates = all.filter((_, index) => ((mask >>> (index % 32)) & 1) === 1);
          const policy = started(make, seed, all);
          for (const key of keys) {
            const chosen = policy.select(candidates, key, now);
            if (candidates.length === 0) expect(chosen).toBeUndefined();
            else expect(candidates).toContain(chosen);
          }
        }),
      );
    });

    test('chooses nobody when there is nobody, whether or not it was told of backends', () => {
      for (const all of [[], [backend(1)]]) {
        const policy = started(make, PLACEMENT_SEED, all);
        expect(policy.select([], { high: 1, low: 2 }, now)).toBeUndefined();
        expect(policy.select([], undefined, now)).toBeUndefined();
      }
    });

    test('chooses the only candidate', () => {
      const only = backend(1);
      const policy = started(make, PLACEMENT_SEED, [only, backend(2)]);
      for (const key of someKeys(50)) expect(policy.select([only], key, now)).toBe(only);
    });

    test('makes the same choices again from the same seed', () => {
      fc.assert(
        fc.property(backendLists, hashes, keyLists, (all, seed, keys) => {
          const [once, again] = [started(make, seed, all), started(make, seed, all)];
          const choices = keys.map((key) => once.select(all, key, now));
          expect(keys.map((key) => again.select(all, key, now))).toEqual(choices);
        }),
      );
    });

    test('survives backends that come and go between selections', () => {
      fc.assert(
        fc.property(
          fc.array(backendLists, { maxLength: 6 }),
          hashes,
          keyLists,
          (lists, seed, keys) => {
            const policy = started(make, seed, []);
            for (const list of lists) {
              policy.backendsChanged?.(list);
              for (const key of keys) {
                const chosen = policy.select(list, key, now);
                if (list.length > 0) expect(list).toContain(chosen);
              }
            }
          },
        ),
      );
    });

    if (share !== 'load') shareLaw(make, share);
  });
}

/** Only for policies with affinity: a key stays where it is unless it must move. */
export function affinityLaws(name: string, make: PolicyFactory): void {
  describe(`${name} as a policy with affinity`, () => {
    test('gives one key one backend, however many others were placed in between', () => {
      fc.assert(
        fc.property(backendLists, hashes, keyLists, (all, key, others) => {
          const policy = started(make, PLACEMENT_SEED, all);
          const first = policy.select(all, key, now);
          for (const other of others) policy.select(all, other, now);
          expect(policy.select(all, key, now)).toBe(first);
        }),
      );
    });

    test('moves no key of another backend when one is unhealthy', () => {
      fc.assert(
        fc.property(distinctLists, fc.nat(), keyLists, (all, pick, keys) => {
          const policy = started(make, PLACEMENT_SEED, all);
          const before = keys.map((key) => policy.select(all, key, now));
          const down = all[pick % all.length];
          const up = all.filter((candidate) => candidate !== down);
          for (const [index, key] of keys.entries()) {
            if (before[index] !== down) expect(policy.select(up, key, now)).toBe(before[index]);
          }
        }),
      );
    });

    test('takes turns without a key', () => {
      const all = [1, 2, 3].map((n) => backend(n));
      const policy = started(make, PLACEMENT_SEED, all);
      const chosen = Array.from({ length: 6 }, () => policy.select(all, undefined, now));
      expect(chosen).toEqual([...all, ...all]);
    });
  });
}

function shareLaw(make: PolicyFactory, share: 'weight' | 'even'): void {
  test(`gives each backend its share of many flows, by ${share}`, () => {
    const all = [100, 50, 200, 25, 125].map((weight, index) => backend(index + 1, { weight }));
    const flows = 50_000;
    const counts = countChoices(started(make, PLACEMENT_SEED, all), all, flows);
    const total = all.reduce((sum, { weight }) => sum + weight, 0);
    // Below 0.1 %: chi-square with four degrees of freedom exceeds 18.47.
    const bound = 18.47;
    const statistic = all.reduce((sum, { weight }, index) => {
      const expected = share === 'even' ? flows / all.length : (flows * weight) / total;
      return sum + ((counts[index] ?? 0) - expected) ** 2 / expected;
    }, 0);
    expect(statistic).toBeLessThan(bound);
  });
}

const now = instant(1_000_000);

const hashes = fc.record({
  high: fc.integer({ min: 0, max: 0xffffffff }),
  low: fc.integer({ min: 0, max: 0xffffffff }),
});

const keyLists = fc.array(hashes, { minLength: 1, maxLength: 20 });

const anyBackends = fc
  .record({
    n: fc.integer({ min: 1, max: 40 }),
    weight: fc.integer({ min: 0, max: 255 }),
    backup: fc.boolean(),
  })
  .map(({ n, weight, backup }) => backend(n, { weight, backup }));

/** Duplicate addresses included. */
const backendLists = fc.array(anyBackends, { maxLength: 12 });

const distinctLists = fc.uniqueArray(anyBackends, {
  minLength: 2,
  maxLength: 12,
  comparator: (one, other) => sameAddress(one.address, other.address),
});

/** 10.0.0.n:53. */
export function backend(n: number, more: Partial<Backend> = {}): Backend {
  return { id: `b${n}`, address: ipv4(0x0a000000 + n, 53), weight: 100, backup: false, ...more };
}

/** With a fixed seed. */
export function backendSet(
  loadBalancing: LoadBalancing | PolicyFactory,
  backends: readonly Backend[],
  loadMetric: LoadMetric = 'CONNECTIONS',
): BackendSet {
  const random = createRandom({ high: 7, low: 7 });
  return new BackendSet({
    loadBalancing,
    loadMetric,
    random,
    placementSeed: PLACEMENT_SEED,
    backends,
  });
}

/** Fixed keys that look like affinity keys. */
export function someKeys(count: number): Hash64[] {
  const random = createRandom({ high: 0x5eed, low: 0xc0de });
  return Array.from({ length: count }, () => ({ high: random.next(), low: random.next() }));
}

/** Tools as a backend set lends them, with every backend equally loaded. */
function idleTools(seed: Hash64): PolicyTools {
  return { random: createRandom(seed), placementSeed: seed, loads: { isLighter: () => false } };
}

/** How many of `flows` fixed keys each backend of `all` gets. */
export function countChoices(
  policy: BalancingPolicy,
  all: readonly Backend[],
  flows: number,
): number[] {
  const counts = all.map(() => 0);
  for (const key of someKeys(flows)) {
    const index = all.indexOf(present(policy.select(all, key, now), 'a choice'));
    counts[index] = (counts[index] ?? 0) + 1;
  }
  return counts;
}

function started(make: PolicyFactory, seed: Hash64, all: readonly Backend[]): BalancingPolicy {
  const policy = make(idleTools(seed));
  policy.backendsChanged?.(all);
  return policy;
}
