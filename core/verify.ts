/**
 * Whole-state checks of a flow machine: invariants I1 to I13 of spec §2.14 as far as one state can show them (I9 and I10 are
 * asserted where they happen, I11 and I12 by the shadow model). It recounts everything and trusts no counter; the simulator
 * runs it after every step, so it builds nothing until something is wrong.
 */
import { formatAddress, type Address } from './address.ts';
import type { ClusterConfig } from './contract.ts';
import { teardownReason } from './flow.ts';
import type { UdpManager } from './manager.ts';
import type { Instant } from './time.ts';

/** Every invariant this state breaks, each as a sentence that begins with its number; empty when all hold. */
export function brokenInvariants(manager: UdpManager): string[] {
  const broken: string[] = [];
  const live = readLive(manager);
  if (live.length !== manager.flowCount) {
    broken.push(`I1: ${live.length} live slots, but a count of ${manager.flowCount}`);
  }
  checkKeys(manager, live, broken);
  checkFlows(manager, live, broken);
  checkUsers('backends', manager.backends, live, broken);
  checkUsers('configs', manager.configs, live, broken);
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

/** What the checks need of one live flow. */
interface LiveFlow {
  readonly slot: number;
  readonly client: Address;
  readonly config: ClusterConfig;
  /** Registry numbers. */
  readonly backends: number;
  readonly configs: number;
}

function readLive(manager: UdpManager): LiveFlow[] {
  const { table } = manager;
  const live: LiveFlow[] = [];
  for (let slot = 0; slot < table.highWater; slot += 1) {
    if (!table.isLive(slot)) continue;
    const configs = table.configOf(slot);
    live.push({
      slot,
      client: table.clientOf(slot),
      config: manager.configs.get(configs),
      backends: table.backendOf(slot),
      configs,
    });
  }
  return live;
}

/** I2 and I3: the key of each live flow leads to it and to no other. */
function checkKeys(manager: UdpManager, live: readonly LiveFlow[], broken: string[]): void {
  const { table } = manager;
  for (const { slot, client } of live) {
    const local = table.localOf(slot);
    const found = table.find(table.hashOf(client, local), client, local);
    if (found !== slot) {
      broken.push(`I2/I3: the key ${formatAddress(client)} of flow ${slot} leads to ${found}`);
    }
  }
}

/** I7: no exhausted cap on a live flow. */
function checkFlows(manager: UdpManager, live: readonly LiveFlow[], broken: string[]): void {
  const { table } = manager;
  for (const { slot, config } of live) {
    if (teardownReason(config, table.requestsOf(slot), table.responsesOf(slot)) !== undefined) {
      broken.push(`I7: flow ${slot} lives on with an exhausted cap`);
    }
  }
}

/** A registry as the checks see it. */
interface Counted {
  readonly size: number;
  usersOf(number: number): number;
}

/** I5: each flow has its backend and its captured configuration, and nothing is kept for flows that are gone. */
function checkUsers(
  name: 'backends' | 'configs',
  registry: Counted,
  live: readonly LiveFlow[],
  broken: string[],
): void {
  const groups = group(live, name === 'backends' ? sameBackend : sameConfig);
  if (registry.size !== groups.length) broken.push(`I5: ${name} without a flow are kept`);
  for (const { flow, count } of groups) {
    const users = registry.usersOf(flow[name]);
    if (users !== count) broken.push(`I5: ${count} flows use one of the ${name}, counted ${users}`);
  }
}

/** I6: armed exactly while there are flows, at the earliest of their deadlines. */
function checkTimer(manager: UdpManager, live: readonly LiveFlow[], broken: string[]): void {
  let earliest: Instant | undefined;
  for (const { slot } of live) {
    const deadline = manager.deadlines.of(slot);
    if (earliest === undefined || deadline < earliest) earliest = deadline;
  }
  if (manager.pollTimeout() !== earliest) {
    broken.push(`I6: armed at ${manager.pollTimeout()}, but the earliest deadline is ${earliest}`);
  }
}

/** I13: per-source counters equal a recount over the live flows. */
function checkSources(manager: UdpManager, live: readonly LiveFlow[], broken: string[]): void {
  const { sources } = manager;
  const addresses = group(live, sameSource);
  for (const { flow, count } of addresses) {
    if (sources.flowsOfAddress(flow.config, flow.client) === count) continue;
    broken.push(`I13: the count of ${formatAddress(flow.client)} is not ${count}`);
  }
  const subnets = group(live, sameSubnet);
  for (const { flow, count } of subnets) {
    if (sources.flowsOfSubnet(flow.config, flow.client) === count) continue;
    broken.push(`I13: the count of the subnet of ${formatAddress(flow.client)} is not ${count}`);
  }
  const { sizes } = sources;
  if (sizes.addresses !== addresses.length || sizes.subnets !== subnets.length) {
    broken.push('I13: a source without flows is still counted');
  }
}

/** Flows that are alike, and one of them. */
interface Group {
  readonly flow: LiveFlow;
  count: number;
}

function group(
  live: readonly LiveFlow[],
  alike: (one: LiveFlow, other: LiveFlow) => boolean,
): Group[] {
  const groups: Group[] = [];
  for (const flow of live) {
    let known: Group | undefined;
    for (const one of groups) {
      if (!alike(one.flow, flow)) continue;
      known = one;
      break;
    }
    if (known === undefined) groups.push({ flow, count: 1 });
    else known.count += 1;
  }
  return groups;
}

function sameBackend(one: LiveFlow, other: LiveFlow): boolean {
  return one.backends === other.backends;
}

function sameConfig(one: LiveFlow, other: LiveFlow): boolean {
  return one.configs === other.configs;
}

/** The zone does not matter: limits count an address once, whatever link it came by. */
function sameSource(one: LiveFlow, other: LiveFlow): boolean {
  return one.config.cluster === other.config.cluster && sharesPrefix(one.client, other.client, 128);
}

function sameSubnet(one: LiveFlow, other: LiveFlow): boolean {
  const bits = prefixOf(one);
  return (
    one.config.cluster === other.config.cluster &&
    bits === prefixOf(other) &&
    sharesPrefix(one.client, other.client, bits)
  );
}

function prefixOf({ client, config }: LiveFlow): number {
  return client.family === 4 ? config.subnetPrefixIpv4 : config.subnetPrefixIpv6;
}

/** Counts equal leading bits: nothing shared with the masks it checks. */
function sharesPrefix(one: Address, other: Address, bits: number): boolean {
  if (one.family !== other.family) return false;
  return (
    Math.clz32(one.a ^ other.a) >= Math.min(bits, 32) &&
    Math.clz32(one.b ^ other.b) >= Math.min(bits - 32, 32) &&
    Math.clz32(one.c ^ other.c) >= Math.min(bits - 64, 32) &&
    Math.clz32(one.d ^ other.d) >= Math.min(bits - 96, 32)
  );
}
