/** The small world of the harness (spec §11.1): client addresses, four backends, three clusters. */
import { ipv4, ipv6, type Address } from '../../core/address.ts';
import { present } from '../../core/assert.ts';

const TEN = 0x0a000000;
const LOOPBACK = 0x7f000001;
const LINK_LOCAL = 0xfe800000;

/** The pool of spec §11.1 is the first half: few enough to meet again and again. */
const IPV4_SOURCES = 32;

/** 10.0.0.0 to 10.0.0.7, then eight hosts on IPv6, each with ports 9000 to 9003. */
export const SOURCES: readonly Address[] = Array.from({ length: 2 * IPV4_SOURCES }, (_, index) => {
  const host = (index % IPV4_SOURCES) >> 2;
  const port = 9_000 + (index & 3);
  return index < IPV4_SOURCES ? ipv4(TEN + host, port) : ipv6Source(host, port);
});

/** Hosts of the pool, four clients each. */
export const HOST_COUNT: number = SOURCES.length / 4;

/** Six hosts in two networks, alike but for one word; then one link-local address on two links. */
function ipv6Source(host: number, port: number): Address {
  if (host < 6) return ipv6([0x20010db8, host & 1, host & 2, host & 4], port);
  return ipv6([LINK_LOCAL, 0, 0, 1], port, host - 5);
}

/** Clients with the same number have one IP address: the zone is no part of it. */
export function hostOf(source: number): number {
  const host = source >> 2;
  return host === HOST_COUNT - 1 ? host - 1 : host;
}

/** Clients with the same number are in one /24, or one /64. */
export function subnetOf(source: number): number {
  const { family, a, b } = sourceAt(source);
  if (family === 4) return 0;
  return a === (LINK_LOCAL | 0) ? 1 : 2 + b;
}

/** 127.0.0.1:5300 to 5303. */
export const BACKEND_ADDRESSES: readonly Address[] = Array.from({ length: 4 }, (_, index) =>
  ipv4(LOOPBACK, 5_300 + index),
);

export const CLUSTER_COUNT = 3;

/** Flow ids that are drawn without knowing whether they exist: 0 to 63. */
export const FLOW_ID_BOUND = 64;

export function sourceAt(index: number): Address {
  return present(SOURCES[index % SOURCES.length], 'the pool is not empty');
}

/** The place of an address in a pool, or −1. */
export function placeIn(pool: readonly Address[], address: Address): number {
  return pool.findIndex((one) => one.a === address.a && one.port === address.port);
}
