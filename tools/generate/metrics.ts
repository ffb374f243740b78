/**
 * Writes the tables of doc/METRICS.md: what Prometheus sees, what statsd is told, what the alerts mean. The prose stays by hand
 * in that document, between pairs of markers such as `<!-- metrics -->` and `<!-- end -->`.
 */
import { CATALOGUE, CLUSTER_CATALOGUE } from '../../core/index.ts';
import { alignTable } from '../../shell/config/markdown-table.ts';
import { FAMILIES } from '../../shell/metrics/catalogue.ts';
import { ALERTS } from './alerts.ts';

/** The document with its tables as the code has them now. Throws on a missing marker. */
export function metricsDocument(current: string): string {
  return [...tables()].reduce((document, [name, body]) => {
    const part = new RegExp(`<!-- ${name} -->[^]*?<!-- end -->`);
    if (!part.test(document)) throw new Error(`missing marker: ${name}`);
    return document.replace(part, () => `<!-- ${name} -->\n\n${body}\n\n<!-- end -->`);
  }, current);
}

function tables(): ReadonlyMap<string, string> {
  return new Map([
    ['metrics', families()],
    ['reasons', reasons()],
    ['statsd', statsd()],
    ['alerts', alerts()],
  ]);
}

function families(): string {
  const rows = FAMILIES.map(({ name, kind, labels, help }) => {
    return [`\`${name}\``, kind, labels.map((label) => `\`${label}\``).join(' '), help];
  });
  return alignTable([['metric', 'kind', 'labels', 'meaning'], ...rows]);
}

const DROPPED = 'udp.datagrams.dropped.';

function reasons(): string {
  const rows = Object.values(CATALOGUE)
    .filter(({ name }) => name.startsWith(DROPPED))
    .map(({ name, help }) => [`\`${name.slice(DROPPED.length)}\``, help]);
  return alignTable([['reason', 'datagrams'], ...rows]);
}

function statsd(): string {
  const process = Object.values(CATALOGUE).map(({ name, unit, origin, help }) => {
    return [`\`${name}\``, 'counter', whose(origin), `${unit} ${help}`];
  });
  const derived = [
    ['`udp.datagrams.dropped`', 'counter', 'Sōzu', 'datagrams dropped, for all reasons together'],
    ['`udp.active_flows`', 'gauge', 'Sōzu', 'live flows'],
  ];
  const clusters = Object.values(CLUSTER_CATALOGUE).map(({ name, kind, unit, origin, help }) => {
    return [`\`${name}\``, kind, whose(origin), `${unit} ${help}, by cluster`];
  });
  const header = ['name', 'kind', 'whose', 'what is counted'];
  return alignTable([header, ...process, ...derived, ...clusters]);
}

function whose(origin: 'sozu' | 'ours'): string {
  return origin === 'sozu' ? 'Sōzu' : 'ours';
}

function alerts(): string {
  const rows = ALERTS.map(({ name, severity, holds, action }) => {
    return [`\`${name}\``, severity, holds, action];
  });
  return alignTable([['alert', 'severity', 'after', 'what to do'], ...rows]);
}
