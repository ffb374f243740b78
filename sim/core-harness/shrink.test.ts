import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CANARY } from '../../scenarios/canary.ts';
import { DEFAULT } from '../../scenarios/default.ts';
import { SWARM } from '../../scenarios/swarm.ts';
import { Observer, unreachable } from '../properties.ts';
import { seedFromNumber } from '../seed.ts';
import type { Action, InitialState } from './actions.ts';
import { runActions, runSeed } from './run.ts';
import { recordSeed, shrink, shrinkSeed, type Attempt, type Recording } from './shrink.ts';

const PROPERTY = 'a law of the test';
const TOLD_TO_FAIL = unreachable('a test tells the run to fail');

describe('a synthetic failure shrinks to what it needs', () => {
  test('to the very actions, in their order, with the plainest numbers', () => {
    const { initial, actions } = drawn(1);
    const shrunk = shrink({ initial, actions, property: PROPERTY }, failsAtWaitAfterClient);
    expect(shrunk?.actions).toEqual([
      { kind: 'ClientDatagram', source: 0, payload: { length: 9, fill: 0 } },
      { kind: 'AdvanceClock', ms: 123 },
    ]);
    expect(shrunk?.isMinimal).toBe(true);
  });

  test('to the plainest initial state, but for what matters in it', () => {
    const { initial, actions } = drawn(2);
    const attempt: Attempt = (state) =>
      state.hashSeed.low % 2 === 1 ? { name: PROPERTY, step: 1 } : undefined;
    const odd = { ...initial, hashSeed: { high: 5, low: 1_001 } };
    expect(shrink({ initial: odd, actions, property: PROPERTY }, attempt)?.initial).toEqual({
      config: PLAIN_CLUSTER,
      cap: 31,
      hashSeed: { high: 0, low: 1 },
      policy: 'ROUND_ROBIN',
      byRequests: false,
      weights: [100, 100, 100, 100],
    });
  });

  test('to a low cap where the cap matters', () => {
    const { initial, actions } = drawn(3);
    const attempt: Attempt = ({ cap }, { length }) =>
      length > cap ? { name: PROPERTY, step: cap + 1 } : undefined;
    const shrunk = shrink(
      { initial: { ...initial, cap: 17 }, actions, property: PROPERTY },
      attempt,
    );
    expect(shrunk?.initial.cap).toBe(1);
    expect(shrunk?.actions).toHaveLength(2);
  });

  test('never to a failure of another property', () => {
    const { initial, actions } = drawn(4);
    const attempt: Attempt = (_, { length }) => ({
      name: length > 10 ? PROPERTY : 'another',
      step: length,
    });
    const shrunk = shrink({ initial, actions, property: PROPERTY }, attempt);
    expect(shrunk?.actions).toHaveLength(11);
  });

  test('and one that does not fail is refused', () => {
    const { initial, actions } = drawn(5);
    expect(shrink({ initial, actions, property: PROPERTY }, () => undefined)).toBeUndefined();
  });

  test('and a limit ends the search with the smallest so far', () => {
    const { initial, actions } = drawn(6);
    const recording = { initial, actions, property: PROPERTY };
    const byRuns = shrink(recording, failsAtWaitAfterClient, { runs: 20, performed: 1e9 });
    expect(byRuns).toMatchObject({ isMinimal: false, runs: 20 });
    const byWork = shrink(recording, failsAtWaitAfterClient, { runs: 1e9, performed: 100 });
    expect(byWork?.isMinimal).toBe(false);
    for (const { actions: left } of [byRuns!, byWork!]) {
      expect(failsAtWaitAfterClient(initial, left)?.name).toBe(PROPERTY);
    }
  });

  test('whatever it needs: no action can be removed, and twice gives the same', () => {
    const kinds = fc.constantFrom<Action['kind']>('ClientDatagram', 'AdvanceClock', 'BackendView');
    fc.assert(
      fc.property(
        fc.nat(1_000),
        fc.array(kinds, { minLength: 1, maxLength: 5 }),
        (seed, needed) => {
          const { initial, actions } = drawn(seed);
          const attempt: Attempt = (_, tried) => {
            const end = endOfSubsequence(tried, needed);
            return end === undefined ? undefined : { name: PROPERTY, step: end };
          };
          const recording = { initial, actions, property: PROPERTY };
          const shrunk = shrink(recording, attempt);
          expect(shrunk?.actions.map(({ kind }) => kind)).toEqual(needed);
          expect(shrink(recording, attempt)).toEqual(shrunk);
        },
      ),
      { numRuns: 20 },
    );
  });
});

describe('a seed', () => {
  test('that holds has no recording', () => {
    expect(recordSeed(DEFAULT, seedFromNumber(7), 100)).toBeUndefined();
    expect(shrinkSeed(DEFAULT, seedFromNumber(7), 100)).toBeUndefined();
  });

  test('that fails by the watch of its scenario shrinks under that watch', () => {
    const shrunk = shrinkSeed(CANARY, seedFromNumber(0), 3_000);
    expect(shrunk).toMatchObject({
      property: 'the canary sings',
      actions: [{ kind: 'CloseAll' }, { kind: 'CloseAll' }, { kind: 'CloseAll' }],
      isMinimal: true,
    });
  });

  test.each([DEFAULT, SWARM])('of $name is what its actions replay, to the digest', (scenario) => {
    const seed = seedFromNumber(11);
    const failing = { ...scenario, watch: atAction(400) };
    const { initial, actions } = recordSeed(failing, seed, 1_000)!;
    expect(actions).toHaveLength(400);
    const observer = new Observer();
    const watch = atAction(400);
    const { digest } = runActions(initial, actions, { observer, watch });
    expect(runSeed(failing, seed, 1_000, { observer }).digest).toBe(digest);
  });
});

const PLAIN_CLUSTER = {
  cluster: 0,
  affinityWithPort: false,
  responses: 0,
  requests: 0,
  frontMs: 1_000,
  backMs: 1_000,
  sendProxyProtocol: false,
  everyDatagram: false,
  perIp: 0,
  perSubnet: 0,
};

/** The first actions of a seed. */
function drawn(seed: number): {
  readonly initial: InitialState;
  readonly actions: readonly Action[];
} {
  const failing = { ...DEFAULT, watch: atAction(500) };
  const { initial, actions }: Recording = recordSeed(failing, seedFromNumber(seed), 1_000)!;
  return { initial, actions };
}

/** A watch under which the action of this number fails a run. */
function atAction(number: number): NonNullable<typeof CANARY.watch> {
  return () => {
    let left = number;
    return (_, observer) => {
      left -= 1;
      if (left === 0) observer.reach(TOLD_TO_FAIL);
    };
  };
}

/** A client's datagram of at least nine bytes, and a wait of at least 123 ms at some time after it. */
function failsAtWaitAfterClient(_: InitialState, actions: readonly Action[]): ReturnType<Attempt> {
  const client = actions.findIndex(
    (action) => action.kind === 'ClientDatagram' && action.payload.length >= 9,
  );
  const wait = actions.findIndex(
    (action, place) => place > client && action.kind === 'AdvanceClock' && action.ms >= 123,
  );
  return client < 0 || wait < 0 ? undefined : { name: PROPERTY, step: wait + 1 };
}

/** After how many actions these kinds have been seen in this order. */
function endOfSubsequence(
  actions: readonly Action[],
  needed: readonly Action['kind'][],
): number | undefined {
  let found = 0;
  for (const [place, { kind }] of actions.entries()) {
    if (kind === needed[found]) found += 1;
    if (found === needed.length) return place + 1;
  }
  return undefined;
}
