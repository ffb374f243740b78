/**
 * Histograms in Prometheus' text. The library's own count what they observe; ours are read, as counters are, and only told.
 */
import { DURATION_RANGES, type ListenerCounters } from '../../core/index.ts';
import type { Family } from './catalogue.ts';
import type { Series } from './readings.ts';

/** How many were up to each bound, those of the bounds before included, and the sum of all. */
export interface Histogram {
  readonly buckets: readonly { readonly upTo: number; readonly count: number }[];
  readonly sum: number;
}

/** In seconds. */
export function durationsOf(counters: Readonly<ListenerCounters>): Histogram {
  let count = 0;
  const buckets = DURATION_RANGES.map(({ key, upTo }) => {
    count += counters[key];
    return { upTo: upTo / 1_000, count };
  });
  return { buckets, sum: counters.lastedMicroseconds / 1_000_000 };
}

export function histogramText({ name, help }: Family, series: readonly Series[]): string {
  const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`];
  for (const { labels, value, histogram } of series) {
    const words = Object.entries(labels).map(([label, of]) => `${label}="${escaped(of)}"`);
    const own = words.length === 0 ? '' : `{${words.join()}}`;
    for (const { upTo, count } of histogram?.buckets ?? []) {
      const bound = upTo === Infinity ? '+Inf' : String(upTo);
      lines.push(`${name}_bucket{${[...words, `le="${bound}"`].join()}} ${count}`);
    }
    lines.push(`${name}_sum${own} ${histogram?.sum ?? 0}`, `${name}_count${own} ${value}`);
  }
  return lines.join('\n');
}

function escaped(value: string): string {
  return value.replace(/[\\\n"]/g, (one) => (one === '\n' ? '\\n' : `\\${one}`));
}
