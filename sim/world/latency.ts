/**
 * How long a packet is under way. Whole draws and plain arithmetic only: logarithms and powers differ from engine to engine,
 * and a seed must mean the same everywhere.
 */
import { present } from '../../core/assert.ts';
import type { Duration } from '../../core/time.ts';
import { microseconds } from '../../core/time.ts';
import type { Random } from '../random.ts';

export type Latency =
  | { readonly kind: 'constant'; readonly time: Duration }
  | { readonly kind: 'uniform'; readonly low: Duration; readonly high: Duration }
  /**
   * Close to log-normal, as round trips are: half of the packets are faster than `median`, few are much slower. `spread` is
   * one standard deviation in sixteenths of a doubling: 16 makes every sixth packet take twice the median or more. At most 64.
   */
  | { readonly kind: 'log-normal'; readonly median: Duration; readonly spread: number };

/** Draws a latency. A constant one costs no draw, the others one each. */
export function drawLatency(latency: Latency, random: Random): Duration {
  if (latency.kind === 'constant') return latency.time;
  if (latency.kind === 'uniform') {
    return microseconds(random.between('latency.uniform', latency.low, latency.high));
  }
  const deviations = bell(random.choose('latency.log-normal', 2 ** 32));
  return microseconds(Math.floor(latency.median * doublings(deviations * latency.spread)));
}

/** Standard deviations from the mean: the sum of four bytes is close to normal, and never further out than 3.5. */
function bell(word: number): number {
  const sum = (word & 255) + ((word >>> 8) & 255) + ((word >>> 16) & 255) + (word >>> 24);
  return (sum - BYTES_MEAN) / BYTES_DEVIATION;
}

const BYTES_MEAN = 510;

/** √(4 × (256² − 1) / 12), rounded. */
const BYTES_DEVIATION = 147.8;

/** 2 to the power of `sixteenths` / 16: a table, straight lines between its places, and shifts for the whole doublings. */
function doublings(sixteenths: number): number {
  const whole = Math.floor(sixteenths / 16);
  const rest = sixteenths - whole * 16;
  const place = Math.floor(rest);
  const low = present(POWERS[place], 'the rest is below 16');
  const high = present(POWERS[place + 1], 'the rest is below 16');
  const power = (low + (high - low) * (rest - place)) / 65_536;
  return whole < 0 ? power / (1 << -whole) : power * (1 << whole);
}

/** 65,536 × 2^(i/16), rounded. */
const POWERS = [
  65_536, 68_438, 71_468, 74_632, 77_936, 81_386, 84_990, 88_752, 92_682, 96_785, 101_070, 105_545,
  110_218, 115_098, 120_194, 125_515, 131_072,
];
