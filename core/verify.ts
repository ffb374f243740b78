/**
 * Whole-state checks of a flow machine: invariants I1 to I13 of spec §2.14 as far as one state can show them (I9 and I10 are
 * asserted where they happen, I11 and I12 by the shadow model). Slow on purpose: it recounts everything.
 */
import { formatAddress, formatIp, type Address } from './address.ts';
import { flowId } from './brand.ts';
import type { ClusterConfig } from './contract.ts';
import { teardownReason } from './flow.ts';
import type { UdpManager } from './manager.ts';
import type { Instant } from './time.ts';

/** Every invariant this state breaks, each as a sentence that begins with its number; empty when all hold. */
export function brokenInvariants(manager: UdpManager): string[] {
  const broken: string[] = [];
  const live = liveSlots(manager);
  if (live.length !== manager.flowCount) {
    broken.push(`I1: ${live.length} live slots, but a count of ${manager.flowCount}`);
  }
  checkKeys(manager, live, broken);
  checkFlows(manager, live, broken);
  checkTimer(manager, live, broken);
  if (manager.flowCount > manager.maxFlowsHighWater) {
    broken.push(`I8: ${manager.flowCount} flows, above every cap there was`);
  }
  checkSources(manager, live, broken);
  return broken;
}

/** Throws with the list when an invariant is broken. */
export function checkInvariants(manager: UdpManager): void {
  const broken = brokenInvariants(manager);
  if (broken.length > 0) throw new Error(`broken invariants:\n${broken.join('\n')}`);
}

function liveSlots(manager: UdpManager): number[] {
  const live: number[] = [];
  for (let slot = 0; slot < manager.table.highWater; slot += 1) {
    if (manager.table.isLive(slot)) live.push(slot);
  }
  return live;
}

/** I2 and I3: the key of each live flow leads to it and to no other. */
function checkKeys(manager: UdpManager, live: readonly number[], broken: string[]): void {
  const { table } = manager;
  for (const slot of live) {
    const client = table.clientOf(slot);
    const local = table.localOf(slot);
    const found = table.find(table.hashOf(client, local), client, local);
    if (found !== slot) {
      broken.push(`I2/I3: the key ${formatAddress(client)} of flow ${slot} leads to ${found}`);
    }
  }
}

/** I5: each flow has a backend and a captured configuration. I7: no exhausted cap on a live flow. */
function checkFlows(manager: UdpManager, live: readonly number[], broken: string[]): void {
  const users = { backends: new Map<number, number>(), configs: new Map<number, number>() };
  for (const slot of live) {
    const backend = manager.table.backendOf(slot);
    const config = manager.table.configOf(slot);
    users.backends.set(backend, (users.backends.get(backend) ?? 0) + 1);
    users.configs.set(config, (users.configs.get(config) ?? 0) + 1);
    const flow = manager.flow(flowId(slot));
    if (flow === undefined) {
      broken.push(`I5: flow ${slot} cannot be read`);
    } else if (teardownReason(flow.config, flow.requestsSeen, flow.responsesSeen) !== undefined) {
      broken.push(`I7: flow ${slot} lives on with an exhausted cap`);
    }
  }
  for (const name of ['backends', 'configs'] as const) {
    if (manager[name].size !== users[name].size) broken.push(`I5: ${name} without a flow are kept`);
    for (const [number, count] of users[name]) {
      if (manager[name].usersOf(number) !== count) {
        broken.push(`I5: ${name} ${number} has ${count} flows, but counts otherwise`);
      }
    }
  }
}

/** I6: armed exactly while there are flows, at the earliest of their deadlines. */
function checkTimer(manager: UdpManager, live: readonly number[], broken: string[]): void {
  let earliest: Instant | undefined;
  for (const slot of live) {
    const deadline = manager.deadlines.of(slot);
    if (earliest === undefined || deadline < earliest) earliest = deadline;
  }
  if (manager.pollTimeout() !== earliest) {
    broken.push(`I6: armed at ${manager.pollTimeout()}, but the earliest deadline is ${earliest}`);
  }
}

/** I13: per-source counters equal a recount over the live flows. */
function checkSources(manager: UdpManager, live: readonly number[], broken: string[]): void {
  const flows = live.flatMap((slot) => manager.flow(flowId(slot)) ?? []);
  const addresses = new Set<string>();
  const subnets = new Set<string>();
  for (const flow of flows) {
    const { client, config } = flow;
    const inCluster = flows.filter((other) => other.config.cluster === config.cluster);
    const ofAddress = inCluster.filter((other) => ipName(other.client) === ipName(client));
    const subnet = subnetName(client, config);
    const ofSubnet = inCluster.filter((other) => subnetName(other.client, other.config) === subnet);
    if (manager.sources.flowsOfAddress(config, client) !== ofAddress.length) {
      broken.push(`I13: the count of ${formatAddress(client)} is not ${ofAddress.length}`);
    }
    if (manager.sources.flowsOfSubnet(config, client) !== ofSubnet.length) {
      broken.push(`I13: the count of subnet ${subnet} is not ${ofSubnet.length}`);
    }
    addresses.add(`${config.cluster} ${ipName(client)}`);
    subnets.add(`${config.cluster} ${subnet}`);
  }
  const { sizes } = manager.sources;
  if (sizes.addresses !== addresses.size || sizes.subnets !== subnets.size) {
    broken.push('I13: a source without flows is still counted');
  }
}

/** The address without its zone: limits count an address once, whatever link it came by. */
function ipName(client: Address): string {
  return formatIp({ ...client, scope: 0 });
}

/** The subnet by bits, spelled out: nothing shared with what it checks. */
function subnetName(client: Address, config: ClusterConfig): string {
  const length = client.family === 4 ? config.subnetPrefixIpv4 : config.subnetPrefixIpv6;
  const words = client.family === 4 ? [client.a] : [client.a, client.b, client.c, client.d];
  const bits = words.map((word) => (word >>> 0).toString(2).padStart(32, '0')).join('');
  return `${client.family}/${length}/${bits.slice(0, length)}`;
}
