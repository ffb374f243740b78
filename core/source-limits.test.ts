/** Live flows per address and subnet: whom a limit counts together, and whom apart. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { address, cluster } from '../test/flow-rig.ts';
import { ipv4, ipv6, type Address } from './address.ts';
import type { ClusterConfig } from './contract.ts';
import { SourceLimits } from './source-limits.ts';

const seed = { first: 5, second: 6 };

describe('source limits', () => {
  test('no limit is never reached, and the first one begins to count, once', () => {
    const limits = new SourceLimits(4, seed);
    const client = address('192.0.2.1:1000');
    expect(limits.expect(cluster())).toBe(false);
    limits.add(cluster(), client);
    limits.subtract(cluster(), client);
    expect(limits.reached(cluster(), client)).toBe(false);
    expect(limits.sizes).toBeUndefined();
    expect(limits.expect(cluster({ maxFlowsPerSubnet: 3 }))).toBe(true);
    expect(limits.sizes).toEqual({ addresses: 0, subnets: 0 });
    expect(limits.expect(cluster({ maxFlowsPerIp: 3 }))).toBe(false);
  });

  test('a limit is reached by as many flows, and counting goes on while there is none', () => {
    const limits = counting(4);
    const client = address('192.0.2.1:1000');
    expect(limits.expect(cluster())).toBe(false);
    for (let flow = 0; flow < 3; flow += 1) limits.add(cluster(), client);
    expect(limits.reached(cluster(), client)).toBe(false);
    expect(limits.reached(cluster({ maxFlowsPerIp: 4 }), client)).toBe(false);
    expect(limits.reached(cluster({ maxFlowsPerIp: 3 }), client)).toBe(true);
    expect(limits.reached(cluster({ maxFlowsPerSubnet: 3 }), client)).toBe(true);
  });

  test('an address is one whatever its port and zone', () => {
    const limits = counting(4);
    limits.add(cluster(), address('[fe80::1%1]:1000'));
    expect(limits.flowsOfAddress(cluster(), address('[fe80::1%2]:2000'))).toBe(1);
    expect(limits.flowsOfAddress(cluster(), address('[fe80::2%1]:1000'))).toBe(0);
  });

  test('clusters are counted apart, and by name: new settings of one cluster keep its counts', () => {
    const limits = counting(4);
    const client = address('192.0.2.1:1000');
    limits.add(cluster(), client);
    expect(limits.flowsOfAddress(cluster({ cluster: 'ntp' }), client)).toBe(0);
    expect(limits.flowsOfAddress(cluster({ requests: 9 }), client)).toBe(1);
    limits.add(cluster({ cluster: 'ntp' }), client);
    limits.subtract(cluster(), client);
    expect(limits.flowsOfAddress(cluster(), client)).toBe(0);
    expect(limits.flowsOfAddress(cluster({ cluster: 'ntp' }), client)).toBe(1);
  });

  test('the families never meet: 192.0.2.1 and an IPv6 address that begins with its bits', () => {
    const limits = counting(4);
    const config = cluster({ subnetPrefixIpv4: 32, subnetPrefixIpv6: 32 });
    limits.add(config, ipv4(0xc0000201, 1));
    expect(limits.flowsOfSubnet(config, ipv6([0xc0000201, 0, 0, 0], 1))).toBe(0);
  });

  test.each([1, 31, 33, 63, 65, 97, 127])(
    'a prefix of %i bits keeps together what differs behind it, and apart what differs in it',
    (bits) => {
      const limits = counting(4);
      const config = cluster({ subnetPrefixIpv6: bits });
      const flipped = (bit: number): Address => {
        const words: [number, number, number, number] = [0x20010db8, 1, 2, 3];
        words[bit >> 5]! ^= 1 << (31 - (bit & 31));
        return ipv6(words, 9);
      };
      limits.add(config, ipv6([0x20010db8, 1, 2, 3], 1));
      expect(limits.flowsOfSubnet(config, flipped(bits))).toBe(1);
      expect(limits.flowsOfSubnet(config, flipped(bits - 1))).toBe(0);
    },
  );

  test('flows admitted under another prefix length are counted apart, and leave as they came', () => {
    const limits = counting(4);
    const [wide, narrow] = [cluster(), cluster({ subnetPrefixIpv4: 16 })];
    const client = address('192.0.2.1:1000');
    limits.add(wide, client);
    limits.add(narrow, client);
    expect([limits.flowsOfSubnet(wide, client), limits.flowsOfSubnet(narrow, client)]).toEqual([
      1, 1,
    ]);
    expect(limits.flowsOfAddress(wide, client)).toBe(2);
    limits.subtract(wide, client);
    expect([limits.flowsOfSubnet(wide, client), limits.flowsOfSubnet(narrow, client)]).toEqual([
      0, 1,
    ]);
  });

  test('when all flows are gone nothing is kept, and growth keeps what there is', () => {
    const limits = counting(1);
    limits.add(cluster(), address('192.0.2.1:1'));
    limits.grow(100);
    for (let n = 1; n < 100; n += 1) limits.add(cluster(), ipv4(0xc0000201 + n, 1));
    expect(limits.flowsOfSubnet(cluster(), address('192.0.2.200:1'))).toBe(100);
    for (let n = 0; n < 100; n += 1) limits.subtract(cluster(), ipv4(0xc0000201 + n, 1));
    expect(limits.sizes).toEqual({ addresses: 0, subnets: 0 });
  });

  test('growth before anything is counted is room for what is counted later', () => {
    const limits = new SourceLimits(1, seed);
    limits.grow(100);
    limits.expect(cluster({ maxFlowsPerIp: 1 }));
    for (let n = 0; n < 100; n += 1) limits.add(cluster(), ipv4(0x0a000000 + 256 * n, 1));
    expect(limits.sizes).toEqual({ addresses: 100, subnets: 100 });
  });
});

test('at every prefix length, 0 to 32 and 0 to 128, two addresses share a subnet iff they share those bits', () => {
  const word = fc.integer();
  const pair = fc
    .tuple(fc.boolean(), word, word, word, word, fc.integer({ min: 0, max: 128 }))
    .map(([v4, a, b, c, d, flipped]) => {
      const one = v4 ? ipv4(a, 1) : ipv6([a, b, c, d], 1);
      return [one, flip(one, v4 ? flipped % 33 : flipped)] as const;
    });
  fc.assert(
    fc.property(pair, fc.integer({ min: 0, max: 128 }), ([one, other], bits) => {
      const length = one.family === 4 ? bits % 33 : bits;
      const config = prefix(length);
      const limits = counting(2);
      limits.add(config, one);
      const shared = bitsOf(one).slice(0, length) === bitsOf(other).slice(0, length);
      expect(limits.flowsOfSubnet(config, other)).toBe(shared ? 1 : 0);
    }),
    { numRuns: 2_000 },
  );
});

/** What has begun to count. */
function counting(capacity: number): SourceLimits {
  const limits = new SourceLimits(capacity, seed);
  limits.expect(cluster({ maxFlowsPerIp: 1 }));
  return limits;
}

function prefix(length: number): ClusterConfig {
  return cluster({ subnetPrefixIpv4: length, subnetPrefixIpv6: length });
}

/** The address with one bit turned; all bits as they were when there is no such bit. */
function flip(client: Address, bit: number): Address {
  const words = [client.a, client.b, client.c, client.d];
  const index = bit >> 5;
  if (index < words.length) words[index] = words[index]! ^ (1 << (31 - (bit & 31)));
  const [a = 0, b = 0, c = 0, d = 0] = words;
  return client.family === 4 ? ipv4(a, 1) : ipv6([a, b, c, d], 1);
}

function bitsOf({ family, a, b, c, d }: Address): string {
  const words = family === 4 ? [a] : [a, b, c, d];
  return words.map((one) => (one >>> 0).toString(2).padStart(32, '0')).join('');
}
