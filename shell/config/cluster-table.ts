/**
 * From the core's settings of a cluster back to its table in a file, every key written out, so that a running state can be
 * saved and a part of it changed. Read again the table gives the same settings.
 */
import { formatIp } from '../../core/address.ts';
import { AMPLIFICATION_OFF } from '../../core/amplification.ts';
import { formatCidr } from '../../core/cidr.ts';
import type { ClusterKnobs } from '../../core/commands.ts';
import { NO_SOURCE_RATES } from '../../core/config.ts';
import type { HealthSettings } from '../../core/health/settings.ts';
import { PRESET_NAMES, presetValue, type PresetName } from '../../core/presets.ts';
import { sameValue } from '../../core/same-value.ts';
import type { Duration } from '../../core/time.ts';
import type { Table } from './draft.ts';

const TEXT = new TextDecoder('utf-8', { ignoreBOM: true });

/** Without `protocol`, `frontends` and `backends`; keys without a value are undefined. */
export function clusterTable(knobs: ClusterKnobs): Table {
  return {
    load_balancing: knobs.loadBalancing,
    load_metric: knobs.loadMetric,
    max_connections_per_ip: knobs.maxFlowsPerIp,
    max_connections_per_subnet: knobs.maxFlowsPerSubnet,
    udp: {
      preset: presetOf(knobs),
      affinity_key: knobs.affinityWithPort ? 'SOURCE_IP_PORT' : 'SOURCE_IP',
      responses: knobs.responses,
      responses_per_request: knobs.responsesPerRequest,
      requests: knobs.requests,
      requests_linger: knobs.requestsLinger,
      late_reply_grace_ms: knobs.lateReplyGrace / 1_000,
      forward_empty_datagrams: knobs.forwardEmptyDatagrams,
      send_proxy_protocol: knobs.sendProxyProtocol,
      proxy_protocol_every_datagram: knobs.proxyProtocolEveryDatagram,
      reject_client_header: knobs.rejectClientHeader,
      allow_backend_as_client: knobs.allowBackendAsClient,
      subnet_prefix_ipv4: knobs.subnetPrefixIpv4,
      subnet_prefix_ipv6: knobs.subnetPrefixIpv6,
      exchange: knobs.exchange,
      passive_health: knobs.passive ?? true,
      on_backend_down: knobs.onBackendDown,
      on_backend_removed: knobs.onBackendRemoved,
      upstream_source: knobs.upstreamSources.map(formatIp),
      health: knobs.health && healthTable(knobs.health),
      limits: limitsTable(knobs),
    },
  };
}

/** The idle times of a cluster are a preset's, and no key of a file; every other key is written beside it. */
function presetOf({ frontTimeout, backTimeout, exchange }: ClusterKnobs): PresetName | undefined {
  if (frontTimeout === undefined && backTimeout === undefined) return undefined;
  return PRESET_NAMES.find((name) => {
    return (
      presetValue(name, 'frontTimeout') === frontTimeout &&
      presetValue(name, 'backTimeout') === backTimeout &&
      (exchange !== undefined || presetValue(name, 'exchange') === undefined)
    );
  });
}

function healthTable(health: HealthSettings): Table {
  const { udpProbePayload: payload } = health;
  return {
    mode: health.mode,
    tcp_port: health.tcpPort,
    rise: health.rise,
    fall: health.fall,
    fail_open: health.failOpen,
    udp_probe_payload: payload === undefined ? undefined : TEXT.decode(payload),
    udp_probe_expect_reply: health.expectReply,
    probe_interval_seconds: secondsOf(health.probeInterval),
    probe_timeout_seconds: secondsOf(health.probeTimeout),
  };
}

/** A burst stands beside a rate only. Undefined where nothing is limited. */
function limitsTable({ rates, amplification }: ClusterKnobs): Table | undefined {
  const isBounded = !sameValue(amplification, AMPLIFICATION_OFF);
  if (sameValue(rates, NO_SOURCE_RATES) && !isBounded) return undefined;
  const { newFlowsPerSecond, datagramsPerSecond } = rates;
  return {
    new_flows_per_second: newFlowsPerSecond,
    new_flows_burst: newFlowsPerSecond === 0 ? undefined : rates.newFlowsBurst,
    datagrams_per_second: datagramsPerSecond,
    datagrams_burst: datagramsPerSecond === 0 ? undefined : rates.datagramsBurst,
    sketch_columns: rates.columns,
    allow: rates.allow.map(formatCidr),
    deny: rates.deny.map(formatCidr),
    amplification_factor: isBounded ? amplification.factor : undefined,
    amplification_floor: isBounded ? amplification.floor : undefined,
  };
}

/** Times of a file are whole seconds. */
function secondsOf(duration: Duration): number {
  return duration / 1_000_000;
}
