import { expect, test } from 'vitest';
import { chiSquareFits } from '../test/chi-square.ts';
import { buggifyPoint } from './buggify.ts';
import type { BuggifyPoint } from './buggify.ts';
import { seededStreams } from './random.ts';
import { seedFromNumber } from './seed.ts';

const ALWAYS_ACTIVE = { numerator: 1, denominator: 1 };

test('a point is active in a quarter of the seeds, independently of the other points', () => {
  const counts = [0, 0, 0, 0];
  for (let seed = 0; seed < 8_000; seed++) {
    counts[Number(point('one', seed).active) * 2 + Number(point('two', seed).active)]!++;
  }
  expect(chiSquareFits(counts, [9, 3, 3, 1])).toBe(true);
});

test('an active point fires at its ratio, an inactive one never', () => {
  const active = point('burst', 1, ALWAYS_ACTIVE);
  const fired = firings(active, 50_000).filter(Boolean).length;
  expect(chiSquareFits([50_000 - fired, fired], [98, 2])).toBe(true);
  const inactive = point('burst', 1, { numerator: 0, denominator: 1 });
  expect(inactive.active).toBe(false);
  expect(firings(inactive, 1_000)).not.toContain(true);
});

test('a point that is added and fires shifts no other point, nor the stream itself', () => {
  const { buggify: alone } = seededStreams(seedFromNumber(7));
  const { buggify: crowded } = seededStreams(seedFromNumber(7));
  const seed = seedFromNumber(7);
  const expected = firings(buggifyPoint('old', seed, alone, ALWAYS_ACTIVE), 200);
  const added = buggifyPoint('new', seed, crowded, ALWAYS_ACTIVE);
  const old = buggifyPoint('old', seed, crowded, ALWAYS_ACTIVE);
  const seen = Array.from({ length: 200 }, () => {
    added.fires(1, 2);
    return old.fires(1, 50);
  });
  expect(seen).toEqual(expected);
  expect(crowded.choose('next', 2 ** 32)).toBe(alone.choose('next', 2 ** 32));
});

function point(
  name: string,
  seed: number,
  activation?: { numerator: number; denominator: number },
): BuggifyPoint {
  const { buggify } = seededStreams(seedFromNumber(seed));
  return buggifyPoint(name, seedFromNumber(seed), buggify, activation);
}

function firings(buggifyPointOfRun: BuggifyPoint, count: number): boolean[] {
  return Array.from({ length: count }, () => buggifyPointOfRun.fires(1, 50));
}
