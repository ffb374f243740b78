/**
 * Whole-state checks of a flow machine: invariants I1 to I3, I5 to I8 and I13 of spec §2.14, and our own I14 (who lingers), I15
 * (serial numbers) and I16 (reply credit). I4 holds by structure (a closing flow has no slot), I9 is asserted in the manager,
 * I10 to I12 compare states and are left to the shadow models. It recounts everything and trusts no counter. The simulator
 * runs it after every call, so it builds nothing until something is wrong.
 */
import { formatAddress } from './address.ts';
import { VALIDATED } from './amplification.ts';
import type { ClusterConfig } from './contract.ts';
import { awaitsReplies, teardownReason } from './flow.ts';
import type { UdpManager } from './manager.ts';
import type { Instant } from './time.ts';

/** The broken invariants of one state, for a caller that asks once. */
export function brokenInvariants(manager: UdpManager): string[] {
  return new Verifier().brokenInvariants(manager);
}

/** Throws with the list when an invariant is broken. */
export function checkInvariants(manager: UdpManager): void {
  const broken = brokenInvariants(manager);
  if (broken.length > 0) throw new Error(`broken invariants:\n${broken.join('\n')}`);
}

/** Words of a key as `FlowTable.readKey` writes them. */
const STRIDE = 6;
const A = 0;
const ENDPOINT = 1;
const B = 2;
const C = 3;
const D = 4;

/** Checks one state after the other, in arrays that it keeps: a place is a live flow's number among the live flows. */
export class Verifier {
  private live = 0;
  private slots = new Int32Array(64);
  private keys = new Int32Array(64 * STRIDE);
  /** By place: number of the configuration, and of its cluster's name among those seen. */
  private configs = new Int32Array(64);
  private clusters = new Int32Array(64);
  /** Prefix length of each place's subnet. */
  private prefixes = new Int32Array(64);
  /** Groups of what is alike: the first place of each, and how many there are. */
  private groups = 0;
  private firsts = new Int32Array(64);
  private counts = new Int32Array(64);
  private values = new Int32Array(64);

  /** Every invariant this state breaks, each as a sentence that begins with its number; empty when all hold. */
  brokenInvariants(manager: UdpManager): string[] {
    const broken: string[] = [];
    this.readLive(manager);
    if (this.live !== manager.flowCount) {
      broken.push(`I1: ${this.live} live slots, but a count of ${manager.flowCount}`);
    }
    this.checkFlows(manager, broken);
    this.checkUsers(manager, broken);
    this.checkTimer(manager, broken);
    if (manager.flowCount > manager.maxFlowsHighWater) {
      broken.push(`I8: ${manager.flowCount} flows, above every cap there was`);
    }
    this.checkSources(manager, broken);
    return broken;
  }

  private readLive(manager: UdpManager): void {
    const { table } = manager;
    if (table.highWater > this.slots.length) this.makeRoom(table.highWater);
    this.live = 0;
    for (let slot = 0; slot < table.highWater; slot += 1) {
      if (!table.isLive(slot)) continue;
      const place = this.live;
      this.slots[place] = slot;
      this.configs[place] = table.configOf(slot);
      table.readKey(slot, this.keys, place * STRIDE);
      this.live += 1;
    }
  }

  private makeRoom(count: number): void {
    this.slots = new Int32Array(2 * count);
    this.keys = new Int32Array(2 * count * STRIDE);
    this.configs = new Int32Array(2 * count);
    this.clusters = new Int32Array(2 * count);
    this.prefixes = new Int32Array(2 * count);
    this.firsts = new Int32Array(2 * count);
    this.counts = new Int32Array(2 * count);
    this.values = new Int32Array(2 * count);
  }

  private checkFlows(manager: UdpManager, broken: string[]): void {
    const { table } = manager;
    for (let place = 0; place < this.live; place += 1) {
      const slot = this.slots[place]!;
      const config = manager.configs.get(this.configs[place]!);
      if (table.isLingering(slot)) checkLingering(manager, slot, config, broken);
      else checkEstablished(manager, slot, config, broken);
      checkCredit(manager, slot, config, broken);
      this.checkSerial(manager, slot, broken);
    }
  }

  /** I15: no two live flows have one serial number. */
  private checkSerial({ table }: UdpManager, slot: number, broken: string[]): void {
    const serial = table.serialOf(slot);
    if (serial < 1) broken.push(`I15: flow ${slot} has the serial number ${serial}`);
    for (let place = 0; this.slots[place] !== slot; place += 1) {
      if (table.serialOf(this.slots[place]!) !== serial) continue;
      broken.push(`I15: flows ${this.slots[place]} and ${slot} have one serial number, ${serial}`);
    }
  }

  /** I5: each flow has its backend and its captured configuration, and nothing is kept for flows that are gone. */
  private checkUsers(manager: UdpManager, broken: string[]): void {
    const { table, backends, configs } = manager;
    for (let place = 0; place < this.live; place += 1) {
      this.values[place] = table.backendOf(this.slots[place]!);
    }
    this.groupValues();
    this.compareUsers('backends', backends, broken);
    this.values.set(this.configs);
    this.groupValues();
    this.compareUsers('configs', configs, broken);
    this.readConfigs(manager);
  }

  /** Holds a registry against the groups of equal `values`. */
  private compareUsers(name: string, registry: Counted, broken: string[]): void {
    if (registry.size !== this.groups) broken.push(`I5: ${name} without a flow are kept`);
    for (let group = 0; group < this.groups; group += 1) {
      const users = registry.usersOf(this.values[this.firsts[group]!]!);
      if (users === this.counts[group]) continue;
      broken.push(`I5: ${this.counts[group]} flows use one of the ${name}, counted ${users}`);
    }
  }

  /** By groups of configurations: what their flows need for the recount of sources. */
  private readConfigs(manager: UdpManager): void {
    const names: string[] = [];
    for (let group = 0; group < this.groups; group += 1) {
      const number = this.configs[this.firsts[group]!]!;
      const { cluster, subnetPrefixIpv4, subnetPrefixIpv6 } = manager.configs.get(number);
      let ordinal = names.indexOf(cluster);
      if (ordinal < 0) ordinal = names.push(cluster) - 1;
      for (let place = 0; place < this.live; place += 1) {
        if (this.configs[place] !== number) continue;
        const isIpv4 = this.keys[place * STRIDE + ENDPOINT]! >>> 16 === 4;
        this.clusters[place] = ordinal;
        this.prefixes[place] = isIpv4 ? subnetPrefixIpv4 : subnetPrefixIpv6;
      }
    }
  }

  /** I6: armed exactly while there are flows, at the earliest of their deadlines. */
  private checkTimer(manager: UdpManager, broken: string[]): void {
    let earliest: Instant | undefined;
    for (let place = 0; place < this.live; place += 1) {
      const deadline = manager.deadlines.of(this.slots[place]!);
      if (earliest === undefined || deadline < earliest) earliest = deadline;
    }
    if (manager.pollTimeout() === earliest) return;
    const armed = manager.pollTimeout();
    broken.push(`I6: armed at ${armed}, but the earliest deadline is ${earliest}`);
  }

  /** I13: per-source counters equal a recount over the live flows, from the first limit on. */
  private checkSources(manager: UdpManager, broken: string[]): void {
    const { sources, table } = manager;
    const { sizes } = sources;
    if (sizes === undefined) return;
    this.groupSources(false);
    const addresses = this.groups;
    for (let group = 0; group < this.groups; group += 1) {
      const slot = this.slots[this.firsts[group]!]!;
      const config = manager.configs.get(table.configOf(slot));
      const counted = sources.flowsOfAddress(config, table.clientOf(slot));
      if (counted === this.counts[group]) continue;
      broken.push(`I13: the count of ${nameOf(manager, slot)} is not ${this.counts[group]}`);
    }
    this.groupSources(true);
    const subnets = this.groups;
    for (let group = 0; group < this.groups; group += 1) {
      const slot = this.slots[this.firsts[group]!]!;
      const config = manager.configs.get(table.configOf(slot));
      const counted = sources.flowsOfSubnet(config, table.clientOf(slot));
      if (counted === this.counts[group]) continue;
      const name = nameOf(manager, slot);
      broken.push(`I13: the count of the subnet of ${name} is not ${this.counts[group]}`);
    }
    if (sizes.addresses !== addresses || sizes.subnets !== subnets) {
      broken.push('I13: a source without flows is still counted');
    }
  }

  /** Groups places of equal `values`. */
  private groupValues(): void {
    this.groups = 0;
    for (let place = 0; place < this.live; place += 1) {
      const value = this.values[place];
      let group = 0;
      while (group < this.groups && this.values[this.firsts[group]!] !== value) group += 1;
      this.count(group, place);
    }
  }

  /** Groups places of one cluster and one address, or one subnet. */
  private groupSources(bySubnet: boolean): void {
    this.groups = 0;
    for (let place = 0; place < this.live; place += 1) {
      let group = 0;
      while (group < this.groups && !this.sharesSource(this.firsts[group]!, place, bySubnet)) {
        group += 1;
      }
      this.count(group, place);
    }
  }

  private count(group: number, place: number): void {
    if (group < this.groups) {
      this.counts[group] = this.counts[group]! + 1;
    } else {
      this.firsts[group] = place;
      this.counts[group] = 1;
      this.groups += 1;
    }
  }

  /** Counts equal leading bits, sharing nothing with the masks it checks. A zone is no part of an address. */
  private sharesSource(one: number, other: number, bySubnet: boolean): boolean {
    const { keys, clusters, prefixes } = this;
    if (clusters[one] !== clusters[other]) return false;
    const [left, right] = [one * STRIDE, other * STRIDE];
    const family = keys[left + ENDPOINT]! >>> 16;
    if (family !== keys[right + ENDPOINT]! >>> 16) return false;
    const bits = bySubnet ? prefixes[one]! : family === 4 ? 32 : 128;
    if (bySubnet && bits !== prefixes[other]) return false;
    if (Math.clz32(keys[left + A]! ^ keys[right + A]!) < Math.min(bits, 32)) return false;
    if (family === 4) return true;
    return (
      Math.clz32(keys[left + B]! ^ keys[right + B]!) >= Math.min(bits - 32, 32) &&
      Math.clz32(keys[left + C]! ^ keys[right + C]!) >= Math.min(bits - 64, 32) &&
      Math.clz32(keys[left + D]! ^ keys[right + D]!) >= Math.min(bits - 96, 32)
    );
  }
}

/** I2 and I3: the key of an established flow leads to it and to no other. I7: it has no exhausted cap. */
function checkEstablished(
  manager: UdpManager,
  slot: number,
  config: ClusterConfig,
  broken: string[],
): void {
  const { table } = manager;
  const found = table.slotByKeyOf(slot);
  if (found !== slot) {
    broken.push(`I2/I3: the key ${nameOf(manager, slot)} of flow ${slot} leads to ${found}`);
  }
  if (teardownReason(config, table.requestsOf(slot), table.responsesOf(slot)) !== undefined) {
    broken.push(`I7: flow ${slot} lives on with an exhausted cap`);
  }
}

/** I14: no key leads to a flow that lingers, and it awaits what its configuration lets it await. */
function checkLingering(
  { table }: UdpManager,
  slot: number,
  config: ClusterConfig,
  broken: string[],
): void {
  if (table.isIndexed(slot)) broken.push(`I14: flow ${slot} lingers, but a key leads to it`);
  const requests = table.requestsOf(slot);
  const isSpent = config.requestsLinger && config.requests !== 0 && requests >= config.requests;
  const isComplete = !awaitsReplies(config, requests, table.responsesOf(slot));
  const end = table.endOf(slot);
  const mayLinger = end === 'Idle' ? !isComplete : isComplete && config.lateReplyGrace > 0;
  if (mayLinger && (isSpent || end === 'ResponsesReached')) return;
  broken.push(`I14: flow ${slot} lingers without a reason, to end as ${end}`);
}

/** I16: credit is limited for as long as the client has spoken once, under a configuration with a limit. */
function checkCredit(
  { table }: UdpManager,
  slot: number,
  { amplification }: ClusterConfig,
  broken: string[],
): void {
  const credit = table.creditOf(slot);
  const isLimited = amplification.factor !== 0 && table.requestsOf(slot) < 2;
  if (isLimited ? credit >= 0 : credit === VALIDATED) return;
  broken.push(`I16: flow ${slot} has a credit of ${credit}`);
}

/** A registry as the checks see it. */
interface Counted {
  readonly size: number;
  usersOf(number: number): number;
}

function nameOf(manager: UdpManager, slot: number): string {
  return formatAddress(manager.table.clientOf(slot));
}
