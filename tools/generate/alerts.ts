/** The alert rules for Prometheus: data here, `examples/alerts.yml` and a table of doc/METRICS.md from it. */
import { familyNamed } from '../../shell/metrics/catalogue.ts';

export interface Alert {
  readonly name: string;
  readonly expression: string;
  /** How long it must hold, in Prometheus' words. */
  readonly holds: string;
  readonly severity: 'critical' | 'warning';
  readonly summary: string;
  /** What to do: a sentence. */
  readonly action: string;
}

const dropped = metric('sozu_udp_datagrams_dropped_total');
const received = metric('sozu_udp_datagrams_received_client_total');

export const ALERTS: readonly Alert[] = [
  {
    name: 'SozuUdpNotReady',
    expression: `${metric('sozu_udp_ready')} == 0`,
    holds: '1m',
    severity: 'critical',
    summary: '{{ $labels.instance }} is not ready for traffic',
    action:
      'Ask /ready, which says why: it drains, a listener is not bound, or no backend is left.',
  },
  {
    name: 'SozuUdpListenerNotBound',
    expression: `${metric('sozu_udp_listeners_failed')} > 0`,
    holds: '1m',
    severity: 'critical',
    summary: '{{ $value }} listeners of {{ $labels.instance }} are not bound',
    action: 'Look for "cannot listen" in the log: the address is taken, or not there.',
  },
  {
    name: 'SozuUdpNoBackend',
    expression: `${metric('sozu_udp_cluster_available_backends')} == 0 and ${metric('sozu_udp_cluster_total_backends')} > 0`,
    holds: '1m',
    severity: 'critical',
    summary: 'no backend of {{ $labels.cluster }} is available',
    action: 'Look at the backends; with fail_open every one is tried meanwhile.',
  },
  {
    name: 'SozuUdpBackendsDown',
    expression: `sum by (instance, cluster) (${metric('sozu_udp_backends')}{state="down"}) > 0`,
    holds: '5m',
    severity: 'warning',
    summary: '{{ $value }} backends of {{ $labels.cluster }} are down',
    action: 'The log names them and the evidence against them ("backend down", "backend ejected").',
  },
  {
    name: 'SozuUdpDropping',
    expression:
      `sum by (instance, listener) (rate(${dropped}{reason!~"denied|new_flow_rate|datagram_rate|amplification"}[5m]))` +
      ` > 0.01 * sum by (instance, listener) (rate(${received}[5m]))`,
    holds: '5m',
    severity: 'warning',
    summary: 'more than 1 % of what comes to {{ $labels.listener }} is dropped',
    action: 'Look at the drops by reason: doc/METRICS.md says what each means.',
  },
  {
    name: 'SozuUdpSheddingFlows',
    expression: `sum by (instance, listener) (rate(${metric('sozu_udp_flows_shed_total')}[5m])) > 0`,
    holds: '2m',
    severity: 'warning',
    summary: '{{ $labels.listener }} refuses new flows',
    action: 'Raise max_flows and the descriptor limit, shorten idle times, or add instances.',
  },
  {
    name: 'SozuUdpKernelDrops',
    expression: `rate(${metric('sozu_udp_kernel_dropped_datagrams_total')}[5m]) > 0`,
    holds: '2m',
    severity: 'warning',
    summary: 'the kernel drops datagrams to {{ $labels.listener }} before the process sees them',
    action:
      'Raise rcvbuf and net.core.rmem_max; if the event loop lags, the process is overloaded.',
  },
  {
    name: 'SozuUdpDescriptorsShort',
    expression: `${metric('process_open_fds')} > 0.9 * ${metric('process_max_fds')}`,
    holds: '2m',
    severity: 'warning',
    summary: '{{ $labels.instance }} has used nine in ten of its descriptors',
    action: 'Raise LimitNOFILE: each live flow takes one.',
  },
  {
    name: 'SozuUdpListenerRestarted',
    expression: `increase(${metric('sozu_udp_listener_restarts_total')}[1h]) > 0`,
    holds: '0m',
    severity: 'warning',
    summary: '{{ $labels.listener }} lost its flows to a bug of the proxy',
    action: 'Report it with the trace that the log names.',
  },
  {
    name: 'SozuUdpReloadRefused',
    expression: `${metric('sozu_udp_config_last_reload_successful')} == 0`,
    holds: '0m',
    severity: 'warning',
    summary: '{{ $labels.instance }} refused its configuration and runs on with the old one',
    action: 'Run sozu-udp check on the file: it says what is wrong, where, and how to mend it.',
  },
  {
    name: 'SozuUdpEventLoopLags',
    expression: `${metric('nodejs_eventloop_lag_p99_seconds')} > 0.05`,
    holds: '5m',
    severity: 'warning',
    summary: 'turns of {{ $labels.instance }} begin 50 ms late',
    action:
      'The main thread has no time left: look at its CPU share, and add instances or, on node:dgram, workers.',
  },
];

/** As prettier would leave it. */
export function alertsDocument(): string {
  const rules = ALERTS.map(
    ({ name, expression, holds, severity, summary, action }) => `      - alert: ${name}
        expr: >-
          ${expression}
        for: ${holds}
        labels:
          severity: ${severity}
        annotations:
          summary: '${summary}'
          description: '${action}'
`,
  );
  return `# Alert rules for Prometheus, generated: edit tools/generate/alerts.ts and run npm run generate.
groups:
  - name: sozu-udp
    rules:
${rules.join('')}`;
}

/** A metric that is there: the name of one that is not throws. */
export function metric(name: string): string {
  return familyNamed(name).name;
}
