/** The streaks against a naive reading of all results, and the laws: no change without its streak, recovery always possible. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  INITIAL_HEALTH,
  judge,
  SILENCES_PER_SUCCESS,
  type Health,
  type HealthState,
  type HealthTransition,
  type ProbeResult,
  type Thresholds,
} from './hysteresis.ts';

const USUAL: Thresholds = { rise: 2, fall: 3 };

describe('rise and fall', () => {
  test('hysteresis_rise_fall: three failures turn a backend down, two successes up', () => {
    expect(healths(['down', 'down', 'down', 'down', 'up', 'up', 'up'], USUAL)).toEqual(
      ['up', 'up', 'down', 'down', 'down', 'up', 'up'], // prettier-ignore
    );
  });

  test('a backend that was never asked is up', () => {
    expect(INITIAL_HEALTH.health).toBe('up');
  });

  test('a success between two failures begins the streak anew, and a failure between two successes', () => {
    expect(healths(['down', 'down', 'up', 'down', 'down'], USUAL).at(-1)).toBe('up');
    expect(healths(['down', 'down', 'down', 'up', 'down', 'up'], USUAL).at(-1)).toBe('down');
  });

  test('failures and successes in turn, never two of a kind, change nothing, however long', () => {
    const results = Array.from({ length: 100 }, (_, at): ProbeResult => (at % 2 ? 'up' : 'down'));
    expect(new Set(healths(results, USUAL))).toEqual(new Set(['up']));
  });

  test('a transition says from, to and the streak; it is told once', () => {
    const told = transitions(['down', 'down', 'down', 'down', 'up', 'up', 'up'], USUAL);
    expect(told).toEqual([
      { from: 'up', to: 'down', streak: 3 },
      { from: 'down', to: 'up', streak: 2 },
    ]);
  });

  test('a threshold lowered below the present streak takes effect at the next result of that kind', () => {
    const two = run(['down', 'down'], { rise: 2, fall: 9 });
    expect(two.health).toBe('up');
    expect(judge(two, 'up', { rise: 2, fall: 1 }).state.health).toBe('up');
    expect(judge(two, 'down', { rise: 2, fall: 1 }).transition?.streak).toBe(3);
  });
});

describe('unknown', () => {
  test('udp_probe_result_feeds_same_hysteresis: three refusals with silences between them turn a backend down', () => {
    expect(healths(['down', 'unknown', 'down', 'unknown', 'down'], USUAL).at(-1)).toBe('down');
  });

  test('silence alone never turns a backend down', () => {
    const silence = Array.from({ length: 1_000 }, (): ProbeResult => 'unknown');
    expect(run(silence, { rise: 1, fall: 1 })).toEqual(INITIAL_HEALTH);
  });

  test('silence brings back what refused, three times as slowly as success; a refusal begins anew', () => {
    const down = run(['down', 'down', 'down'], USUAL);
    const needed = USUAL.rise * SILENCES_PER_SUCCESS;
    const silence = Array.from({ length: needed }, (): ProbeResult => 'unknown');
    expect(run(silence.slice(1), USUAL, down).health).toBe('down');
    expect(run(silence, USUAL, down).health).toBe('up');
    expect(run([...silence.slice(1), 'down', 'unknown'], USUAL, down).health).toBe('down');
    expect(run(['unknown', 'unknown', 'unknown', 'up'], USUAL, down).health).toBe('up');
    expect(run([...silence, 'down', 'down'], USUAL, down).health, 'a new streak').toBe('up');
  });
});

const result = fc.constantFrom<ProbeResult>('up', 'down', 'unknown');
const thresholds = fc.record({
  rise: fc.integer({ min: 1, max: 3 }),
  fall: fc.integer({ min: 1, max: 3 }),
});

test('after any results the health is that of a naive reading of the whole list', () => {
  fc.assert(
    fc.property(fc.array(result, { maxLength: 60, size: 'max' }), thresholds, (results, given) => {
      expect(healths(results, given)).toEqual(naiveHealths(results, given));
    }),
    { numRuns: 400 },
  );
});

test('law: no change without its streak', () => {
  fc.assert(
    fc.property(fc.array(result, { maxLength: 60, size: 'max' }), thresholds, (results, given) => {
      let state = INITIAL_HEALTH;
      for (const [index, one] of results.entries()) {
        const { state: next, transition } = judge(state, one, given);
        expect(transition !== undefined).toBe(next.health !== state.health);
        const known = results.slice(0, index + 1).filter((past) => past !== 'unknown');
        if (transition?.to === 'down') {
          expect(known.slice(-given.fall)).toEqual(Array(given.fall).fill('down'));
        }
        if (transition?.to === 'up') expect(one).not.toBe('down');
        state = next;
      }
    }),
  );
});

test('law: from whatever happened, rise successes bring a backend up, and silences do in the end', () => {
  fc.assert(
    fc.property(fc.array(result, { maxLength: 60, size: 'max' }), thresholds, (results, given) => {
      const state = run(results, given);
      const successes = Array<ProbeResult>(given.rise).fill('up');
      expect(run(successes, given, state).health).toBe('up');
      const silences = Array<ProbeResult>(given.rise * SILENCES_PER_SUCCESS).fill('unknown');
      expect(run(silences, given, state).health).toBe('up');
      const failures = Array<ProbeResult>(given.fall).fill('down');
      expect(run(failures, given, state).health).toBe('down');
    }),
  );
});

function run(
  results: readonly ProbeResult[],
  given: Thresholds,
  from: HealthState = INITIAL_HEALTH,
): HealthState {
  return results.reduce((state, one) => judge(state, one, given).state, from);
}

function healths(results: readonly ProbeResult[], given: Thresholds): Health[] {
  return results.map((_, at) => run(results.slice(0, at + 1), given).health);
}

function transitions(results: readonly ProbeResult[], given: Thresholds): HealthTransition[] {
  return results.flatMap((one, at) => {
    const { transition } = judge(run(results.slice(0, at), given), one, given);
    return transition === undefined ? [] : [transition];
  });
}

/** Looks back from each result, knowing only how it was before. */
function naiveHealths(results: readonly ProbeResult[], { rise, fall }: Thresholds): Health[] {
  const told: Health[] = [];
  let upSince = 0;
  for (let end = 1; end <= results.length; end += 1) {
    const before = told.at(-1) ?? 'up';
    const past = results.slice(0, end).reverse();
    if (before === 'up') {
      const streak = past.slice(0, end - upSince);
      const known = streak.filter((one) => one !== 'unknown');
      const isFall = known.length >= fall && known.slice(0, fall).every((one) => one === 'down');
      // Only a failure turns a backend down, not the silence after it.
      told.push(isFall && past[0] === 'down' ? 'down' : 'up');
    } else {
      const since = past.slice(0, past.indexOf('down'));
      const thirds = since.map((one) => (one === 'up' ? SILENCES_PER_SUCCESS : 1));
      const weight = thirds.reduce((total, third) => total + third, 0);
      const isRise = weight >= rise * SILENCES_PER_SUCCESS;
      if (isRise) upSince = end;
      told.push(isRise ? 'up' : 'down');
    }
  }
  return told;
}
