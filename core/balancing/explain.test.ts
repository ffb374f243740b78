/** A selection explained is the selection that follows, and nobody can tell that it was asked for. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { present } from '../assert.ts';
import type { LoadBalancing, LoadMetric } from '../config.ts';
import { instant } from '../time.ts';
import type { BackendSet } from './backend-set.ts';
import { Maglev } from './maglev.ts';
import { backend, backendSet, someKeys } from './policy.laws.ts';
import { PLACEMENT_SEED, remainder } from '../hash.ts';

const POLICIES: readonly LoadBalancing[] = [
  'ROUND_ROBIN',
  'RANDOM',
  'LEAST_LOADED',
  'POWER_OF_TWO',
  'HRW',
  'MAGLEV',
];

const now = instant(1_000_000);
const [key] = someKeys(1);

type Act = (set: BackendSet) => unknown;

const acts: fc.Arbitrary<Act> = fc.oneof(
  fc.nat(4).map(
    (nth) =>
      (set: BackendSet): void =>
        void set.select(someKeys(5)[nth], now),
  ),
  fc.nat(4).map((nth) => (set: BackendSet): void => {
    const chosen = set.select(someKeys(5)[nth], now);
    if (chosen === undefined) return;
    set.flowOpened(chosen);
    set.forwarded(chosen, now);
  }),
  fc.tuple(fc.integer({ min: 1, max: 4 }), fc.boolean()).map(
    ([n, healthy]) =>
      (set: BackendSet): void =>
        void set.setHealth(backend(n).address, healthy),
  ),
  fc
    .tuple(fc.integer({ min: 1, max: 4 }), fc.constantFrom('active' as const, 'draining' as const))
    .map(
      ([n, state]) =>
        (set: BackendSet): void =>
          void set.setState(backend(n).address, state),
    ),
  fc.uniqueArray(fc.integer({ min: 1, max: 4 })).map(
    (list) =>
      (set: BackendSet): void =>
        set.setBackends(list.map((n) => backend(n, { weight: 40 * n }))),
  ),
);

for (const policy of POLICIES) {
  test(`${policy}: what is explained comes, as if nobody had asked`, () => {
    fc.assert(
      fc.property(
        fc.constantFrom<LoadMetric>('CONNECTIONS', 'REQUESTS', 'CONNECTION_TIME'),
        fc.array(fc.tuple(acts, fc.nat(4)), { maxLength: 20 }),
        (metric, walk) => {
          const list = [1, 2, 3, 4].map((n) => backend(n, { weight: 40 * n, backup: n === 4 }));
          const [asked, unasked] = [
            backendSet(policy, list, metric),
            backendSet(policy, list, metric),
          ];
          for (const [act, nth] of walk) {
            const one = present(someKeys(5)[nth], 'a key');
            asked.explain(one, now);
            act(asked);
            act(unasked);
            const { choice } = asked.explain(one, now);
            const chosen = asked.select(one, now);
            expect(choice?.chosen).toBe(chosen);
            expect(unasked.select(one, now)?.address).toEqual(chosen?.address);
            expect(unasked.failOpenSelections).toBe(asked.failOpenSelections);
          }
        },
      ),
      { numRuns: policy === 'MAGLEV' ? 15 : 100 },
    );
  });
}

describe('an explanation', () => {
  test('names every backend with its health, state, flows and load, and who of them is a candidate', () => {
    const set = backendSet('LEAST_LOADED', [backend(1), backend(2), backend(3, { backup: true })]);
    set.setHealth(backend(1).address, false);
    set.setState(backend(3).address, 'draining');
    set.flowOpened(set.backends[1]!);
    const { tier, candidates, backends, choice } = set.explain(key!, now);
    expect(tier).toBe('primary');
    expect(candidates).toEqual([set.backends[1]]);
    expect(choice).toEqual({ chosen: set.backends[1], reason: { kind: 'Load' } });
    expect(
      backends.map(({ healthy, state, flows, load }) => [healthy, state, flows, load]),
    ).toEqual([
      [false, 'active', 0, 0],
      [true, 'active', 1, 1],
      [true, 'draining', 0, 0],
    ]);
  });

  test('of HRW gives the score of each candidate, the highest of which serves', () => {
    const set = backendSet(
      'HRW',
      [1, 2, 3].map((n) => backend(n)),
    );
    for (const one of someKeys(50)) {
      const { candidates, choice } = set.explain(one, now);
      const { chosen, reason } = present(choice, 'HRW explains itself');
      expect(reason.kind).toBe('Score');
      const scores = reason.kind === 'Score' ? reason.scores : [];
      expect(candidates[scores.indexOf(Math.max(...scores))]).toBe(chosen);
    }
  });

  test('of MAGLEV gives the slot of the key, and the slots that each candidate holds', () => {
    const list = [backend(1, { weight: 100 }), backend(2, { weight: 300 }), backend(3)];
    const set = backendSet('MAGLEV', list);
    set.setHealth(backend(3).address, false);
    const maglev = new Maglev(PLACEMENT_SEED);
    maglev.backendsChanged(list);
    const held = [0, 1].map((place) => maglev.table.filter((owner) => owner === place).length);
    const slot = remainder(key!, 65_537);
    const reason = { kind: 'Slot', slot, size: 65_537, held };
    expect(set.explain(key!, now).choice?.reason).toEqual(reason);
    expect(held[1]! / held[0]!).toBeCloseTo(3, 1);
  });

  test('of POWER_OF_TWO names the two that are drawn, of ROUND_ROBIN whose turn it is', () => {
    const list = [1, 2, 3].map((n) => backend(n));
    const two = backendSet('POWER_OF_TWO', list).explain(key!, now).choice!;
    const drawn = two.reason.kind === 'Draw' ? two.reason.drawn : [];
    expect(new Set(drawn).size).toBe(2);
    expect(drawn).toContain(two.chosen);
    const inTurn = backendSet('ROUND_ROBIN', list);
    inTurn.select(key, now);
    expect(inTurn.explain(key!, now).choice).toEqual({
      chosen: list[1],
      reason: { kind: 'Turn', place: 1 },
    });
  });

  test("says nothing for a policy of one's own that does not explain itself", () => {
    const own = backendSet(() => ({ select: ([first]) => first }), [backend(1)]);
    expect(own.explain(key!, now)).toMatchObject({ tier: 'primary', choice: undefined });
  });
});
