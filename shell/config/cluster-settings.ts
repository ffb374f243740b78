/**
 * What the table of a cluster means: keys that are written, then the preset's, then the defaults, in the core's units.
 */
import { AMPLIFICATION_DEFAULTS, type AmplificationLimits } from '../../core/amplification.ts';
import { formatAddress, unmap } from '../../core/address.ts';
import {
  CLUSTER_DEFAULTS,
  NO_SOURCE_RATES,
  type ClusterSettings,
  type SourceRates,
} from '../../core/config.ts';
import { NO_CLUSTER, type Backend } from '../../core/contract.ts';
import { healthSettings, type HealthSettings } from '../../core/health/settings.ts';
import { presetValue, type PresetKey, type PresetSettings } from '../../core/presets.ts';
import { milliseconds, seconds } from '../../core/time.ts';
import type { ClusterDraft } from './draft.ts';
import type { BackendTable } from './schema.ts';
import type { LimitsTable, UdpTable } from './schema-flows.ts';
import { utf8, type HealthTable } from './schema-health.ts';

/** The checked table as the core's settings. */
export function clusterSettings({
  id,
  table,
}: Pick<ClusterDraft, 'id' | 'table'>): ClusterSettings {
  const { udp } = table;
  return {
    ...flowRules(udp),
    cluster: id,
    affinityWithPort: udp.affinity_key === 'SOURCE_IP_PORT',
    requests: udp.requests,
    lateReplyGrace: milliseconds(udp.late_reply_grace_ms),
    sendProxyProtocol: udp.send_proxy_protocol,
    maxFlowsPerIp: table.max_connections_per_ip,
    maxFlowsPerSubnet: table.max_connections_per_subnet,
    subnetPrefixIpv4: udp.subnet_prefix_ipv4,
    subnetPrefixIpv6: udp.subnet_prefix_ipv6,
    rejectClientHeader: udp.reject_client_header,
    loadBalancing: table.load_balancing,
    loadMetric: table.load_metric,
    backends: table.backends.map((backend, index) => backendOf(id, backend, index)),
    passive: udp.passive_health,
    health: udp.health === undefined ? undefined : toHealth(udp.health),
    onBackendRemoved: udp.on_backend_removed,
    upstreamSources: udp.upstream_source,
    rates: sourceRates(udp.limits),
    amplification: amplificationLimits(udp.limits),
  };
}

/** A backend of the cluster `id`; its place in the list goes into a name that nobody wrote. */
export function backendOf(id: string, table: BackendTable, index: number): Backend {
  const address = unmap(table.address);
  const name = table.backend_id ?? `${id}-${index}-${formatAddress(address)}`;
  return { id: name, address, weight: table.weight, backup: table.backup };
}

/** The keys that a preset may set. */
export type FlowRules = Pick<ClusterSettings, PresetKey>;

/** What is written, else what the preset says, else the default; without a preset the idle times are the listener's. */
export function flowRules(udp: UdpTable): FlowRules {
  const said = <Key extends PresetKey>(
    key: Key,
    written: PresetSettings[Key] | undefined,
  ): PresetSettings[Key] | undefined => written ?? presetValue(udp.preset, key);
  return {
    frontTimeout: said('frontTimeout', undefined),
    backTimeout: said('backTimeout', undefined),
    exchange: said('exchange', udp.exchange),
    responses: said('responses', udp.responses) ?? NO_CLUSTER.responses,
    responsesPerRequest:
      said('responsesPerRequest', udp.responses_per_request) ??
      CLUSTER_DEFAULTS.responsesPerRequest,
    requestsLinger: said('requestsLinger', udp.requests_linger) ?? CLUSTER_DEFAULTS.requestsLinger,
    forwardEmptyDatagrams:
      said('forwardEmptyDatagrams', udp.forward_empty_datagrams) ??
      CLUSTER_DEFAULTS.forwardEmptyDatagrams,
    proxyProtocolEveryDatagram:
      said('proxyProtocolEveryDatagram', udp.proxy_protocol_every_datagram) ??
      NO_CLUSTER.proxyProtocolEveryDatagram,
    onBackendDown: said('onBackendDown', udp.on_backend_down) ?? CLUSTER_DEFAULTS.onBackendDown,
    allowBackendAsClient: said('allowBackendAsClient', udp.allow_backend_as_client) ?? false,
  };
}

function sourceRates(limits: LimitsTable | undefined): SourceRates {
  if (limits === undefined) return NO_SOURCE_RATES;
  return {
    newFlowsPerSecond: limits.new_flows_per_second,
    newFlowsBurst: limits.new_flows_burst ?? limits.new_flows_per_second,
    datagramsPerSecond: limits.datagrams_per_second,
    datagramsBurst: limits.datagrams_burst ?? limits.datagrams_per_second,
    columns: limits.sketch_columns,
    allow: limits.allow ?? [],
    deny: limits.deny ?? [],
  };
}

/** Off unless one of the two is written; the other then has the value that the core recommends. */
function amplificationLimits(limits: LimitsTable | undefined): AmplificationLimits {
  const { amplification_factor: factor, amplification_floor: floor } = limits ?? {};
  if (factor === undefined && floor === undefined) return CLUSTER_DEFAULTS.amplification;
  return {
    factor: factor ?? AMPLIFICATION_DEFAULTS.factor,
    floor: floor ?? AMPLIFICATION_DEFAULTS.floor,
  };
}

function toHealth(table: HealthTable): HealthSettings {
  const { udp_probe_payload: payload } = table;
  return healthSettings({
    mode: table.mode,
    tcpPort: table.tcp_port,
    rise: table.rise,
    fall: table.fall,
    failOpen: table.fail_open,
    udpProbePayload: payload === undefined ? undefined : utf8(payload),
    expectReply: table.udp_probe_expect_reply,
    probeInterval: seconds(table.probe_interval_seconds),
    probeTimeout: seconds(table.probe_timeout_seconds),
  });
}
