/**
 * How many live flows a source address, and its subnet, hold in each cluster (spec §2.13), so that one source cannot take
 * every slot. Nothing is counted, and no table is there, until the first cluster has a limit: then the flows that live are
 * counted in one walk over them (live-flows.ts), and counting goes on for good.
 */
import { prefixMask, type Address } from './address.ts';
import { present } from './assert.ts';
import type { ClusterConfig } from './contract.ts';
import { COUNT_KEY_WORDS, CountingTable } from './counting-table.ts';
import type { TableSeed } from './keyed-hash.ts';
import { Registry } from './registry.ts';

interface Counts {
  readonly perAddress: CountingTable;
  readonly perSubnet: CountingTable;
}

export class SourceLimits {
  private capacity: number;
  private readonly seed: TableSeed;
  /** Made when the first cluster has a limit: without one a flow pays nothing. */
  private counts: Counts | undefined;
  /** Clusters with live flows, by number. */
  private readonly clusters = new Registry<string>();
  private readonly key = new Int32Array(COUNT_KEY_WORDS);

  /** For so many live flows at most. */
  constructor(capacity: number, seed: TableSeed) {
    this.capacity = capacity;
    this.seed = seed;
  }

  /** Room for more flows; what was counted stays counted. */
  grow(capacity: number): void {
    this.capacity = capacity;
    this.counts?.perAddress.grow(capacity);
    this.counts?.perSubnet.grow(capacity);
  }

  /**
   * Flows will be admitted under this configuration. Whether counting begins with it: then whoever asks adds the flows that
   * live already.
   */
  expect(config: ClusterConfig): boolean {
    if (this.counts !== undefined) return false;
    if (config.maxFlowsPerIp === 0 && config.maxFlowsPerSubnet === 0) return false;
    const { capacity, seed } = this;
    this.counts = {
      perAddress: new CountingTable(capacity, seed),
      perSubnet: new CountingTable(capacity, seed),
    };
    return true;
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
    const { counts } = this;
    if (counts === undefined) return;
    const cluster = this.clusters.acquire(config.cluster);
    counts.perAddress.add(this.addressKey(cluster, source));
    counts.perSubnet.add(this.subnetKey(cluster, source, config));
  }

  /** A flow admitted under this configuration closed. */
  subtract(config: ClusterConfig, source: Address): void {
    const { counts } = this;
    if (counts === undefined) return;
    const cluster = this.clusters.acquire(config.cluster);
    counts.perAddress.subtract(this.addressKey(cluster, source));
    counts.perSubnet.subtract(this.subnetKey(cluster, source, config));
    this.clusters.release(cluster);
    this.clusters.release(cluster);
  }

  /** Live flows of this address in this cluster, once counting has begun. */
  flowsOfAddress(config: ClusterConfig, source: Address): number {
    const { perAddress } = this.begun;
    const cluster = this.clusters.find(config.cluster);
    return cluster === undefined ? 0 : perAddress.get(this.addressKey(cluster, source));
  }

  /** The same of this address's subnet, among flows admitted under the same prefix length. */
  flowsOfSubnet(config: ClusterConfig, source: Address): number {
    const { perSubnet } = this.begun;
    const cluster = this.clusters.find(config.cluster);
    return cluster === undefined ? 0 : perSubnet.get(this.subnetKey(cluster, source, config));
  }

  /** Different addresses and subnets that hold flows, for the whole-state checks; undefined while nothing is counted. */
  get sizes(): { readonly addresses: number; readonly subnets: number } | undefined {
    const { counts } = this;
    return counts && { addresses: counts.perAddress.size, subnets: counts.perSubnet.size };
  }

  private get begun(): Counts {
    return present(this.counts, 'counting begins before a limit asks');
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
