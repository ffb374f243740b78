/**
 * How many live flows a source address, and its subnet, hold in each cluster (spec §2.13), so that one source cannot take
 * every slot. Counting goes on while no limit is set: a limit that appears later finds true counts.
 */
import { prefixMask, type Address } from './address.ts';
import type { ClusterConfig } from './contract.ts';
import { COUNT_KEY_WORDS, CountingTable } from './counting-table.ts';
import type { TableSeed } from './keyed-hash.ts';
import { Registry } from './registry.ts';

export class SourceLimits {
  private readonly perAddress: CountingTable;
  private readonly perSubnet: CountingTable;
  /** Clusters with live flows, by number. */
  private readonly clusters = new Registry<string>();
  private readonly key = new Int32Array(COUNT_KEY_WORDS);

  constructor(capacity: number, seed: TableSeed) {
    this.perAddress = new CountingTable(capacity, seed);
    this.perSubnet = new CountingTable(capacity, seed);
  }

  grow(capacity: number): void {
    this.perAddress.grow(capacity);
    this.perSubnet.grow(capacity);
  }

  /** Whether one more flow of this source would exceed a limit of this cluster. */
  reached(config: ClusterConfig, source: Address): boolean {
    return (
      (config.maxFlowsPerIp !== 0 && this.flowsOfAddress(config, source) >= config.maxFlowsPerIp) ||
      (config.maxFlowsPerSubnet !== 0 &&
        this.flowsOfSubnet(config, source) >= config.maxFlowsPerSubnet)
    );
  }

  /** A flow was admitted under this configuration. */
  add(config: ClusterConfig, source: Address): void {
    const cluster = this.clusters.acquire(config.cluster);
    this.perAddress.add(this.addressKey(cluster, source));
    this.perSubnet.add(this.subnetKey(cluster, source, config));
  }

  /** A flow admitted under this configuration closed. */
  subtract(config: ClusterConfig, source: Address): void {
    const cluster = this.clusters.acquire(config.cluster);
    this.perAddress.subtract(this.addressKey(cluster, source));
    this.perSubnet.subtract(this.subnetKey(cluster, source, config));
    this.clusters.release(cluster);
    this.clusters.release(cluster);
  }

  /** Live flows of this address in this cluster. */
  flowsOfAddress(config: ClusterConfig, source: Address): number {
    const cluster = this.clusters.find(config.cluster);
    return cluster === undefined ? 0 : this.perAddress.get(this.addressKey(cluster, source));
  }

  /** Live flows of this address's subnet in this cluster, among those admitted under the same prefix length. */
  flowsOfSubnet(config: ClusterConfig, source: Address): number {
    const cluster = this.clusters.find(config.cluster);
    return cluster === undefined ? 0 : this.perSubnet.get(this.subnetKey(cluster, source, config));
  }

  /** Different addresses and subnets that hold flows, for the whole-state checks. */
  get sizes(): { readonly addresses: number; readonly subnets: number } {
    return { addresses: this.perAddress.size, subnets: this.perSubnet.size };
  }

  private addressKey(cluster: number, source: Address): Int32Array {
    return this.fill(cluster, source, source.family === 4 ? 32 : 128);
  }

  private subnetKey(cluster: number, source: Address, config: ClusterConfig): Int32Array {
    const bits = source.family === 4 ? config.subnetPrefixIpv4 : config.subnetPrefixIpv6;
    return this.fill(cluster, source, bits);
  }

  private fill(cluster: number, source: Address, bits: number): Int32Array {
    const { key } = this;
    key[0] = cluster;
    key[1] = (source.family << 8) | bits;
    key[2] = source.a & prefixMask(bits);
    key[3] = source.b & prefixMask(bits - 32);
    key[4] = source.c & prefixMask(bits - 64);
    key[5] = source.d & prefixMask(bits - 96);
    return key;
  }
}
