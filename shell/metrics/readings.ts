/**
 * One look at everything that is counted, as series: taken in one go between two turns, so that its figures agree with each
 * other, and rendered at leisure.
 */
import {
  activeFlows,
  formatAddress,
  OTHER_NAMES,
  type BackendFigures,
  type ClusterMetrics,
  type Condition,
  type PlaneFigures,
} from '../../core/index.ts';
import type { TrainFigures } from '../drivers/outbox.ts';
import { CLUSTER_PLACES, LISTENER_PLACES, type Label } from './catalogue.ts';
import { durationsOf, type Histogram } from './histogram.ts';
import type { KernelFigures } from './kernel-drops.ts';

export interface Series {
  readonly labels: Readonly<Partial<Record<Label, string>>>;
  /** Of a histogram: how many were observed. */
  readonly value: number;
  readonly histogram?: Histogram;
}

/** Series by the name of their metric. */
export type Readings = Map<string, Series[]>;

/** What is read: the planes of a proxy. */
export interface Measured {
  readonly figures: Pick<
    PlaneFigures,
    'totalsByAddress' | 'addressesBeyondBound' | 'clusters' | 'failOpenSelections' | 'waiting'
  >;
  readonly trains: Readonly<TrainFigures>;
  readonly clusterSums: Pick<ClusterMetrics, 'sums' | 'namesBeyondBound'>;
  readonly condition: Condition;
}

/** Backends with series of their own; the rest are `other`. */
export const BACKENDS_SHOWN_MAX = 1_000;

export function readPlanes(measured: Measured): Readings {
  const readings: Readings = new Map();
  readListeners(readings, measured);
  readClusters(readings, measured);
  readBackends(readings, measured);
  const { condition, figures, trains } = measured;
  add(readings, 'sozu_udp_queued_datagrams', figures.waiting);
  add(readings, 'sozu_udp_trains_total', trains.trains);
  add(readings, 'sozu_udp_train_datagrams_total', trains.datagramsInTrains);
  add(readings, 'sozu_udp_trains_refused_total', trains.trainsRefused);
  add(readings, 'sozu_udp_stopping', Number(condition.stopping));
  add(readings, 'sozu_udp_listeners_failed', condition.failures.size);
  add(readings, 'sozu_udp_config_generation', condition.generation);
  return readings;
}

export function readKernel(
  readings: Readings,
  figures: ReadonlyMap<string, Readonly<KernelFigures>>,
): void {
  for (const [listener, { drops, queuedBytes }] of figures) {
    add(readings, 'sozu_udp_kernel_dropped_datagrams_total', drops, { listener });
    add(readings, 'sozu_udp_kernel_receive_queue_bytes', queuedBytes, { listener });
  }
}

/** Adds one series. */
export function add(
  readings: Readings,
  family: string,
  value: number,
  labels: Series['labels'] = {},
): void {
  const series = readings.get(family);
  if (series === undefined) readings.set(family, [{ labels, value }]);
  else series.push({ labels, value });
}

function addHistogram(
  readings: Readings,
  family: string,
  histogram: Histogram,
  labels: Series['labels'],
): void {
  const series = readings.get(family) ?? [];
  readings.set(family, series);
  series.push({ labels, value: histogram.buckets.at(-1)?.count ?? 0, histogram });
}

function readListeners(readings: Readings, { figures }: Measured): void {
  for (const [listener, counters] of figures.totalsByAddress) {
    for (const { key, family, reason } of LISTENER_PLACES) {
      add(
        readings,
        family,
        counters[key],
        reason === undefined ? { listener } : { listener, reason },
      );
    }
    add(readings, 'sozu_udp_active_flows', activeFlows(counters), { listener });
    addHistogram(readings, 'sozu_udp_flow_duration_seconds', durationsOf(counters), { listener });
  }
  const family = 'sozu_udp_label_overflows_total';
  add(readings, family, figures.addressesBeyondBound, { reason: 'listener' });
}

function readClusters(readings: Readings, { figures, clusterSums }: Measured): void {
  const failOpen = figures.failOpenSelections;
  for (const [cluster, counters] of clusterSums.sums) {
    for (const { key, family, reason } of CLUSTER_PLACES) {
      const value = key === 'failOpen' ? (failOpen.get(cluster) ?? 0) : counters[key];
      add(readings, family, value, reason === undefined ? { cluster } : { cluster, reason });
    }
  }
  const family = 'sozu_udp_label_overflows_total';
  add(readings, family, clusterSums.namesBeyondBound, { reason: 'cluster' });
}

const STATES = ['available', 'down', 'draining', 'drained', 'disabled'] as const;

function readBackends(readings: Readings, { figures, clusterSums }: Measured): void {
  const named = clusterSums.sums;
  const states = new Map<string, Map<string, number>>();
  const [available, flows] = [new Tally(), new Tally()];
  let shown = 0;
  let folded = 0;
  for (const { cluster: name, backends } of figures.clusters) {
    const cluster = named.has(name) ? name : OTHER_NAMES;
    const counts = states.get(cluster) ?? new Map(STATES.map((state) => [state, 0]));
    states.set(cluster, counts);
    for (const known of backends) {
      const state = stateOf(known);
      counts.set(state, (counts.get(state) ?? 0) + 1);
      const isShown = shown < BACKENDS_SHOWN_MAX;
      if (isShown) shown += 1;
      else folded += 1;
      const backend = isShown ? formatAddress(known.backend.address) : OTHER_NAMES;
      available.add(cluster, backend, Number(state === 'available'));
      flows.add(cluster, backend, known.flows);
    }
  }
  for (const [cluster, counts] of states) {
    for (const [state, count] of counts) {
      add(readings, 'sozu_udp_backends', count, { cluster, state });
    }
  }
  available.addTo(readings, 'sozu_udp_backend_available');
  flows.addTo(readings, 'sozu_udp_backend_active_flows');
  add(readings, 'sozu_udp_backends_folded', folded);
}

function stateOf(known: BackendFigures): string {
  if (known.state !== 'active') return known.state;
  return known.healthy ? 'available' : 'down';
}

/** Sums for each backend of each cluster: two backends of one address are one series. */
class Tally {
  private readonly sums = new Map<string, Map<string, number>>();

  add(cluster: string, backend: string, value: number): void {
    const known = this.sums.get(cluster) ?? new Map<string, number>();
    this.sums.set(cluster, known);
    known.set(backend, (known.get(backend) ?? 0) + value);
  }

  addTo(readings: Readings, family: string): void {
    for (const [cluster, backends] of this.sums) {
      for (const [backend, value] of backends) add(readings, family, value, { cluster, backend });
    }
  }
}
