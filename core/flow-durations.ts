/**
 * How long flows lasted, as counters: one for each range of durations, and the sum. Counters add up over listeners and data
 * planes, and a histogram can be made of them (spec §9, `udp.flow.duration`).
 */
import { milliseconds, type Duration } from './time.ts';

/** What a listener counts of its flows' durations; a flow is in the first range that it fits in. */
export interface DurationCounters {
  lasted1ms: number;
  lasted5ms: number;
  lasted25ms: number;
  lasted100ms: number;
  lasted500ms: number;
  lasted2s: number;
  lasted10s: number;
  lasted30s: number;
  lasted2min: number;
  lasted10min: number;
  lasted1h: number;
  lastedLonger: number;
  /** Of all together. */
  lastedMicroseconds: number;
}

interface DurationRange {
  readonly key: Exclude<keyof DurationCounters, 'lastedMicroseconds'>;
  /** The longest that is in it, milliseconds. */
  readonly upTo: number;
}

/** The shortest first: an answer within a machine room, across the world, an idle time, a session. */
export const DURATION_RANGES: readonly DurationRange[] = [
  { key: 'lasted1ms', upTo: 1 },
  { key: 'lasted5ms', upTo: 5 },
  { key: 'lasted25ms', upTo: 25 },
  { key: 'lasted100ms', upTo: 100 },
  { key: 'lasted500ms', upTo: 500 },
  { key: 'lasted2s', upTo: 2_000 },
  { key: 'lasted10s', upTo: 10_000 },
  { key: 'lasted30s', upTo: 30_000 },
  { key: 'lasted2min', upTo: 120_000 },
  { key: 'lasted10min', upTo: 600_000 },
  { key: 'lasted1h', upTo: 3_600_000 },
  { key: 'lastedLonger', upTo: Infinity },
];

export function countDuration(counters: DurationCounters, lasted: Duration): void {
  counters.lastedMicroseconds += lasted;
  for (const { key, upTo } of DURATION_RANGES) {
    if (lasted > upTo * MILLISECOND) continue;
    counters[key] += 1;
    return;
  }
}

const MILLISECOND: Duration = milliseconds(1);
