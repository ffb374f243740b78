import { expect, test } from 'vitest';
import { compareToRatchet, toRatchet, type RatchetEntry } from './ratchet.ts';
import type { Trial, Verdict } from './trial.ts';

function trial(verdict: Verdict, seeds = 3): Trial {
  const mutant = { id: 'm', file: 'core/x.ts', search: '', replace: '', announces: '' };
  const found = { property: 'p', scenario: 'default', seed: 2, seeds, step: 9 };
  const detection = verdict === 'killed' ? found : undefined;
  const rest = { violated: [], shrunk: undefined, problem: undefined };
  return { origin: 'drawn', mutant, verdict, detection, ...rest };
}

function judged(now: Trial, before?: RatchetEntry): { errors: number; warnings: number } {
  const { errors, warnings } = compareToRatchet([now], before === undefined ? [] : [before]);
  return { errors: errors.length, warnings: warnings.length };
}

const KILLED: RatchetEntry = {
  id: 'm',
  origin: 'drawn',
  verdict: 'killed',
  property: 'p',
  seeds: 4,
  found: { scenario: 'default', seed: 2 },
};
const SURVIVED: RatchetEntry = { id: 'm', origin: 'drawn', verdict: 'survived-reached' };

test('the file keeps the verdict, the property, the seeds up to a power of two, and the place', () => {
  expect(toRatchet([trial('killed')])).toEqual([KILLED]);
  expect(toRatchet([trial('survived-reached')])).toEqual([SURVIVED]);
});

test('nothing is said when all is as it was', () => {
  expect(judged(trial('killed'), KILLED)).toEqual({ errors: 0, warnings: 0 });
  expect(judged(trial('survived-reached'), SURVIVED)).toEqual({ errors: 0, warnings: 0 });
});

test('a mutant that was killed and now survives is an error', () => {
  expect(judged(trial('survived-reached'), KILLED)).toEqual({ errors: 1, warnings: 0 });
  expect(judged(trial('survived-unreached'), KILLED)).toEqual({ errors: 1, warnings: 0 });
});

test('a mutant that cannot be built is an error, whatever it was', () => {
  expect(judged(trial('build-broken'), KILLED)).toEqual({ errors: 1, warnings: 0 });
  expect(judged(trial('build-broken'), SURVIVED)).toEqual({ errors: 1, warnings: 0 });
});

test('a mutant that is not in the file, and one that is only there, are errors', () => {
  expect(judged(trial('killed'))).toEqual({ errors: 1, warnings: 0 });
  expect(compareToRatchet([], [KILLED]).errors).toHaveLength(1);
});

test('getting better only warns, and so does getting slower', () => {
  expect(judged(trial('killed'), SURVIVED)).toEqual({ errors: 0, warnings: 1 });
  expect(judged(trial('killed', 5), KILLED)).toEqual({ errors: 0, warnings: 1 });
});
