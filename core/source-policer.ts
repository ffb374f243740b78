/**
 * What a cluster asks of a source: whether an operator keeps it out, and, as long as it has no flow, whether it opens flows
 * or sends datagrams faster than it may. A client with a flow never meets the sketches: strangers who fill them cannot stop
 * it, and the flow has a bucket of its own.
 *
 * Sources are told apart by address, IPv6 by the prefix that one subscriber has, because a host may take any address in it.
 * Memory is `columns` × 64 bytes for each rate that is on, whatever the number of sources (16,384 columns: 1 MiB), and 0.4 MiB
 * at most for a list of blocks. What is off has none.
 */
import { prefixMask, type Address } from './address.ts';
import { AccessList } from './cidr.ts';
import type { ClusterSettings } from './config.ts';
import type { Refusal } from './contract.ts';
import type { TableSeed } from './keyed-hash.ts';
import type { Instant } from './time.ts';
import { TokenSketch } from './token-sketch.ts';

export type PolicerSettings = Pick<ClusterSettings, 'rates' | 'subnetPrefixIpv6'>;

/** Words of a source's key. IPv4 uses the first; a hash covers the number of words, so the families never meet. */
const WORDS_IPV4 = 1;
const WORDS_IPV6 = 4;

export class SourcePolicer {
  private readonly seed: TableSeed;
  private readonly key = new Int32Array(WORDS_IPV6);
  private prefixIpv6 = 0;
  private access: AccessList | undefined;
  private newFlows: TokenSketch | undefined;
  private datagrams: TokenSketch | undefined;

  /** `seed` is secret; see keyed-hash.ts. */
  constructor(settings: PolicerSettings, seed: TableSeed) {
    this.seed = seed;
    this.configure(settings);
  }

  /** New settings. A rate that did not change keeps what its sources have spent. */
  configure({ rates, subnetPrefixIpv6 }: PolicerSettings): void {
    const { allow, deny, columns } = rates;
    this.prefixIpv6 = subnetPrefixIpv6;
    if (allow.length + deny.length === 0) this.access = undefined;
    else if (this.access?.isOf(allow, deny) !== true) this.access = new AccessList(allow, deny);
    this.newFlows = this.sketch(
      this.newFlows,
      rates.newFlowsPerSecond,
      rates.newFlowsBurst,
      columns,
    );
    this.datagrams = this.sketch(
      this.datagrams,
      rates.datagramsPerSecond,
      rates.datagramsBurst,
      columns,
    );
  }

  /** Bytes of the sketches. */
  get byteLength(): number {
    return (this.newFlows?.byteLength ?? 0) + (this.datagrams?.byteLength ?? 0);
  }

  /** Whether an operator keeps this source out. */
  denies(src: Address): boolean {
    return this.access !== undefined && !this.access.allows(src);
  }

  /** Asked for a source without a flow. What it grants it has spent of both rates; what it refuses spends nothing of either. */
  refuses(src: Address, now: Instant): Refusal | undefined {
    const { newFlows, datagrams, key } = this;
    if (newFlows === undefined && datagrams === undefined) return undefined;
    const count = this.fillKey(src);
    if (newFlows?.has(key, count, 1, now) === false) return 'NewFlowRate';
    if (datagrams?.take(key, count, 1, now) === false) return 'DatagramRate';
    newFlows?.take(key, count, 1, now);
    return undefined;
  }

  /** Off at a rate of 0. A bucket that holds not even one token would let nobody in: it holds one. */
  private sketch(
    known: TokenSketch | undefined,
    rate: number,
    burst: number,
    columns: number,
  ): TokenSketch | undefined {
    if (rate === 0) return undefined;
    const options = { rate, burst: Math.max(1, burst), columns, seed: this.seed };
    return known?.isOf(options) === true ? known : new TokenSketch(options);
  }

  /** The number of words that tell this source from others. */
  private fillKey(src: Address): number {
    const { key, prefixIpv6: bits } = this;
    if (src.family === 4) {
      key[0] = src.a;
      return WORDS_IPV4;
    }
    key[0] = src.a & prefixMask(bits);
    key[1] = src.b & prefixMask(bits - 32);
    key[2] = src.c & prefixMask(bits - 64);
    key[3] = src.d & prefixMask(bits - 96);
    return WORDS_IPV6;
  }
}
