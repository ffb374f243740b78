/** The figures of `/metrics` as rows, by the same names and labels: one look at both planes. */
import { readPlanes, type Measured } from '../metrics/readings.ts';
import type { View } from './views.ts';

/** Those that are named, by their whole name; all unless given. */
export function metricViews(measured: Measured, names: readonly string[] | undefined): View[] {
  return [...readPlanes(measured)].flatMap(([name, series]) => {
    if (names !== undefined && !names.includes(name)) return [];
    return series.map(({ labels, value }) => ({ name, ...labels, value }));
  });
}
