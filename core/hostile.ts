/**
 * Datagrams that no client would send: from one of our own listeners or from a backend, which would circle (one spoofed
 * source is enough to start that), and with a PROXY header in front, which a backend that expects ours might believe.
 */
import { isLoopback, isUnspecified, unmap, type Address } from './address.ts';
import { bucketsFor, keyedHash, type TableSeed } from './keyed-hash.ts';
import { SIGNATURE } from './proxy-protocol.ts';

/** Whose address it is. */
export type OwnKind = 'listener' | 'backend';

export interface OwnAddressesOptions {
  readonly listeners: readonly { readonly address: Address; readonly ipv6Only: boolean }[];
  /** Of all clusters: a datagram can circle through several. */
  readonly backends: readonly Address[];
  /** Addresses of this machine, whatever their ports: a wildcard listener answers from them. Loopback is known without. */
  readonly hosts: readonly Address[];
  /** Secret; see keyed-hash.ts. */
  readonly seed: TableSeed;
}

interface Entry {
  readonly address: Address;
  readonly port: number;
  readonly kind: OwnKind | 'host';
}

/** A host is entered under this port, which no listener and no backend has. */
const HOST_PORT = 0;

const IPV4 = 1;
const IPV6 = 2;

/** Words of a key: address, then family and port. */
const KEY_WORDS = 5;

/**
 * Which addresses are ours: built when the configuration changes, asked for each client datagram in constant time and
 * without allocation. Zones are ignored, because a listener's need not say one.
 */
export class OwnAddresses {
  private readonly seed: TableSeed;
  private readonly entries: Entry[] = [];
  /** Number of an entry + 1, 0 = empty: open addressing, linear probing. */
  private readonly index: Int32Array;
  /** By port: the families of which a wildcard listener receives there. */
  private readonly wildcards = new Uint8Array(65_536);
  private readonly key = new Int32Array(KEY_WORDS);

  constructor({ listeners, backends, hosts, seed }: OwnAddressesOptions) {
    this.seed = seed;
    this.index = new Int32Array(bucketsFor(listeners.length + backends.length + hosts.length));
    for (const { address, ipv6Only } of listeners) {
      const bound = unmap(address);
      if (isUnspecified(bound)) this.enterWildcard(bound, ipv6Only);
      else this.enter(bound, bound.port, 'listener');
    }
    for (const backend of backends) this.enter(unmap(backend), backend.port, 'backend');
    for (const host of hosts) this.enter(unmap(host), HOST_PORT, 'host');
  }

  /**
   * Whose address the source of a client datagram is; undefined for a stranger's, and 'listener' for one that is both.
   * `local` is the address it was sent to, where the driver knows it. Both are unmapped.
   */
  kindOf(src: Address, local: Address | undefined): OwnKind | undefined {
    if (this.isWildcard(src, local)) return 'listener';
    const kind = this.find(src, src.port)?.kind;
    return kind === 'host' ? undefined : kind;
  }

  /**
   * Whether a wildcard listener may have sent this: from its port, and from an address of this machine. The port alone says
   * nothing, because an old NTP client asks from port 123.
   */
  private isWildcard(src: Address, local: Address | undefined): boolean {
    const family = src.family === 4 ? IPV4 : IPV6;
    if (((this.wildcards[src.port] ?? 0) & family) === 0) return false;
    if (isLoopback(src) || (local !== undefined && sameHost(src, local))) return true;
    return this.find(src, HOST_PORT) !== undefined;
  }

  private enterWildcard({ family, port }: Address, ipv6Only: boolean): void {
    const families = family === 4 ? IPV4 : ipv6Only ? IPV6 : IPV4 | IPV6;
    this.wildcards[port] = (this.wildcards[port] ?? 0) | families;
  }

  /** What was entered before stays: a backend that is a listener counts as a listener. */
  private enter(address: Address, port: number, kind: Entry['kind']): void {
    const bucket = this.bucketOf(address, port);
    if (this.index[bucket] === 0) this.index[bucket] = this.entries.push({ address, port, kind });
  }

  private find(address: Address, port: number): Entry | undefined {
    return this.entryIn(this.bucketOf(address, port));
  }

  /** The bucket that has this address, or the empty one where it would go. */
  private bucketOf(address: Address, port: number): number {
    const mask = this.index.length - 1;
    let bucket = this.hashOf(address, port) & mask;
    for (let entry = this.entryIn(bucket); entry !== undefined; entry = this.entryIn(bucket)) {
      if (entry.port === port && sameHost(entry.address, address)) break;
      bucket = (bucket + 1) & mask;
    }
    return bucket;
  }

  private entryIn(bucket: number): Entry | undefined {
    const number = this.index[bucket] ?? 0;
    return number === 0 ? undefined : this.entries[number - 1];
  }

  private hashOf({ family, a, b, c, d }: Address, port: number): number {
    const { key } = this;
    key[0] = a;
    key[1] = b;
    key[2] = c;
    key[3] = d;
    key[4] = (family << 16) | port;
    return keyedHash(this.seed, key, KEY_WORDS);
  }
}

/** Equal but for port and zone. */
function sameHost(one: Address, other: Address): boolean {
  return (
    one.a === other.a &&
    one.b === other.b &&
    one.c === other.c &&
    one.d === other.d &&
    one.family === other.family
  );
}

/** Whether a datagram begins with the signature of a PROXY protocol v2 header, whatever follows it. */
export function looksLikeProxyHeader(payload: Uint8Array): boolean {
  for (let at = 0; at < SIGNATURE.length; at += 1) {
    if (payload[at] !== SIGNATURE[at]) return false;
  }
  return true;
}
