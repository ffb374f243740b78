import { describe, expect, test } from 'vitest';
import { DEFAULT } from '../../scenarios/default.ts';
import { LOST_BACKENDS, LOSS_WEIGHTS } from '../../scenarios/lost-backends.ts';
import { SWARM } from '../../scenarios/swarm.ts';
import { GUARD_WEIGHTS, WARY } from '../../scenarios/wary.ts';
import { chiSquareFits } from '../../test/chi-square.ts';
import { Observer, type PropertyCounts } from '../properties.ts';
import { seededStreams } from '../random.ts';
import { seedFromNumber } from '../seed.ts';
import { RATES, type Action, type DrawnTerms } from './actions.ts';
import { ActionSource } from './grammar.ts';
import { runSeed } from './run.ts';
import type { Scenario } from './scenario.ts';

const STEPS = 40_000;

describe('draws that the seeds’ table does not know', () => {
  const loss = drawn(LOST_BACKENDS);
  const wary = drawn(WARY);

  test('are none of default', () => {
    const kinds = new Set(drawn(DEFAULT).map(({ kind }) => kind));
    for (const kind of Object.keys({ ...LOSS_WEIGHTS, ...GUARD_WEIGHTS })) {
      expect([...kinds]).not.toContain(kind);
    }
    expect(termsIn(drawn(DEFAULT))).toEqual([]);
  });

  test('leave the actions of the table as they were', () => {
    const { values, workload } = seededStreams(seedFromNumber(1));
    const seen = [values, workload].map((stream) => stream.choose('next', 2 ** 32));
    const streams = seededStreams(seedFromNumber(1));
    SWARM.grammarOf(streams);
    expect([streams.values, streams.workload].map((one) => one.choose('next', 2 ** 32))).toEqual(
      seen,
    );
  });

  test('a backend is lost in either way, and half of them are left', () => {
    const losses = loss.flatMap((one) => (one.kind === 'LoseBackend' ? [one] : []));
    const backends = [0, 1, 2, 3].map((at) => losses.filter(({ backend }) => backend === at));
    expect(chiSquareFits(lengths(backends), [1, 1, 1, 1])).toBe(true);
    const removed = losses.filter((one) => one.removed).length;
    expect(chiSquareFits([removed, losses.length - removed], [1, 1])).toBe(true);
    const fates = ['pin', 'rebind', 'close'].map((fate) =>
      losses.filter((one) => one.fate === fate),
    );
    expect(chiSquareFits(lengths(fates), [1, 2, 1])).toBe(true);
  });

  test('a list of hosts is empty in half the cases, else it holds a quarter of them', () => {
    const lists = wary.flatMap((one) => (one.kind === 'Deny' ? [one.hosts] : []));
    const held = lists.map((hosts) => hosts.toString(2).replaceAll('0', '').length);
    const mean = held.reduce((sum, count) => sum + count, 0) / held.length;
    expect(mean).toBeGreaterThan(1.8);
    expect(mean).toBeLessThan(2.2);
  });

  test('each refusal is told as often', () => {
    const told = wary.flatMap((one) => (one.kind === 'Refuse' ? [one.refusal] : []));
    const counts = [...new Set(told)].map((word) => told.filter((one) => one === word).length);
    expect(chiSquareFits(counts, [1, 1, 1, 1, 1])).toBe(true);
  });

  test('terms are on in half the clusters, each by itself', () => {
    const terms = termsIn(wary);
    const share = (holds: (one: DrawnTerms) => boolean): number[] => {
      const count = terms.filter(holds).length;
      return [count, terms.length - count];
    };
    expect(
      chiSquareFits(
        share((one) => one.responsesPerRequest),
        [1, 1],
      ),
    ).toBe(true);
    expect(
      chiSquareFits(
        share((one) => one.requestsLinger),
        [1, 1],
      ),
    ).toBe(true);
    expect(
      chiSquareFits(
        share((one) => one.graceMs > 0),
        [1, 1],
      ),
    ).toBe(true);
    expect(
      chiSquareFits(
        share((one) => one.forwardEmpty),
        [1, 1],
      ),
    ).toBe(true);
    expect(
      chiSquareFits(
        share((one) => one.creditFactor > 0),
        [1, 1],
      ),
    ).toBe(true);
    const rates = RATES.map((rate) => terms.filter((one) => one.rate === rate).length);
    expect(
      chiSquareFits(
        rates,
        RATES.map(() => 1),
      ),
    ).toBe(true);
  });

  test('limits of a flow are drawn only where they are wanted', () => {
    for (const { rate, creditFactor } of termsIn(loss)) {
      expect({ rate, creditFactor }).toEqual({ rate: 0, creditFactor: 0 });
    }
  });
});

describe('what a scenario is for is what its runs come to', () => {
  test.each<[string, Scenario, readonly string[]]>([
    [
      'lost-backends',
      LOST_BACKENDS,
      [
        'a flow closes because its backend is lost',
        'a flow is killed by its serial',
        'a flow is rebound',
        'a flow that is to be rebound finds no backend',
        'a flow that is to be rebound finds its own backend',
      ],
    ],
    [
      'wary',
      WARY,
      [
        'a denied client is dropped',
        'a datagram exceeds a rate',
        'a reply exceeds the credit of its client',
        'a new flow finds no port',
        'a loop is refused',
        'an empty datagram is forwarded',
        'a reply comes after all that were awaited',
        'a reply comes after the last request',
      ],
    ],
  ])('%s', (_, scenario, names) => {
    const observer = new Observer();
    for (let number = 0; number < 8; number += 1) {
      runSeed(scenario, seedFromNumber(number), 2_000, { observer });
      expect(observer.violations).toEqual([]);
    }
    const hits = new Map(observer.counts().map((one: PropertyCounts) => [one.name, one.hits]));
    for (const name of names) expect([name, hits.get(name)]).not.toEqual([name, 0]);
  });
});

/** The actions of one fixed seed: nothing here can flake. */
function drawn(scenario: Scenario): Action[] {
  const seed = seedFromNumber(2_026);
  const streams = seededStreams(seed);
  const source = new ActionSource(scenario.grammarOf(streams), seed, streams);
  const around = { flowCount: 10, maxRx: 1_500, remembered: 5 };
  return Array.from({ length: STEPS }, () => source.step(around)).flat();
}

function termsIn(actions: readonly Action[]): DrawnTerms[] {
  return actions.flatMap((one) =>
    one.kind === 'ReconfigCluster' && one.config.terms !== undefined ? [one.config.terms] : [],
  );
}

function lengths(lists: readonly (readonly unknown[])[]): number[] {
  return lists.map(({ length }) => length);
}
