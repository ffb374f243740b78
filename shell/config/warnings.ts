/**
 * What is legal and hurts. Each warning names the key, what will happen, and what to write instead. The sources are the
 * standards and what users of UDP load balancers reported; doc/CONFIGURE.md tells the longer story.
 */
import {
  formatAddress,
  isMapped,
  isUnanswerable,
  isUnspecified,
  parseIp,
  isLoopback,
  unmap,
  type Address,
} from '../../core/address.ts';
import { effectiveMaxFlows, LIMITS } from '../../core/config.ts';
import { DATAGRAM_BYTES_MAX } from '../../core/contract.ts';
import { presetValue, type PresetName } from '../../core/presets.ts';
import { seconds } from '../../core/time.ts';
import type { ClusterDraft, Draft, ListenerDraft } from './draft.ts';
import type { Environment } from './environment.ts';
import { warnOfFlowKeys } from './flow-warnings.ts';
import type { Path, Report } from './problem.ts';
import type { GlobalTable } from './schema.ts';
import type { HealthTable } from './schema-health.ts';
import { judgeWorkers } from './workers.ts';

/** Reports everything in the draft that is legal and hurts, and more flows than a process can have. */
export function reportWarnings(
  draft: Draft,
  global: GlobalTable,
  environment: Environment,
  report: Report,
): void {
  warnOfGlobals(global, report);
  judgeWorkers(draft, global, report);
  const clusters = new Map(draft.clusters.map((cluster) => [cluster.id, cluster]));
  for (const listener of draft.listeners) {
    const udp = clusters.get(listener.cluster ?? '')?.table.udp;
    warnOfTimeouts(listener, udp?.preset, report);
    warnOfSizes(listener, global, report);
    warnOfFlows(listener, udp?.upstream_source.length ?? 0, global, environment, report);
    warnOfAddress(listener, global, environment, report);
  }
  judgeFlowsTogether(draft, global, environment, report);
  for (const cluster of draft.clusters) {
    const listeners = draft.listeners.filter((listener) => listener.cluster === cluster.id);
    warnOfFlowKeys(cluster, listeners, environment, report);
    warnOfBackends(cluster, report);
    warnOfBalancing(cluster, report);
    warnOfHealth(cluster, report);
  }
}

function warnOfGlobals(global: GlobalTable, report: Report): void {
  if (!global.activate_listeners) {
    const fix = 'remove the listeners that should not run';
    report.warning(
      ['activate_listeners'],
      'every UDP listener is bound at start all the same',
      fix,
    );
  }
}

/** RFC 4787 REQ-5: a mapping lives two minutes or longer, but for well-known ports that ask and answer. */
const IDLE_SECONDS_MIN = 120;

/** Ports of protocols whose exchanges end in seconds, or that send one way and expect no answer. */
const SHORT_EXCHANGE_PORTS: ReadonlySet<number> = new Set([
  7, // echo
  53, // DNS
  67, // DHCP
  68, // DHCP
  69, // TFTP
  88, // Kerberos
  111, // portmapper
  123, // NTP
  137, // NetBIOS names
  161, // SNMP
  162, // SNMP traps
  319, // PTP
  320, // PTP
  389, // CLDAP
  464, // Kerberos passwords
  514, // syslog
  547, // DHCPv6
  623, // IPMI
  1645, // RADIUS, old
  1646, // RADIUS accounting, old
  1812, // RADIUS
  1813, // RADIUS accounting
  2055, // NetFlow
  3799, // RADIUS, dynamic authorization
  4739, // IPFIX
  5353, // DNS beside a resolver, mDNS
  6343, // sFlow
  8125, // statsd
  11211, // memcached
]);

function warnOfTimeouts(
  { path, table }: ListenerDraft,
  preset: PresetName | undefined,
  report: Report,
): void {
  for (const key of ['front_timeout', 'back_timeout'] as const) {
    if (table[key] !== 0) continue;
    const problem = 'a flow is idle at once: it ends before its reply can come';
    report.warning([...path, key], problem, `write ${key} = ${LIMITS.frontTimeoutSeconds} or more`);
  }
  if (isShortExchange(table.address.port, preset)) return;
  // What a preset grants to other protocols is enough.
  const unwritten = preset === undefined ? LIMITS.frontTimeoutSeconds : IDLE_SECONDS_MIN;
  const front = table.front_timeout ?? unwritten;
  const back = table.back_timeout ?? unwritten;
  const least = Math.min(front, back);
  if (least === 0 || least >= IDLE_SECONDS_MIN) return;
  const shorter = front < back ? 'front_timeout' : 'back_timeout';
  const problem = `${least} s is below the ${IDLE_SECONDS_MIN} s of RFC 4787 for port ${table.address.port}`;
  const both = Math.max(front, back) < IDLE_SECONDS_MIN;
  const raised = (both ? ['front_timeout', 'back_timeout'] : [shorter])
    .map((key) => `${key} = ${IDLE_SECONDS_MIN}`)
    .join(' and ');
  const fix = `write ${raised}, unless clients never pause that long`;
  report.warning([...path, shorter], problem, fix);
}

/** By the preset, which knows the protocol; without one by the port. */
function isShortExchange(port: number, preset: PresetName | undefined): boolean {
  const granted = presetValue(preset, 'frontTimeout');
  return granted === undefined
    ? SHORT_EXCHANGE_PORTS.has(port)
    : granted < seconds(IDLE_SECONDS_MIN);
}

function warnOfSizes({ path, table }: ListenerDraft, global: GlobalTable, report: Report): void {
  const size = table.max_rx_datagram_size;
  const at = [...path, 'max_rx_datagram_size'];
  if (size === 0) {
    report.warning(at, 'every datagram is dropped as too long', 'write 1500 or more');
  } else if (global.buffer_size !== 0 && size > global.buffer_size) {
    const problem = `${size} is more than buffer_size and is clamped to ${global.buffer_size}`;
    report.warning(at, problem, 'lower it, or raise buffer_size');
  } else if (size > DATAGRAM_BYTES_MAX) {
    const problem = `no datagram is longer than ${DATAGRAM_BYTES_MAX} bytes`;
    report.warning(at, problem, `write ${DATAGRAM_BYTES_MAX} or less`);
  }
}

function warnOfFlows(
  { path, table }: ListenerDraft,
  sources: number,
  global: GlobalTable,
  { descriptorLimit, ephemeralPorts }: Environment,
  report: Report,
): void {
  const at = [...path, 'max_flows'];
  const flows = effectiveMaxFlows(table.max_flows, descriptorLimit, global.max_connections);
  if (table.max_flows > LIMITS.flowsCeiling) {
    const problem = `clamped to ${LIMITS.flowsCeiling}, what one table holds`;
    report.warning(at, problem, `write ${LIMITS.flowsCeiling} or less`);
  }
  if (descriptorLimit !== undefined && table.max_flows > descriptorLimit * 0.7) {
    const problem = `${table.max_flows} flows are more than 70 % of the ${descriptorLimit} descriptors of a process`;
    report.warning(at, problem, 'raise the descriptor limit (ulimit -n), or write 0 for automatic');
  }
  const ports = ephemeralPorts === undefined ? Infinity : ephemeralPorts * Math.max(1, sources);
  if (flows > ports) {
    const problem = `${flows} flows are more than the ${ports} ephemeral ports of this machine`;
    const fix = 'lower it, widen net.ipv4.ip_local_port_range, or name more in upstream_source';
    report.warning(at, problem, fix);
  }
}

/**
 * Each listener keeps to its share; together they may exceed what the process has (spec §6.6). Slots are reserved at start,
 * descriptors are not: more slots than one process should have are an error.
 */
function judgeFlowsTogether(
  { listeners }: Draft,
  global: GlobalTable,
  { descriptorLimit }: Environment,
  report: Report,
): void {
  const flows = listeners.map(({ table }) =>
    effectiveMaxFlows(table.max_flows, descriptorLimit, global.max_connections),
  );
  const sum = flows.reduce((total, one) => total + one, 0);
  if (sum > LIMITS.flowsCeiling) {
    const problem = `${sum} flows over all listeners are more than the ${LIMITS.flowsCeiling} of a process`;
    const fix = `write max_flows = ${Math.floor(LIMITS.flowsCeiling / listeners.length)} or less in each`;
    report.error(['listeners'], problem, fix);
    return;
  }
  if (listeners.length < 2 || descriptorLimit === undefined) return;
  if (sum <= descriptorLimit || flows.some((one) => one > descriptorLimit)) return;
  const problem = `${sum} flows over all listeners are more than the ${descriptorLimit} descriptors of a process`;
  report.warning(['listeners'], problem, 'give each listener a max_flows of its own');
}

function warnOfAddress(
  { path, table, cluster }: ListenerDraft,
  { io }: GlobalTable,
  environment: Environment,
  report: Report,
): void {
  const name = formatAddress(unmap(table.address));
  if (cluster === undefined) {
    const problem = `no cluster's frontend names ${name}: every datagram is dropped`;
    report.warning([...path, 'address'], problem, 'add a frontend, or remove the listener');
  }
  if (isMapped(table.address)) {
    const problem = `the same address as ${name}, which is how it is bound`;
    report.warning([...path, 'address'], problem, `write ${name}`);
  }
  const bound = unmap(table.address);
  if (io !== 'mmsg' && isUnspecified(bound) && mayBeMultiHomed(bound, environment)) {
    const problem = 'on a machine with several addresses, replies may leave from another one';
    const fix = 'declare one listener for each address that clients use, or write io = "mmsg"';
    report.warning([...path, 'address'], problem, fix);
  }
}

/** False only when this machine is known to have one address besides loopback in each family concerned. */
function mayBeMultiHomed(bound: Address, { localAddresses }: Environment): boolean {
  if (localAddresses === undefined) return true;
  const others = localAddresses
    .flatMap((text) => parseIp(text, 0) ?? [])
    .filter((address) => !isLoopback(address));
  const count = (family: 4 | 6): number => others.filter((one) => one.family === family).length;
  return count(4) > 1 || (bound.family === 6 && count(6) > 1);
}

function warnOfBackends({ id, path, table }: ClusterDraft, report: Report): void {
  const at = [...path, 'backends'];
  if (table.backends.length === 0) {
    report.warning(at, 'no backend: every datagram is dropped (NoBackend)', 'add a backend');
  } else if (table.backends.every(({ backup }) => backup)) {
    const problem = 'every backend is a backup, so none is';
    report.warning(at, problem, 'write backup = false for those that should serve');
  }
  const addresses = new Set<string>();
  const ids = new Set<string>();
  for (const [index, backend] of table.backends.entries()) {
    const name = formatAddress(unmap(backend.address));
    if (addresses.has(name)) {
      const problem = `${name} stands twice in cluster "${id}": HRW and MAGLEV starve one of the two`;
      report.warning(
        [...at, index, 'address'],
        problem,
        'remove one, and use weight for its share',
      );
    }
    if (backend.backend_id !== undefined && ids.has(backend.backend_id)) {
      const problem = `"${backend.backend_id}" names two backends, so it names neither`;
      report.warning([...at, index, 'backend_id'], problem, 'rename one');
    }
    addresses.add(name);
    ids.add(backend.backend_id ?? '');
    warnOfBackendAddress([...at, index, 'address'], backend.address, report);
  }
}

function warnOfBackendAddress(path: Path, address: Address, report: Report): void {
  const name = formatAddress(unmap(address));
  if (isMapped(address)) {
    const problem = `hashed as ${name} here, as sixteen bytes by Sōzu: placement differs`;
    report.warning(path, problem, `write ${name}`);
  }
  if (isUnspecified(unmap(address))) {
    report.warning(path, 'the kernel takes this for loopback', 'write 127.0.0.1 or [::1]');
  } else if (isUnanswerable(unmap(address))) {
    const problem = 'multicast or broadcast: replies come from other addresses and are not seen';
    report.warning(path, problem, 'name one server');
  }
}

/** From here on the scores of all backends are a noticeable part of what a new flow costs (doc/BENCHMARKS.md). */
const HRW_BACKENDS_MAX = 1_000;

function warnOfBalancing({ path, table }: ClusterDraft, report: Report): void {
  if (table.load_balancing === 'HRW' && table.backends.length > HRW_BACKENDS_MAX) {
    const problem = `HRW scores all ${table.backends.length} backends for each new flow, which costs time; MAGLEV does not`;
    report.warning([...path, 'load_balancing'], problem, 'write load_balancing = "MAGLEV"');
  }
  for (const [index, { weight }] of table.backends.entries()) {
    if (weight !== 0) continue;
    const problem = 'weight 0 counts as 1 under HRW and MAGLEV, and as never under RANDOM';
    const fix = 'remove the backend to stop its traffic, or write 1 or more';
    report.warning([...path, 'backends', index, 'weight'], problem, fix);
  }
  const compares =
    table.load_balancing === 'LEAST_LOADED' || table.load_balancing === 'POWER_OF_TWO';
  const probes = table.udp.health !== undefined && table.udp.health.mode !== 'HEALTH_OFF';
  if (compares && table.load_metric === 'CONNECTION_TIME' && !probes) {
    const problem =
      'without health checks nothing measures a connection time: live flows are compared';
    report.warning([...path, 'load_metric'], problem, 'write load_metric = "CONNECTIONS"');
  }
}

function warnOfHealth({ path, table }: ClusterDraft, report: Report): void {
  const health = table.udp.health;
  if (health === undefined) return;
  const at = [...path, 'udp', 'health'];
  for (const key of ZERO_MEANS_ONE) {
    if (health[key] === 0) report.warning([...at, key], '0 counts as 1', `write ${key} = 1`);
  }
  if (health.mode === 'UDP_PROBE' && !health.udp_probe_expect_reply) {
    const problem = 'silence says nothing: a dead host, or a firewall that drops, counts as up';
    const fix = 'send a payload that is answered, and remove the key';
    report.warning([...at, 'udp_probe_expect_reply'], problem, fix);
  }
  if (health.mode === 'UDP_PROBE' && health.tcp_port !== undefined) {
    const problem = 'no effect: a UDP probe goes to the port of the backend';
    report.warning([...at, 'tcp_port'], problem, 'remove it, or write mode = "TCP_PROBE"');
  }
  if (health.mode === 'TCP_PROBE' && health.udp_probe_payload !== undefined) {
    const problem = 'no effect: a TCP probe sends nothing';
    report.warning([...at, 'udp_probe_payload'], problem, 'write mode = "UDP_PROBE"');
  }
}

const ZERO_MEANS_ONE = [
  'rise',
  'fall',
  'probe_interval_seconds',
  'probe_timeout_seconds',
] as const satisfies readonly (keyof HealthTable)[];
