import { describe, expect, test } from 'vitest';
import { microseconds, milliseconds } from '../../core/time.ts';
import { chiSquareFits } from '../../test/chi-square.ts';
import type { Random } from '../random.ts';
import { seededStreams } from '../random.ts';
import { seedFromNumber } from '../seed.ts';
import type { Latency } from './latency.ts';
import { drawLatency } from './latency.ts';

const DRAWS = 50_000;

describe('latencies', () => {
  test('a constant one is what it says, and draws nothing', () => {
    const random = net(1);
    expect(drawLatency({ kind: 'constant', time: milliseconds(7) }, random)).toBe(7_000);
    expect(random.choose('next', 2 ** 32)).toBe(net(1).choose('next', 2 ** 32));
  });

  test('a uniform one reaches both ends and is uniform in between', () => {
    const counts = Array.from({ length: 20 }, () => 0);
    const latency: Latency = { kind: 'uniform', low: microseconds(5), high: microseconds(24) };
    for (const drawn of draws(latency, 2)) counts[drawn - 5]!++;
    expect(
      chiSquareFits(
        counts,
        counts.map(() => 1),
      ),
    ).toBe(true);
  });

  test('a log-normal one doubles and halves as often as the sum of four bytes says', () => {
    const median = milliseconds(16);
    const latency: Latency = { kind: 'log-normal', median, spread: 8 };
    const bounds = [-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2];
    const cells = (of: (at: number) => boolean): number => bounds.filter(of).length;
    const counts = Array.from({ length: bounds.length + 1 }, () => 0);
    const drawn = draws(latency, 3);
    for (const time of drawn) counts[cells((bound) => time >= median * 2 ** (bound / 2))]!++;
    const weights = Array.from({ length: bounds.length + 1 }, () => 0);
    for (const [sum, ways] of sumsOfFourBytes().entries()) {
      weights[cells((bound) => (sum - 510) / 147.8 >= bound)]! += ways;
    }
    expect(chiSquareFits(counts, weights)).toBe(true);
    expect(chiSquareFits(counts, [...weights.slice(1), weights[0]!])).toBe(false);
  });

  test('the widest spread stays a natural number from less than a thousandth of the median on', () => {
    const wide = draws({ kind: 'log-normal', median: milliseconds(20), spread: 64 }, 4);
    expect(wide.every((time) => Number.isSafeInteger(time) && time >= 0)).toBe(true);
    expect(Math.min(...wide)).toBeLessThan(20);
    expect(Math.max(...wide)).toBeGreaterThan(20_000_000);
  });

  test('no spread is the median', () => {
    const none = draws({ kind: 'log-normal', median: milliseconds(20), spread: 0 }, 5);
    expect(new Set(none)).toEqual(new Set([20_000]));
  });
});

/** In how many ways four bytes add up to each sum. */
function sumsOfFourBytes(): number[] {
  let ways = [1];
  for (let byte = 0; byte < 4; byte++) {
    const wider = Array.from({ length: ways.length + 255 }, () => 0);
    for (const [sum, count] of ways.entries()) {
      for (let value = 0; value < 256; value++) wider[sum + value]! += count;
    }
    ways = wider;
  }
  return ways;
}

function draws(latency: Latency, seed: number): number[] {
  const random = net(seed);
  return Array.from({ length: DRAWS }, () => drawLatency(latency, random));
}

function net(seed: number): Random {
  return seededStreams(seedFromNumber(seed)).net;
}
