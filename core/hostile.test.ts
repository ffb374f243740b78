/** Which datagrams come from ourselves, and which carry a header that is not theirs to write. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { address, bytes } from '../test/flow-rig.ts';
import { ipv4, ipv6, isLoopback, isUnspecified, unmap, type Address } from './address.ts';
import {
  looksLikeProxyHeader,
  OwnAddresses,
  type OwnAddressesOptions,
  type OwnKind,
} from './hostile.ts';
import { dgramHeader } from './proxy-protocol.ts';

describe('addresses of our own', () => {
  test('a listener is known by address and port, a backend likewise, everybody else is a stranger', () => {
    const own = ours({ listeners: ['192.0.2.1:53'], backends: ['10.0.0.1:53'] });
    expect(kind(own, '192.0.2.1:53')).toBe('listener');
    expect(kind(own, '10.0.0.1:53')).toBe('backend');
    expect(kind(own, '192.0.2.1:54')).toBeUndefined();
    expect(kind(own, '10.0.0.2:53')).toBeUndefined();
    expect(kind(own, '[::1]:53')).toBeUndefined();
  });

  test('nobody is ours while nothing is configured', () => {
    expect(kind(ours({}), '127.0.0.1:53', '127.0.0.1:53')).toBeUndefined();
  });

  test('an address that is both is a listener, so lifting the rule for backends starts no loop', () => {
    const both = { listeners: ['192.0.2.1:53'], backends: ['192.0.2.1:53', '192.0.2.1:53'] };
    expect(kind(ours(both), '192.0.2.1:53')).toBe('listener');
    expect(
      kind(ours({ listeners: ['0.0.0.0:53'], backends: ['127.0.0.1:53'] }), '127.0.0.1:53'),
    ).toBe('listener');
  });

  test('a wildcard listener is every loopback address and every address of the machine, on its port', () => {
    const own = ours({ listeners: ['0.0.0.0:53'], hosts: ['192.0.2.1:0', '[2001:db8::1]:0'] });
    expect(kind(own, '127.0.0.1:53')).toBe('listener');
    expect(kind(own, '127.9.9.9:53')).toBe('listener');
    expect(kind(own, '192.0.2.1:53')).toBe('listener');
    expect(kind(own, '192.0.2.1:54')).toBeUndefined();
    expect(kind(own, '[::1]:53')).toBeUndefined();
    expect(kind(own, '[2001:db8::1]:53')).toBeUndefined();
  });

  test('a client that asks from the port of a wildcard listener is a stranger', () => {
    const own = ours({ listeners: ['0.0.0.0:123'], hosts: ['192.0.2.1:0'] });
    expect(kind(own, '198.51.100.7:123', '192.0.2.1:123')).toBeUndefined();
  });

  test('the address a datagram was sent to is one of this machine, known before or not', () => {
    const own = ours({ listeners: ['0.0.0.0:53'] });
    expect(kind(own, '192.0.2.9:53', '192.0.2.9:53')).toBe('listener');
    expect(kind(own, '192.0.2.9:53', '192.0.2.8:53')).toBeUndefined();
    expect(kind(own, '192.0.2.9:53')).toBeUndefined();
  });

  test(':: receives IPv4 too, unless it is bound for IPv6 only', () => {
    const hosts = ['192.0.2.1:0', '[2001:db8::1]:0'];
    const dual = ours({ listeners: ['[::]:53'], hosts });
    expect(kind(dual, '192.0.2.1:53')).toBe('listener');
    expect(kind(dual, '[2001:db8::1]:53')).toBe('listener');
    expect(kind(dual, '[::1]:53')).toBe('listener');
    const single = ours({ listeners: ['[::]:53'], hosts, ipv6Only: true });
    expect(kind(single, '192.0.2.1:53')).toBeUndefined();
    expect(kind(single, '127.0.0.1:53')).toBeUndefined();
    expect(kind(single, '[2001:db8::1]:53')).toBe('listener');
  });

  test('mapped addresses in the configuration are IPv4, and zones do not matter', () => {
    const listeners = ['[::ffff:192.0.2.1]:53', '[::ffff:0.0.0.0]:54'];
    const own = ours({ listeners, backends: ['[fe80::1%3]:53'] });
    expect(kind(own, '192.0.2.1:53')).toBe('listener');
    expect(kind(own, '127.0.0.1:54')).toBe('listener');
    expect(kind(own, '[fe80::1%4]:53')).toBe('backend');
  });

  test('the address of a machine alone is nobody: without a wildcard any program may ask from it', () => {
    const own = ours({ listeners: ['192.0.2.1:53'], hosts: ['192.0.2.9:0'] });
    expect(kind(own, '192.0.2.9:53')).toBeUndefined();
    expect(own.kindOf(ipv4(address('192.0.2.9:1').a, 0), undefined)).toBeUndefined();
  });
});

test('any configuration agrees with a naive reading, whatever the seed', () => {
  const ip = fc.oneof(
    fc.constantFrom(0, 0x7f000001, 0x0a000001, 0x0a000002).map((word) => ipv4(word, 0)),
    fc.constantFrom(0, 1, 2).map((d) => ipv6([0, 0, 0, d], 0)),
    fc.constantFrom(0, 0x0a000001).map((d) => ipv6([0, 0, 0xffff, d], 0)),
  );
  const endpoint = fc
    .tuple(ip, fc.integer({ min: 1, max: 3 }))
    .map(([one, port]): Address => ({ ...one, port }));
  const options = fc.record({
    listeners: fc.array(fc.record({ address: endpoint, ipv6Only: fc.boolean() }), { maxLength: 4 }),
    backends: fc.array(endpoint, { maxLength: 4 }),
    hosts: fc.array(endpoint, { maxLength: 3 }),
    seed: fc.record({ first: fc.integer(), second: fc.integer() }),
  });
  fc.assert(
    fc.property(options, endpoint, fc.option(endpoint, { nil: undefined }), (one, src, local) => {
      const [from, to] = [unmap(src), local === undefined ? undefined : unmap(local)];
      expect(new OwnAddresses(one).kindOf(from, to)).toBe(naive(one, from, to));
    }),
    { numRuns: 3_000 },
  );
});

test('a thousand backends are told apart from a thousand neighbours', () => {
  const backends = Array.from({ length: 1_000 }, (_, n) => ipv4(0x0a000000 + 2 * n, 53));
  const own = new OwnAddresses({
    listeners: [],
    backends,
    hosts: [],
    seed: { first: 1, second: 2 },
  });
  for (const backend of backends) {
    expect(own.kindOf(backend, undefined)).toBe('backend');
    expect(own.kindOf(ipv4(backend.a + 1, 53), undefined)).toBeUndefined();
  }
});

describe('a PROXY header in front of a client datagram', () => {
  test('every header that we write looks like one', () => {
    const [v4, v6] = [address('192.0.2.1:1000'), address('[2001:db8::1]:53')];
    for (const header of [dgramHeader(v4, v4), dgramHeader(v6, v6), dgramHeader(v4, v6)]) {
      expect(looksLikeProxyHeader(header)).toBe(true);
      expect(looksLikeProxyHeader(header.subarray(0, 12))).toBe(true);
      expect(looksLikeProxyHeader(header.subarray(0, 11))).toBe(false);
      for (let at = 0; at < 12; at += 1) {
        const other = header.map((byte, index) => (index === at ? byte ^ 1 : byte));
        expect(looksLikeProxyHeader(other)).toBe(false);
      }
    }
  });

  test('the text form of version 1, an empty datagram and plain payloads do not', () => {
    for (const text of ['', 'PROXY UDP4 1.1.1.1 2.2.2.2 1 2\r\n', 'hello, dear backend']) {
      expect(looksLikeProxyHeader(bytes(text))).toBe(false);
    }
  });
});

/** Scans everything. Listeners first: an address that is both is a listener's. */
function naive(
  options: OwnAddressesOptions,
  src: Address,
  local: Address | undefined,
): OwnKind | undefined {
  const sameIp = (one: Address): boolean =>
    JSON.stringify({ ...unmap(one), port: 0 }) === JSON.stringify({ ...src, port: 0 });
  const machine = local === undefined ? options.hosts : [...options.hosts, local];
  const isListener = options.listeners.some(({ address: written, ipv6Only }) => {
    const bound = unmap(written);
    if (bound.port !== src.port) return false;
    if (!isUnspecified(bound)) return sameIp(bound);
    const receives = bound.family === src.family || (bound.family === 6 && !ipv6Only);
    return receives && (isLoopback(src) || machine.some(sameIp));
  });
  if (isListener) return 'listener';
  const isBackend = options.backends.some((one) => one.port === src.port && sameIp(one));
  return isBackend ? 'backend' : undefined;
}

function ours(config: {
  readonly listeners?: readonly string[];
  readonly backends?: readonly string[];
  readonly hosts?: readonly string[];
  readonly ipv6Only?: boolean;
}): OwnAddresses {
  const { listeners = [], backends = [], hosts = [], ipv6Only = false } = config;
  return new OwnAddresses({
    listeners: listeners.map((text) => ({ address: address(text), ipv6Only })),
    backends: backends.map(address),
    hosts: hosts.map(address),
    seed: { first: 5, second: 6 },
  });
}

function kind(own: OwnAddresses, src: string, local?: string): OwnKind | undefined {
  return own.kindOf(address(src), local === undefined ? undefined : address(local));
}
