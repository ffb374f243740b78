import { expect, test } from 'vitest';
import {
  always,
  alwaysAtLeast,
  alwaysAtMost,
  declaredProperties,
  mergeCounts,
  missedProperties,
  Observer,
  reachable,
  sometimes,
  sometimesAtLeast,
  sometimesAtMost,
  unreachable,
} from './properties.ts';
import { seedFromNumber } from './seed.ts';

const balanced = always('the books balance');
const silent = always('never looked at');
const reused = sometimes('a slot is used again');
const started = reachable('the run starts');
const broken = unreachable('the impossible branch');
const capped = alwaysAtMost('flows stay below the cap');
const funded = alwaysAtLeast('the budget stays above zero');
const crowded = sometimesAtLeast('flows come to a thousand');
const empty = sometimesAtMost('the table empties');

test('a violation is recorded with seed and step, once a run, and the run goes on', () => {
  const observer = observerOf(7);
  observer.step = 3;
  expect(observer.check(balanced, true)).toBe(true);
  expect(observer.violations).toEqual([]);
  observer.step = 4;
  expect(observer.check(balanced, false)).toBe(false);
  observer.step = 5;
  observer.check(balanced, false);
  observer.reach(broken);
  observer.measure(capped, 11, 10);
  observer.measure(funded, -1, 0);
  const seed = seedFromNumber(7);
  expect(observer.violations).toEqual([
    { kind: 'always', name: balanced.name, detail: 'did not hold', seed, step: 4 },
    { kind: 'unreachable', name: broken.name, detail: 'was reached', seed, step: 5 },
    { kind: 'alwaysAtMost', name: capped.name, detail: 'value 11, bound 10', seed, step: 5 },
    { kind: 'alwaysAtLeast', name: funded.name, detail: 'value -1, bound 0', seed, step: 5 },
  ]);
  observer.beginRun(seedFromNumber(8));
  expect(observer.violations).toEqual([]);
  observer.check(balanced, false);
  expect(observer.violations).toMatchObject([{ seed: seedFromNumber(8), step: 0 }]);
});

test('bounds are kept at the bound itself, and what is only sometimes so never violates', () => {
  const observer = observerOf(1);
  expect(observer.measure(capped, 10, 10)).toBe(true);
  expect(observer.measure(funded, 0, 0)).toBe(true);
  expect(observer.measure(crowded, 1_000, 1_000)).toBe(true);
  expect(observer.measure(empty, 0, 0)).toBe(true);
  expect(observer.measure(crowded, 999, 1_000)).toBe(false);
  expect(observer.measure(empty, 1, 0)).toBe(false);
  expect(observer.check(reused, false)).toBe(false);
  expect(observer.violations).toEqual([]);
});

test('counts say how often, in how many seeds, and where first', () => {
  const observer = new Observer();
  for (const seed of [9, 4, 6]) {
    observer.beginRun(seedFromNumber(seed));
    for (observer.step = 1; observer.step <= 10; observer.step++) {
      observer.check(reused, seed !== 6 && observer.step > seed);
    }
  }
  expect(observer.counts().find(({ name }) => name === reused.name)).toEqual({
    kind: 'sometimes',
    name: reused.name,
    evaluations: 30,
    hits: 7,
    seeds: 2,
    first: { seed: seedFromNumber(4), step: 5 },
  });
});

test('counts of workers merge into those of one, in any order', () => {
  const seeds = [5, 2, 8, 11];
  const together = new Observer();
  const apart = seeds.map((seed) => {
    const observer = new Observer();
    for (const each of [together, observer]) watch(each, seed);
    return observer.counts();
  });
  const merged = apart.reduce(mergeCounts, []);
  expect(merged).toEqual(together.counts());
  expect(apart.toReversed().reduce(mergeCounts, [])).toEqual(merged);
});

test('missed is what never ran, and what should be sometimes and was not', () => {
  const observer = observerOf(1);
  observer.check(balanced, false);
  observer.check(reused, false);
  observer.measure(crowded, 1, 1_000);
  observer.measure(empty, 0, 0);
  observer.measure(capped, 11, 10);
  const unloaded = { kind: 'sometimes', name: 'of a module nobody imports' } as const;
  const missed = missedProperties([...declaredProperties(), unloaded], observer.counts());
  expect(missed.map(({ name }) => name)).toEqual(
    [silent, reused, started, funded, crowded, unloaded].map(({ name }) => name),
  );
});

test('a name that is declared twice is refused', () => {
  expect(() => sometimes('the books balance')).toThrow('declared twice');
});

test('an observer takes properties that are declared after it was made', () => {
  const observer = observerOf(1);
  const late = sometimes('a module comes late');
  observer.check(late, true);
  expect(observer.counts().find(({ name }) => name === late.name)).toMatchObject({ hits: 1 });
});

function observerOf(seed: number): Observer {
  const observer = new Observer();
  observer.beginRun(seedFromNumber(seed));
  return observer;
}

function watch(observer: Observer, seed: number): void {
  observer.beginRun(seedFromNumber(seed));
  observer.reach(started);
  for (observer.step = 1; observer.step < seed; observer.step++) {
    observer.check(reused, observer.step % 5 === 4);
    observer.measure(capped, observer.step, 9);
  }
}
