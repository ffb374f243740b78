import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CANARY } from '../../scenarios/canary.ts';
import { SCENARIOS } from '../../scenarios/index.ts';
import type { UdpManager } from '../../core/manager.ts';
import { Observer } from '../properties.ts';
import { seededStreams } from '../random.ts';
import { seedFromNumber, type Seed } from '../seed.ts';
import { ACTION_KINDS, type Action, type InitialState } from './actions.ts';
import { ActionSource } from './grammar.ts';
import type { Guise } from './guise.ts';
import { PLAIN_GUISE, runActions, runSeed, type RunOptions } from './run.ts';
import type { Scenario } from './scenario.ts';

const STEPS = 200;

const scenarios = fc.constantFrom(...SCENARIOS.filter(({ mustFail }) => mustFail !== true));
const seeds = fc.record({ high: fc.nat(0xffff_ffff), low: fc.nat(0xffff_ffff) });

describe('a run', () => {
  test('is a function of its scenario, seed and steps', () => {
    fc.assert(
      fc.property(scenarios, seeds, seeds, (scenario, seed, between) => {
        const observer = new Observer();
        const first = runSeed(scenario, seed, STEPS, { observer });
        runSeed(scenario, between, STEPS, { observer });
        expect(runSeed(scenario, seed, STEPS, { observer })).toEqual(first);
        expect(first).toMatchObject({ violation: undefined, detail: undefined, steps: STEPS });
      }),
      { numRuns: 30 },
    );
  });

  test('differs from seed to seed', () => {
    const digests = Array.from({ length: 50 }, (_, number) => digestOf(number, {}));
    expect(new Set(digests).size).toBe(50);
  });

  test('has the same digest at every step, whatever must not matter', () => {
    const guises = fc.record({
      poison: fc.nat(255),
      tableSeed: fc.record({ first: fc.integer(), second: fc.integer() }),
      prefix: fc.constantFrom('', '1', '0', 'zz-', 'backend/', 'é'),
    });
    fc.assert(
      fc.property(scenarios, seeds, guises, (scenario, seed, guise) => {
        expect(stepDigests(scenario, seed, guise)).toEqual(
          stepDigests(scenario, seed, PLAIN_GUISE),
        );
      }),
      { numRuns: 30 },
    );
  });

  test('is not changed by being watched', () => {
    const calls: string[] = [];
    const call = (name: string, _now: number, _outputs: unknown, manager: UdpManager): void => {
      calls.push(`${name} ${manager.flowCount}`);
    };
    const digest = digestOf(3, { trace: { call }, onStep: () => undefined });
    expect(digest).toBe(digestOf(3, {}));
    expect(calls.length).toBeGreaterThan(STEPS / 2);
  });

  test('counts its actions by kind', () => {
    const counted = new Map(ACTION_KINDS.map((kind) => [kind, 0]));
    const onAction = ({ kind }: Action): void =>
      void counted.set(kind, (counted.get(kind) ?? 0) + 1);
    const { actions } = runSeed(SCENARIOS[0]!, seedFromNumber(9), STEPS, {
      observer: new Observer(),
      onAction,
    });
    expect(actions).toEqual(Object.fromEntries(counted));
  });

  test('ends at its violation, and not at one that is not looked for', () => {
    const options = { observer: new Observer() };
    const failed = runSeed(CANARY, seedFromNumber(0), 3_000, options);
    expect(failed.violation?.step).toBe(failed.steps);
    expect(failed.steps).toBeLessThan(3_000);
    const passed = runSeed(CANARY, seedFromNumber(0), 3_000, { ...options, only: new Set() });
    expect(passed).toMatchObject({ steps: 3_000, violation: undefined });
  });
});

describe('the actions of a run', () => {
  test('replay to its digest without the seed', () => {
    fc.assert(
      fc.property(scenarios, seeds, (scenario, seed) => {
        const { initial, actions, digest } = recorded(scenario, seed);
        expect(runActions(initial, actions, { observer: new Observer() }).digest).toBe(digest);
      }),
      { numRuns: 30 },
    );
  });

  test('stay valid whichever of them are removed, or come in another order', () => {
    fc.assert(
      fc.property(scenarios, seeds, fc.infiniteStream(fc.nat(7)), (scenario, seed, chances) => {
        const { initial, actions } = recorded(scenario, seed);
        const kept = actions.filter(() => chances.next().value !== 0);
        const turned = actions.toReversed();
        for (const others of [kept, turned, actions.slice(actions.length >> 1)]) {
          const { violation, detail } = runActions(initial, others, { observer: new Observer() });
          expect({ violation, detail }).toEqual({ violation: undefined, detail: undefined });
        }
      }),
      { numRuns: 40 },
    );
  });

  test('with any single one removed are a run', () => {
    const { initial, actions } = recorded(SCENARIOS[0]!, seedFromNumber(21), 60);
    const observer = new Observer();
    for (const place of actions.keys()) {
      const { violation } = runActions(initial, actions.toSpliced(place, 1), { observer });
      expect(violation).toBeUndefined();
    }
  });
});

function digestOf(number: number, options: Partial<RunOptions>): string {
  const observer = new Observer();
  return runSeed(SCENARIOS[0]!, seedFromNumber(number), STEPS, { observer, ...options }).digest;
}

function stepDigests(scenario: Scenario, seed: Seed, guise: Guise): string[] {
  const digests: string[] = [];
  runSeed(scenario, seed, STEPS, {
    observer: new Observer(),
    guise,
    onStep: (_, digest) => digests.push(digest.print()),
  });
  return digests;
}

interface Recorded {
  readonly initial: InitialState;
  readonly actions: readonly Action[];
  readonly digest: string;
}

function recorded(scenario: Scenario, seed: Seed, steps = STEPS): Recorded {
  const actions: Action[] = [];
  const onAction = (action: Action): void => void actions.push(action);
  const { digest } = runSeed(scenario, seed, steps, { observer: new Observer(), onAction });
  const streams = seededStreams(seed);
  const initial = new ActionSource(scenario.grammarOf(streams), seed, streams).initial();
  return { initial, actions, digest };
}
