/** The Grafana dashboard: panels as data, `examples/grafana-dashboard.json` from them. */
import { metric } from './alerts.ts';

interface Panel {
  readonly title: string;
  readonly unit: string;
  /** Queries, each with the legend of its lines. */
  readonly lines: readonly (readonly [expression: string, legend: string])[];
}

const LISTENERS = 'instance=~"$instance",listener=~"$listener"';
const INSTANCES = 'instance=~"$instance"';

const PANELS: readonly Panel[] = [
  {
    title: 'Datagrams from clients',
    unit: 'pps',
    lines: [
      [perSecond('sozu_udp_datagrams_received_client_total', 'listener'), 'received {{listener}}'],
      [perSecond('sozu_udp_datagrams_forwarded_total', 'listener'), 'forwarded {{listener}}'],
    ],
  },
  {
    title: 'Datagrams to clients',
    unit: 'pps',
    lines: [
      [perSecond('sozu_udp_datagrams_received_backend_total', 'listener'), 'received {{listener}}'],
      [perSecond('sozu_udp_datagrams_returned_total', 'listener'), 'returned {{listener}}'],
    ],
  },
  {
    title: 'Payload',
    unit: 'Bps',
    lines: [
      [perSecond('sozu_udp_in_bytes_total', 'listener'), 'in {{listener}}'],
      [perSecond('sozu_udp_out_bytes_total', 'listener'), 'out {{listener}}'],
    ],
  },
  {
    title: 'Drops by reason',
    unit: 'pps',
    lines: [
      [perSecond('sozu_udp_datagrams_dropped_total', 'reason'), '{{reason}}'],
      [
        perSecond('sozu_udp_kernel_dropped_datagrams_total', 'listener'),
        'in the kernel {{listener}}',
      ],
    ],
  },
  {
    title: 'Live flows',
    unit: 'short',
    lines: [
      [`sum by (listener) (${metric('sozu_udp_active_flows')}{${LISTENERS}})`, '{{listener}}'],
    ],
  },
  {
    title: 'Flows opened, refused and closed',
    unit: 'short',
    lines: [
      [perSecond('sozu_udp_flows_created_total', 'listener'), 'opened {{listener}}'],
      [perSecond('sozu_udp_flows_shed_total', 'listener'), 'shed {{listener}}'],
      [perSecond('sozu_udp_flows_closed_total', 'reason'), 'closed {{reason}}'],
    ],
  },
  {
    title: 'Backends by state',
    unit: 'short',
    lines: [
      [
        `sum by (cluster, state) (${metric('sozu_udp_backends')}{${INSTANCES}})`,
        '{{cluster}} {{state}}',
      ],
    ],
  },
  {
    title: 'Live flows by backend',
    unit: 'short',
    lines: [
      [
        `topk(20, sum by (cluster, backend) (${metric('sozu_udp_backend_active_flows')}{${INSTANCES}}))`,
        '{{cluster}} {{backend}}',
      ],
    ],
  },
  {
    title: 'Probes by result',
    unit: 'short',
    lines: [
      [
        `sum by (cluster, reason) (rate(${metric('sozu_udp_probes_total')}{${INSTANCES}}[$__rate_interval]))`,
        '{{cluster}} {{reason}}',
      ],
    ],
  },
  {
    title: 'Waiting to be read, and to be sent',
    unit: 'short',
    lines: [
      [`${metric('sozu_udp_kernel_receive_queue_bytes')}{${LISTENERS}}`, 'bytes {{listener}}'],
      [`${metric('sozu_udp_queued_datagrams')}{${INSTANCES}}`, 'datagrams {{instance}}'],
    ],
  },
  {
    title: 'Event loop lag',
    unit: 's',
    lines: [
      [`${metric('nodejs_eventloop_lag_p99_seconds')}{${INSTANCES}}`, '99 % {{instance}}'],
      [`${metric('nodejs_eventloop_lag_max_seconds')}{${INSTANCES}}`, 'worst {{instance}}'],
    ],
  },
  {
    title: 'CPU',
    unit: 'percentunit',
    lines: [
      [
        `rate(${metric('process_cpu_seconds_total')}{${INSTANCES},job="$job"}[$__rate_interval])`,
        '{{instance}}',
      ],
    ],
  },
  {
    title: 'Memory',
    unit: 'bytes',
    lines: [
      [`${metric('process_resident_memory_bytes')}{${INSTANCES},job="$job"}`, '{{instance}}'],
      [`${metric('nodejs_heap_used_bytes')}{${INSTANCES},job="$job"}`, 'heap {{instance}}'],
    ],
  },
  {
    title: 'Descriptors',
    unit: 'short',
    lines: [
      [`${metric('process_open_fds')}{${INSTANCES},job="$job"}`, 'open {{instance}}'],
      [`${metric('process_max_fds')}{${INSTANCES},job="$job"}`, 'limit {{instance}}'],
    ],
  },
  {
    title: 'Ready, and last reload taken',
    unit: 'bool',
    lines: [
      [`${metric('sozu_udp_ready')}{${INSTANCES}}`, 'ready {{instance}}'],
      [
        `${metric('sozu_udp_config_last_reload_successful')}{${INSTANCES}}`,
        'reload taken {{instance}}',
      ],
    ],
  },
  {
    title: 'Generation of the configuration',
    unit: 'short',
    lines: [[`${metric('sozu_udp_config_generation')}{${INSTANCES}}`, '{{instance}}']],
  },
];

/** Two panels in a row, 12 of Grafana's 24 columns wide. */
const [WIDTH, HEIGHT] = [12, 8];

export function dashboardDocument(): string {
  return `${JSON.stringify(dashboard(), undefined, 2)}\n`;
}

/** Every query of the dashboard. */
export function dashboardQueries(): readonly string[] {
  return PANELS.flatMap(({ lines }) => lines.map(([expression]) => expression));
}

function dashboard(): unknown {
  const variable = (name: string, query: string): unknown => ({
    name,
    type: 'query',
    datasource: { type: 'prometheus', uid: '${datasource}' },
    query: { query, refId: name },
    refresh: 2,
    includeAll: true,
    multi: true,
    current: { text: 'All', value: '$__all' },
  });
  return {
    uid: 'sozu-udp',
    title: 'sozu-udp',
    tags: ['sozu-udp', 'udp'],
    schemaVersion: 39,
    refresh: '30s',
    time: { from: 'now-3h', to: 'now' },
    templating: {
      list: [
        { name: 'datasource', type: 'datasource', query: 'prometheus' },
        {
          ...Object(variable('job', `label_values(${metric('sozu_udp_build_info')}, job)`)),
          includeAll: false,
          multi: false,
          current: {},
        },
        variable('instance', `label_values(${metric('sozu_udp_build_info')}, instance)`),
        variable('listener', `label_values(${metric('sozu_udp_active_flows')}, listener)`),
      ],
    },
    panels: PANELS.map(panelAt),
  };
}

function panelAt({ title, unit, lines }: Panel, index: number): unknown {
  return {
    id: index + 1,
    title,
    type: 'timeseries',
    datasource: { type: 'prometheus', uid: '${datasource}' },
    gridPos: { x: (index % 2) * WIDTH, y: Math.floor(index / 2) * HEIGHT, w: WIDTH, h: HEIGHT },
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    targets: lines.map(([expr, legendFormat], line) => ({
      refId: String.fromCodePoint(65 + line),
      expr,
      legendFormat,
    })),
  };
}

function perSecond(name: string, by: string): string {
  return `sum by (${by}) (rate(${metric(name)}{${LISTENERS}}[$__rate_interval]))`;
}
