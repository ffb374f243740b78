import * as fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { formatIp, ipv4, ipv6, parseIp, toIpv6, type Address } from '../../core/index.ts';
import { AddressTexts, fromRemote, ipText } from './address-text.ts';

vi.mock('node:os', () => ({
  networkInterfaces: () => ({
    lo: [{ address: '127.0.0.1', family: 'IPv4' }],
    eth7: [
      { address: '10.0.0.7', family: 'IPv4' },
      { address: 'fe80::7', family: 'IPv6', scopeid: 7 },
    ],
  }),
}));

const LINK_LOCAL: Address = ipv6([0xfe800000, 0, 0, 1], 53, 7);

describe('the source of a datagram', () => {
  test('is read for both families', () => {
    expect(fromRemote('10.0.0.1', 53)).toEqual(ipv4(0x0a000001, 53));
    expect(fromRemote('2001:db8::1', 53)).toEqual(ipv6([0x20010db8, 0, 0, 1], 53));
  });

  test('is IPv4 when it came mapped', () => {
    expect(fromRemote('::ffff:10.0.0.1', 53)).toEqual(ipv4(0x0a000001, 53));
  });

  test('keeps its zone, by the name of the interface or by number', () => {
    expect(fromRemote('fe80::1%eth7', 53)).toEqual(LINK_LOCAL);
    expect(fromRemote('fe80::1%7', 53)).toEqual(LINK_LOCAL);
  });

  test('has no zone when the interface is gone', () => {
    expect(fromRemote('fe80::1%gone', 53)).toEqual({ ...LINK_LOCAL, scope: 0 });
  });

  test('is undefined for what is no address', () => {
    for (const text of ['', 'localhost', '10.0.0', ':::', 'x%eth7']) {
      expect(fromRemote(text, 53)).toBeUndefined();
    }
  });
});

describe('the text of an address', () => {
  test('names the zone as the operating system does', () => {
    expect(ipText(LINK_LOCAL)).toBe('fe80::1%eth7');
    expect(ipText({ ...LINK_LOCAL, scope: 99 })).toBe('fe80::1%99');
    expect(ipText(ipv4(0x0a000001, 53))).toBe('10.0.0.1');
  });

  test('comes back as the same address', () => {
    fc.assert(
      fc.property(addresses, (address) => {
        expect(parseIp(ipText(address), address.port)).toEqual(address);
      }),
    );
  });

  test('is remembered, and never mistaken for that of another address', () => {
    const texts = { 4: new AddressTexts(4), 6: new AddressTexts(6) };
    fc.assert(
      fc.property(fc.array(fc.oneof(addresses, neighbours), { minLength: 1 }), (list) => {
        for (const address of [...list, ...list]) {
          if (address.family === 4) expect(texts[4].of(address)).toBe(formatIp(address));
          expect(texts[6].of(address)).toBe(formatIp(toIpv6(address)));
        }
      }),
    );
  });

  test('does not depend on the port', () => {
    const texts = new AddressTexts(4);
    expect(texts.of(ipv4(0x0a000001, 1))).toBe('10.0.0.1');
    expect(texts.of(ipv4(0x0a000001, 2))).toBe('10.0.0.1');
  });
});

const port = fc.nat({ max: 65_535 });
const word = fc.integer();

const addresses: fc.Arbitrary<Address> = fc.oneof(
  fc.tuple(word, port).map(([a, p]) => ipv4(a, p)),
  fc.tuple(word, word, word, word, port).map(([a, b, c, d, p]) => ipv6([a, b, c, d], p)),
);

/** Few enough to share places in the cache. */
const neighbours: fc.Arbitrary<Address> = fc
  .tuple(fc.nat({ max: 3 }), fc.nat({ max: 3 }))
  .map(([a, b]) => ipv6([a, b, a, b * 2 ** 30], 53));
