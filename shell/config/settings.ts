/**
 * Tables of listeners and clusters outside a file: `settings` of a control command, with the keys, bounds and defaults of the
 * file.
 */
import { ipv4, type Address } from '../../core/address.ts';
import type { ClusterKnobs, ListenerPatch } from '../../core/commands.ts';
import type { ListenerConfig } from '../../core/config.ts';
import { PRESETS } from '../../core/presets.ts';
import { knobsOf } from '../../core/reconcile.ts';
import { clusterSettings } from './cluster-settings.ts';
import { clusterTable } from './cluster-table.ts';
import { isTable, type Table } from './draft.ts';
import { reportIssues, suggestKey } from './issues.ts';
import { listenerConfig, type ListenerBounds } from './listener-config.ts';
import type { Report } from './problem.ts';
import { CLUSTER, LISTENER } from './schema.ts';
import { FOREIGN_CLUSTER_KEYS, FOREIGN_LISTENER_KEYS } from './sozu-keys.ts';

/** Keys that stand in the tables of a file, and beside the settings in a command. */
const LISTENER_NAMES = ['protocol', 'address'];
const CLUSTER_NAMES = ['protocol', 'frontends', 'backends'];

/** Reports what is wrong with the settings of a command that has such. */
export function checkSettings(command: string, settings: unknown, report: Report): void {
  if (!isTable(settings)) return;
  if (command === 'cluster add') {
    refuseKeys(settings, [...CLUSTER_NAMES, ...FOREIGN_CLUSTER_KEYS], report);
    const result = CLUSTER.safeParse(asCluster(settings), { reportInput: true });
    if (!result.success) reportIssues(report, ['settings'], result.error.issues);
  } else {
    refuseKeys(settings, [...LISTENER_NAMES, ...FOREIGN_LISTENER_KEYS], report);
    const result = LISTENER.safeParse(asListener(settings), { reportInput: true });
    if (!result.success) reportIssues(report, ['settings'], result.error.issues);
  }
}

/** The listener that checked settings make. */
export function listenerOf(
  address: Address,
  settings: Table,
  bounds: ListenerBounds,
  ipv6Only: boolean,
): ListenerConfig {
  const table = { ...LISTENER.parse(asListener(settings)), address };
  return listenerConfig(table, bounds, { ipv6Only, cluster: undefined });
}

/** What checked settings change of a listener: nothing but what they name. */
export function listenerPatch(settings: Table, bounds: ListenerBounds): ListenerPatch {
  const whole = listenerOf(ipv4(0, 1), settings, bounds, false);
  const named = (key: string): boolean => settings[key] !== undefined;
  return {
    ...(named('front_timeout') && { frontTimeout: whole.frontTimeout }),
    ...(named('back_timeout') && { backTimeout: whole.backTimeout }),
    ...(named('max_rx_datagram_size') && { maxRxDatagramSize: whole.maxRxDatagramSize }),
    ...(named('max_flows') && { maxFlows: whole.maxFlows }),
    ...(named('rcvbuf') && { receiveBuffer: whole.receiveBuffer }),
    ...(named('sndbuf') && { sendBuffer: whole.sendBuffer }),
    ...(named('bind_retry_seconds') && { bindRetry: whole.bindRetry }),
  };
}

/**
 * The cluster that checked settings make of `known`, or from the defaults where there is none: what they do not name stays. A
 * preset replaces what it speaks of.
 */
export function clusterOf(
  id: string,
  settings: Table,
  known: ClusterKnobs | undefined,
): ClusterKnobs {
  const before = known === undefined ? {} : clusterTable(known);
  const table = CLUSTER.parse(asCluster(merge(withoutPreset(before, settings), settings)));
  return knobsOf(clusterSettings({ id, table }));
}

function asListener(settings: Table): Table {
  return { ...settings, protocol: 'udp', address: '0.0.0.0:1' };
}

function asCluster(settings: Table): Table {
  return { ...settings, protocol: 'tcp', frontends: [] };
}

function refuseKeys(settings: Table, keys: readonly string[], report: Report): void {
  for (const key of keys) {
    if (!Object.hasOwn(settings, key)) continue;
    report.error(['settings', key], 'no setting of a command', suggestKey(key));
  }
}

/** What stands only in `over` or only in `under` is taken from there; tables are merged, and else `over` wins. */
function merge(under: Table, over: Table): Table {
  const merged: Record<string, unknown> = { ...under };
  for (const [key, value] of Object.entries(over)) {
    const old = merged[key];
    merged[key] = isTable(old) && isTable(value) ? merge(old, value) : value;
  }
  return merged;
}

/** The keys of a file that say what a preset may say. */
const PRESET_KEYS = {
  exchange: 'exchange',
  responses: 'responses',
  responses_per_request: 'responsesPerRequest',
  requests_linger: 'requestsLinger',
  forward_empty_datagrams: 'forwardEmptyDatagrams',
  proxy_protocol_every_datagram: 'proxyProtocolEveryDatagram',
  on_backend_down: 'onBackendDown',
  allow_backend_as_client: 'allowBackendAsClient',
} as const;

/** `before` as it is, unless `settings` have a preset: then without what that speaks of. */
function withoutPreset(before: Table, settings: Table): Table {
  const [old, udp] = [before['udp'], settings['udp']];
  if (!isTable(old) || !isTable(udp) || typeof udp['preset'] !== 'string') return before;
  const preset = Object.entries(PRESETS).find(([name]) => name === udp['preset'])?.[1] ?? {};
  const kept = Object.entries(old).filter(([key]) => {
    return !Object.entries(PRESET_KEYS).some(([word, name]) => word === key && name in preset);
  });
  return { ...before, udp: Object.fromEntries(kept) };
}
