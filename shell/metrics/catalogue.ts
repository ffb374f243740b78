/**
 * The Prometheus metrics as data: the exposition, doc/METRICS.md, the dashboard and the alert rules all come from this list, so
 * none can name what another does not know. What core counts is not listed twice: names, labels and words are derived from the
 * core's own catalogues.
 */
import {
  CATALOGUE,
  CLUSTER_CATALOGUE,
  type ClusterMetric,
  type ListenerCounters,
} from '../../core/index.ts';

export type Label = 'listener' | 'cluster' | 'backend' | 'reason' | 'state' | 'version' | 'node';

export interface Family {
  readonly name: string;
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly Label[];
  /** A sentence. */
  readonly help: string;
}

/** Where one of the core's counters is shown. */
export interface Place<Key> {
  readonly key: Key;
  readonly family: string;
  /** Set where several counters are one metric, told apart by the label of this name. */
  readonly reason: string | undefined;
}

/** Counters that are told apart by a reason: the beginning of the core's name, and what all of them together are. */
const BY_REASON: readonly { readonly prefix: string; readonly help: string }[] = [
  {
    prefix: 'udp.datagrams.dropped.',
    help: 'Datagrams dropped: each ends forwarded, returned or here.',
  },
  { prefix: 'udp.flows.closed.', help: 'Flows closed; together they are the flows evicted.' },
  { prefix: 'udp.probes.', help: 'Health probes that ended, by how.' },
];

/** Counters of the core that are one histogram here. */
const DURATIONS = 'udp.flow.duration.';

/** Every counter of a listener, in the core's order. */
export const LISTENER_KEYS: readonly (keyof ListenerCounters)[] = placesIn(CATALOGUE).map(
  ({ key }) => key,
);
export const LISTENER_PLACES: readonly Place<keyof ListenerCounters>[] = placesIn(CATALOGUE).filter(
  ({ key }) => !CATALOGUE[key].name.startsWith(DURATIONS),
);
export const CLUSTER_PLACES: readonly Place<keyof typeof CLUSTER_CATALOGUE>[] =
  placesIn(CLUSTER_CATALOGUE);

/** Every metric there is, in the order in which they are shown. */
export const FAMILIES: readonly Family[] = [
  ...familiesOf(CATALOGUE, LISTENER_PLACES, 'listener'),
  gauge('sozu_udp_active_flows', ['listener'], 'Live flows.'),
  {
    name: 'sozu_udp_flow_duration_seconds',
    kind: 'histogram',
    labels: ['listener'],
    help: 'How long flows lasted that have closed, those without an upstream socket left out.',
  },
  counter(
    'sozu_udp_kernel_dropped_datagrams_total',
    ['listener'],
    'Datagrams that the kernel dropped before the process saw them: rcvbuf was full, or a checksum wrong.',
  ),
  gauge(
    'sozu_udp_kernel_receive_queue_bytes',
    ['listener'],
    'Room taken in the kernel by datagrams that wait for the process.',
  ),
  ...familiesOf(CLUSTER_CATALOGUE, CLUSTER_PLACES, 'cluster'),
  gauge(
    'sozu_udp_backends',
    ['cluster', 'state'],
    'Backends: available, down (probes or traffic speak against it), draining, drained or disabled.',
  ),
  gauge('sozu_udp_backend_available', ['cluster', 'backend'], '1 when it may get new flows.'),
  gauge('sozu_udp_backend_active_flows', ['cluster', 'backend'], 'Live flows on a backend.'),
  gauge('sozu_udp_queued_datagrams', [], 'Datagrams that wait for a socket to have room.'),
  counter('sozu_udp_trains_total', [], 'Sends of equal datagrams to one peer as one (mmsg only).'),
  counter('sozu_udp_train_datagrams_total', [], 'Datagrams that left in trains.'),
  counter('sozu_udp_trains_refused_total', [], 'Trains that left as single datagrams instead.'),
  counter(
    'sozu_udp_label_overflows_total',
    ['reason'],
    'Times that a listener or cluster found no series of its own and was counted as "other".',
  ),
  gauge('sozu_udp_backends_folded', [], 'Backends without a series of their own: see "other".'),
  gauge('sozu_udp_ready', [], '1 when /ready says so.'),
  gauge('sozu_udp_stopping', [], '1 from the first signal to stop on.'),
  gauge('sozu_udp_listeners_failed', [], 'Listeners that are configured and not bound.'),
  gauge('sozu_udp_config_generation', [], 'Counts the changes of the configuration.'),
  gauge('sozu_udp_config_last_reload_successful', [], '1 when the last reload was, 0 if refused.'),
  gauge(
    'sozu_udp_config_last_reload_success_timestamp_seconds',
    [],
    'When a configuration was last taken, at the start or later.',
  ),
  counter('sozu_udp_config_reloads_total', ['reason'], 'Reloads asked for: ok or refused.'),
  counter(
    'sozu_udp_admin_refused_total',
    ['reason'],
    'Requests and connections that the HTTP server refused.',
  ),
  counter('sozu_udp_statsd_failed_total', [], 'Datagrams to statsd that could not be sent.'),
  gauge('sozu_udp_build_info', ['version', 'node'], 'Always 1.'),
  gauge('sozu_udp_uptime_seconds', [], 'Since the process started.'),
  counter('process_cpu_seconds_total', [], 'User and system time.'),
  gauge('process_resident_memory_bytes', [], 'Resident memory.'),
  gauge('process_open_fds', [], 'Open descriptors: each live flow has one.'),
  gauge('process_max_fds', [], 'The soft limit of descriptors.'),
  gauge('process_start_time_seconds', [], 'Start of the process since 1970.'),
  gauge('nodejs_heap_used_bytes', [], 'What lives on the heap, garbage included.'),
  gauge(
    'nodejs_eventloop_lag_p99_seconds',
    [],
    'Since the last scrape: 99 % of turns were less late.',
  ),
  gauge('nodejs_eventloop_lag_max_seconds', [], 'Since the last scrape: the latest turn.'),
];

/** Thrown away by nobody: a name that is not in the list is a mistake of a programmer. */
export function familyNamed(name: string): Family {
  const family = FAMILIES.find((one) => one.name === name);
  if (family === undefined) throw new Error(`no metric is called ${name}`);
  return family;
}

type Described = Pick<ClusterMetric, 'name' | 'help'> & {
  readonly unit: string;
  readonly kind?: 'gauge' | 'counter';
};

function placesIn<Key extends string>(
  catalogue: Readonly<Record<Key, Described>>,
): readonly Place<Key>[] {
  const places: Place<Key>[] = [];
  for (const key in catalogue) places.push(placeOf(key, catalogue[key]));
  return places;
}

function placeOf<Key>(key: Key, { name, unit, kind }: Described): Place<Key> {
  const prefix = BY_REASON.find((one) => name.startsWith(one.prefix))?.prefix;
  if (prefix !== undefined) {
    return { key, family: exported(prefix.slice(0, -1), unit), reason: name.slice(prefix.length) };
  }
  return { key, family: exported(name, unit, kind), reason: undefined };
}

/** `udp.bytes.in` is `sozu_udp_in_bytes_total`: a unit of measure stands at the end, words that count stay where they are. */
function exported(name: string, unit: string, kind: 'gauge' | 'counter' = 'counter'): string {
  const words = name.split('.').filter((word) => word !== 'udp');
  const ordered = unit === 'bytes' ? [...words.filter((word) => word !== unit), unit] : words;
  return ['sozu_udp', ...ordered, ...(kind === 'counter' ? ['total'] : [])].join('_');
}

function familiesOf<Key extends string>(
  catalogue: Readonly<Record<Key, Described>>,
  places: readonly Place<Key>[],
  subject: 'listener' | 'cluster',
): readonly Family[] {
  const families = new Map<string, Family>();
  for (const { key, family: name, reason } of places) {
    const about = catalogue[key];
    const shared = BY_REASON.find(({ prefix }) => about.name.startsWith(prefix));
    const [unit = ''] = about.unit.match(/^./) ?? [];
    const labels: Label[] = reason === undefined ? [subject] : [subject, 'reason'];
    const help = shared?.help ?? `${unit.toUpperCase()}${about.unit.slice(1)}: ${about.help}.`;
    families.set(name, { name, kind: about.kind ?? 'counter', labels, help });
  }
  return [...families.values()];
}

function counter(name: string, labels: readonly Label[], help: string): Family {
  return { name, kind: 'counter', labels, help };
}

function gauge(name: string, labels: readonly Label[], help: string): Family {
  return { name, kind: 'gauge', labels, help };
}
