/**
 * What is legal and hurts in `[clusters.<id>.udp]`. Each key is judged by what applies in the end: a warning that the
 * cluster's preset makes moot is not given. Keys that do nothing are told only where somebody wrote them.
 */
import { formatIp, isLoopback, parseIp, sameIp, unmap } from '../../core/address.ts';
import { flowRules, type FlowRules } from './cluster-settings.ts';
import type { ClusterDraft, ListenerDraft } from './draft.ts';
import type { Environment } from './environment.ts';
import type { Path, Report } from './problem.ts';
import type { LimitsTable } from './schema-flows.ts';

/** Reports on the flow keys of one cluster; `listeners` are those that lead to it. */
export function warnOfFlowKeys(
  cluster: ClusterDraft,
  listeners: readonly ListenerDraft[],
  environment: Environment,
  report: Report,
): void {
  const rules = flowRules(cluster.table.udp);
  const at = [...cluster.path, 'udp'];
  warnOfProxyProtocol(cluster, rules, at, report);
  warnOfResponses(cluster, rules, listeners, report);
  warnOfRequests(cluster, rules, listeners, report);
  warnOfLostBackends(cluster, rules, at, report);
  warnOfSources(cluster, environment, at, report);
  const { limits } = cluster.table.udp;
  if (limits !== undefined) warnOfLimits(limits, [...at, 'limits'], report);
}

function warnOfProxyProtocol(
  { table: { udp } }: ClusterDraft,
  { proxyProtocolEveryDatagram }: FlowRules,
  udpPath: Path,
  report: Report,
): void {
  const at = [...udpPath, 'proxy_protocol_every_datagram'];
  if (udp.send_proxy_protocol && !proxyProtocolEveryDatagram) {
    const problem =
      'only the first datagram of a flow carries the PROXY header; the PROXY protocol text of ' +
      '2026-04-27 and every DNS server in Debian want it on each, and drop or misattribute the rest';
    report.warning(at, problem, 'write proxy_protocol_every_datagram = true');
  }
  if (!udp.send_proxy_protocol && udp.proxy_protocol_every_datagram === true) {
    report.warning(at, 'no effect without send_proxy_protocol', 'write send_proxy_protocol = true');
  }
}

function warnOfResponses(
  cluster: ClusterDraft,
  { responses, responsesPerRequest, exchange }: FlowRules,
  listeners: readonly ListenerDraft[],
  report: Report,
): void {
  const { path, table } = cluster;
  const isDns = portsOf(cluster, listeners).some((port) => port === 53 || port === 5353);
  if (responses !== 0 && !responsesPerRequest && isDns && exchange !== 'one-way') {
    const last = responses === 1 ? 'the first answer, the second' : `answer ${responses}, the next`;
    const problem = `a resolver asks for A and AAAA from one port: the flow ends with ${last} is lost`;
    const fix = 'write responses_per_request = true, or responses = 0';
    report.warning([...path, 'udp', 'responses'], problem, fix);
  }
  if (responses === 0 && table.udp.responses_per_request === true) {
    const problem = 'no effect: no flow ends with its replies';
    report.warning([...path, 'udp', 'responses_per_request'], problem, 'write responses = 1');
  }
}

function warnOfRequests(
  cluster: ClusterDraft,
  { responses, requestsLinger, exchange }: FlowRules,
  listeners: readonly ListenerDraft[],
  report: Report,
): void {
  const { udp } = cluster.table;
  const at = [...cluster.path, 'udp'];
  const isOneWay =
    exchange === 'one-way' || portsOf(cluster, listeners).some((port) => ONE_WAY_PORTS.has(port));
  if (udp.requests !== 0 && !requestsLinger && !isOneWay) {
    const problem = 'a flow ends with its last request, so the reply to that one is dropped';
    const fix = 'write requests_linger = true, or requests = 0';
    report.warning([...at, 'requests'], problem, fix);
  }
  if (udp.requests === 0 && udp.requests_linger === true) {
    const problem = 'no effect: no flow ends with its requests';
    report.warning([...at, 'requests_linger'], problem, 'write requests, or remove it');
  }
  const lingers = udp.requests !== 0 && requestsLinger;
  if (udp.late_reply_grace_ms !== 0 && responses === 0 && !lingers) {
    const problem = 'no effect: no flow ends with its replies';
    report.warning([...at, 'late_reply_grace_ms'], problem, 'write responses, or remove it');
  }
}

/** SNMP traps, syslog, NetFlow, IPFIX, sFlow, statsd: nobody waits for an answer. */
const ONE_WAY_PORTS: ReadonlySet<number> = new Set([162, 514, 2055, 4739, 6343, 8125]);

function portsOf({ table }: ClusterDraft, listeners: readonly ListenerDraft[]): readonly number[] {
  return [...listeners.map((listener) => listener.table), ...table.backends].map(
    ({ address }) => address.port,
  );
}

function warnOfLostBackends(
  { table: { udp } }: ClusterDraft,
  { onBackendDown }: FlowRules,
  at: Path,
  report: Report,
): void {
  const probes = udp.health !== undefined && udp.health.mode !== 'HEALTH_OFF';
  if (onBackendDown === 'pin' || probes || udp.passive_health) return;
  const problem = `"${onBackendDown}" never happens: nobody probes, and traffic is not judged`;
  const fix = 'add [udp.health], or write passive_health = true';
  report.warning([...at, 'on_backend_down'], problem, fix);
}

function warnOfSources(
  { table: { udp, backends } }: ClusterDraft,
  { localAddresses }: Environment,
  udpPath: Path,
  report: Report,
): void {
  const sources = udp.upstream_source;
  if (sources.length === 0) return;
  const at = [...udpPath, 'upstream_source'];
  for (const family of [4, 6] as const) {
    const backend = backends.find(({ address }) => unmap(address).family === family);
    if (backend === undefined || sources.some((source) => source.family === family)) continue;
    const problem = `no IPv${family} address for ${formatIp(unmap(backend.address))}: the kernel chooses there`;
    report.warning(at, problem, `add an IPv${family} address`);
  }
  const ours = localAddresses?.flatMap((text) => parseIp(text, 0) ?? []).map(unmap);
  for (const [index, source] of sources.entries()) {
    if (ours === undefined || isLoopback(source)) continue;
    if (ours.some((one) => sameIp(one, { ...source, scope: 0 }))) continue;
    const problem = `${formatIp(source)} is no address of this machine: no socket can be bound to it`;
    report.warning([...at, index], problem, 'write one that `ip address` shows');
  }
}

/** Datagrams a second under invented addresses that one core is easily sent; sketches should stand it (token-sketch.ts). */
const FLOOD = 10_000;

function warnOfLimits(limits: LimitsTable, at: Path, report: Report): void {
  const rates = [limits.new_flows_per_second, limits.datagrams_per_second].filter(
    (rate) => rate > 0,
  );
  const columns = [...at, 'sketch_columns'];
  const stands = Math.min(...rates) * (limits.sketch_columns / 2);
  if (stands < FLOOD) {
    const problem =
      `a flood of more than ${stands} datagrams a second under many addresses fills the sketch, and ` +
      'clients without a flow are refused with it';
    report.warning(columns, problem, `write sketch_columns = ${columnsFor(Math.min(...rates))}`);
  }
  if (limits.allow?.length === 0) {
    const problem = 'an empty list lets everybody in';
    report.warning([...at, 'allow'], problem, 'remove it, or name the blocks to let in');
  }
  if (limits.amplification_factor === 0 && limits.amplification_floor !== undefined) {
    const problem = 'no effect: amplification_factor = 0 grants any reply';
    report.warning([...at, 'amplification_floor'], problem, 'remove one of the two');
  }
}

/** The fewest columns at which a flood leaves good clients alone. A rate is 1 at least, so the bound is never met. */
function columnsFor(rate: number): number {
  return 2 ** Math.max(8, Math.ceil(Math.log2((2 * FLOOD) / rate)));
}
