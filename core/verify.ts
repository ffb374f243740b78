/**
 * Whole-state checks of a flow machine: invariants I1 to I3, I5 to I8 and I13 of spec §2.14. I4 holds by structure (a closing
 * flow has no slot), I9 is asserted in the manager, I10 to I12 compare states and are left to the shadow models. It recounts
 * everything and trusts no counter. The simulator runs it after every call, so it builds nothing until something is wrong.
 */
import { formatAddress } from './address.ts';
import { present } from './assert.ts';
import type { ClusterConfig } from './contract.ts';
import type { FlowTable } from './flow-table.ts';
import { teardownReason } from './flow.ts';
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

/** Checks one state after the other. */
export class Verifier {
  /** Live slots, and beside each the configuration it was admitted under. */
  private live: number[] = [];
  private configs: ClusterConfig[] = [];
  /** What each live flow holds of the thing under check. */
  private values: number[] = [];
  /** Groups of what is alike: the first of each, and how many there are. */
  private firsts: number[] = [];
  private counts: number[] = [];

  /** Every invariant this state breaks, each as a sentence that begins with its number; empty when all hold. */
  brokenInvariants(manager: UdpManager): string[] {
    const broken: string[] = [];
    this.readLive(manager);
    if (this.live.length !== manager.flowCount) {
      broken.push(`I1: ${this.live.length} live slots, but a count of ${manager.flowCount}`);
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
    this.live = [];
    this.configs = [];
    for (let slot = 0; slot < table.highWater; slot += 1) {
      if (!table.isLive(slot)) continue;
      this.live.push(slot);
      this.configs.push(manager.configs.get(table.configOf(slot)));
    }
  }

  /** I2 and I3: the key of each live flow leads to it and to no other. I7: no exhausted cap on a live flow. */
  private checkFlows(manager: UdpManager, broken: string[]): void {
    const { table } = manager;
    for (const [place, slot] of this.live.entries()) {
      const found = table.slotByKeyOf(slot);
      if (found !== slot) {
        broken.push(`I2/I3: the key ${nameOf(manager, slot)} of flow ${slot} leads to ${found}`);
      }
      const config = this.configs[place];
      if (config === undefined) continue;
      if (teardownReason(config, table.requestsOf(slot), table.responsesOf(slot)) !== undefined) {
        broken.push(`I7: flow ${slot} lives on with an exhausted cap`);
      }
    }
  }

  /** I5: each flow has its backend and its captured configuration, and nothing is kept for flows that are gone. */
  private checkUsers(manager: UdpManager, broken: string[]): void {
    const { table } = manager;
    this.values = [];
    for (const slot of this.live) this.values.push(table.backendOf(slot));
    this.compareUsers('backends', manager.backends, broken);
    this.values = [];
    for (const slot of this.live) this.values.push(table.configOf(slot));
    this.compareUsers('configs', manager.configs, broken);
  }

  /** Holds a registry against the numbers in `values`. */
  private compareUsers(name: string, registry: Counted, broken: string[]): void {
    this.groupValues();
    if (registry.size !== this.firsts.length) broken.push(`I5: ${name} without a flow are kept`);
    for (const [index, number] of this.firsts.entries()) {
      const users = registry.usersOf(number);
      if (users === this.counts[index]) continue;
      broken.push(`I5: ${this.counts[index]} flows use one of the ${name}, counted ${users}`);
    }
  }

  /** I6: armed exactly while there are flows, at the earliest of their deadlines. */
  private checkTimer(manager: UdpManager, broken: string[]): void {
    let earliest: Instant | undefined;
    for (const slot of this.live) {
      const deadline = manager.deadlines.of(slot);
      if (earliest === undefined || deadline < earliest) earliest = deadline;
    }
    if (manager.pollTimeout() !== earliest) {
      broken.push(
        `I6: armed at ${manager.pollTimeout()}, but the earliest deadline is ${earliest}`,
      );
    }
  }

  /** I13: per-source counters equal a recount over the live flows. */
  private checkSources(manager: UdpManager, broken: string[]): void {
    const { sources, table } = manager;
    this.groupSources(table, false);
    const addresses = this.firsts.length;
    for (const [index, place] of this.firsts.entries()) {
      const slot = this.slotAt(place);
      const counted = sources.flowsOfAddress(this.configAt(place), table.clientOf(slot));
      if (counted === this.counts[index]) continue;
      broken.push(`I13: the count of ${nameOf(manager, slot)} is not ${this.counts[index]}`);
    }
    this.groupSources(table, true);
    const subnets = this.firsts.length;
    for (const [index, place] of this.firsts.entries()) {
      const slot = this.slotAt(place);
      const counted = sources.flowsOfSubnet(this.configAt(place), table.clientOf(slot));
      if (counted === this.counts[index]) continue;
      const name = nameOf(manager, slot);
      broken.push(`I13: the count of the subnet of ${name} is not ${this.counts[index]}`);
    }
    if (sources.sizes.addresses !== addresses || sources.sizes.subnets !== subnets) {
      broken.push('I13: a source without flows is still counted');
    }
  }

  /** Groups equal `values`. */
  private groupValues(): void {
    this.firsts = [];
    this.counts = [];
    for (const value of this.values) this.count(this.firsts.indexOf(value), value);
  }

  /** Groups the places of live flows that are of one address, or of one subnet. */
  private groupSources(table: FlowTable, bySubnet: boolean): void {
    const firsts: number[] = [];
    this.firsts = firsts;
    this.counts = [];
    for (let place = 0; place < this.live.length; place += 1) {
      const slot = this.slotAt(place);
      const config = this.configAt(place);
      const bits = bySubnet ? prefixOf(table, slot, config) : 128;
      let index = 0;
      for (; index < firsts.length; index += 1) {
        const first = firsts[index] ?? place;
        const other = this.configAt(first);
        const firstSlot = this.slotAt(first);
        if (config.cluster !== other.cluster) continue;
        if (bySubnet && prefixOf(table, firstSlot, other) !== bits) continue;
        if (sharesPrefix(table, firstSlot, slot, bits)) break;
      }
      this.count(index < firsts.length ? index : -1, place);
    }
  }

  private slotAt(place: number): number {
    return present(this.live[place], 'a place among the live flows');
  }

  private configAt(place: number): ClusterConfig {
    return present(this.configs[place], 'a place among the live flows');
  }

  private count(index: number, first: number): void {
    if (index >= 0) {
      this.counts[index] = (this.counts[index] ?? 0) + 1;
    } else {
      this.firsts.push(first);
      this.counts.push(1);
    }
  }
}

/** A registry as the checks see it. */
interface Counted {
  readonly size: number;
  usersOf(number: number): number;
}

/** Counts equal leading bits, sharing nothing with the masks it checks. A zone is no part of an address. */
function sharesPrefix(table: FlowTable, one: number, other: number, bits: number): boolean {
  const family = table.wordOf(one, 'endpoint') >>> 16;
  if (family !== table.wordOf(other, 'endpoint') >>> 16) return false;
  const a = Math.clz32(table.wordOf(one, 'a') ^ table.wordOf(other, 'a'));
  if (a < Math.min(bits, 32)) return false;
  if (family === 4) return true;
  const b = Math.clz32(table.wordOf(one, 'b') ^ table.wordOf(other, 'b'));
  const c = Math.clz32(table.wordOf(one, 'c') ^ table.wordOf(other, 'c'));
  const d = Math.clz32(table.wordOf(one, 'd') ^ table.wordOf(other, 'd'));
  return (
    b >= Math.min(bits - 32, 32) && c >= Math.min(bits - 64, 32) && d >= Math.min(bits - 96, 32)
  );
}

function prefixOf(table: FlowTable, slot: number, config: ClusterConfig): number {
  const isIpv4 = table.wordOf(slot, 'endpoint') >>> 16 === 4;
  return isIpv4 ? config.subnetPrefixIpv4 : config.subnetPrefixIpv6;
}

function nameOf(manager: UdpManager, slot: number): string {
  return formatAddress(manager.table.clientOf(slot));
}
