/**
 * Whole-state checks of a flow machine: invariants I1 to I13 of spec §2.14 as far as one state can show them (I9 and I10 are
 * asserted where they happen, I11 and I12 by the shadow model). It recounts everything and trusts no counter. The simulator
 * runs it after every call, so it works in scratch arrays and builds nothing until something is wrong.
 */
import { formatAddress } from './address.ts';
import type { ClusterConfig } from './contract.ts';
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
    this.groupSources(manager, false);
    const addresses = this.firsts.length;
    for (const [index, slot] of this.firsts.entries()) {
      const counted = sources.flowsOfAddress(configOf(manager, slot), table.clientOf(slot));
      if (counted === this.counts[index]) continue;
      broken.push(`I13: the count of ${nameOf(manager, slot)} is not ${this.counts[index]}`);
    }
    this.groupSources(manager, true);
    const subnets = this.firsts.length;
    for (const [index, slot] of this.firsts.entries()) {
      const counted = sources.flowsOfSubnet(configOf(manager, slot), table.clientOf(slot));
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

  /** Groups live flows of one address, or of one subnet. */
  private groupSources(manager: UdpManager, bySubnet: boolean): void {
    const firsts: number[] = [];
    this.firsts = firsts;
    this.counts = [];
    for (const slot of this.live) {
      const bits = bySubnet ? prefixOf(manager, slot) : 128;
      let index = 0;
      for (; index < firsts.length; index += 1) {
        const first = firsts[index] ?? slot;
        if (bySubnet && prefixOf(manager, first) !== bits) continue;
        if (sameSource(manager, first, slot, bits)) break;
      }
      this.count(index < firsts.length ? index : -1, slot);
    }
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

/** The zone does not matter: limits count an address once, whatever link it came by. */
function sameSource(manager: UdpManager, one: number, other: number, bits: number): boolean {
  const { table } = manager;
  const family = table.wordOf(one, 'endpoint') >>> 16;
  if (family !== table.wordOf(other, 'endpoint') >>> 16) return false;
  if (configOf(manager, one).cluster !== configOf(manager, other).cluster) return false;
  // Counts equal leading bits: nothing shared with the masks it checks.
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

function prefixOf(manager: UdpManager, slot: number): number {
  const { subnetPrefixIpv4, subnetPrefixIpv6 } = configOf(manager, slot);
  return manager.table.wordOf(slot, 'endpoint') >>> 16 === 4 ? subnetPrefixIpv4 : subnetPrefixIpv6;
}

function configOf(manager: UdpManager, slot: number): ClusterConfig {
  return manager.configs.get(manager.table.configOf(slot));
}

function nameOf(manager: UdpManager, slot: number): string {
  return formatAddress(manager.table.clientOf(slot));
}
