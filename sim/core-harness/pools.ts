/** The small world of the harness (spec §11.1): 32 client addresses, four backends, three clusters. */
import { ipv4, type Address } from '../../core/address.ts';
import { present } from '../../core/assert.ts';

const TEN = 0x0a000000;
const LOOPBACK = 0x7f000001;

/** 10.0.0.0 to 10.0.0.7, ports 9000 to 9003: few enough to meet again and again. */
export const SOURCES: readonly Address[] = Array.from({ length: 32 }, (_, index) =>
  ipv4(TEN + (index >> 2), 9_000 + (index & 3)),
);

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
