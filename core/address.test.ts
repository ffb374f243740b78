/** Addresses as text and as integers: what is read is what was written, and nothing hostile gets in or throws. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  formatAddress,
  formatIp,
  ipv4,
  ipv6,
  isLoopback,
  isMapped,
  isUnanswerable,
  isUnspecified,
  parseAddress,
  parseIp,
  sameAddress,
  sameIp,
  toIpv6,
  unmap,
  type Address,
} from './address.ts';

const word = fc.integer();
const port = fc.nat(65_535);
/** Words full of zero groups too, or `::` would never be written. */
const patchy = fc.oneof(word, fc.constantFrom(0, 1, 0x10000, 0xffff, -0x10000, -1));
const addresses: fc.Arbitrary<Address> = fc.oneof(
  fc.tuple(word, port).map(([a, p]) => ipv4(a, p)),
  fc
    .tuple(patchy, patchy, patchy, patchy, port, fc.constantFrom(0, 0, 1, 0x7fffffff))
    .map(([a, b, c, d, p, scope]) => ipv6([a, b, c, d], p, scope)),
  fc.tuple(word, port).map(([a, p]) => ipv6([0, 0, 0xffff, a], p)),
);

describe('reading', () => {
  test('addresses with a port, in both families, with and without a zone', () => {
    expect(parseAddress('10.0.0.1:53')).toEqual(ipv4(0x0a000001, 53));
    expect(parseAddress('255.255.255.255:65535')).toEqual(ipv4(-1, 65_535));
    expect(parseAddress('[2001:db8::1]:53')).toEqual(ipv6([0x20010db8, 0, 0, 1], 53));
    expect(parseAddress('[fe80::1%3]:0')).toEqual(ipv6([0xfe800000, 0, 0, 1], 0, 3));
    expect(parseAddress('[::ffff:10.0.0.1]:1')).toEqual(ipv6([0, 0, 0xffff, 0x0a000001], 1));
    expect(parseAddress('[1:2:3:4:5:6:7:8]:9')).toEqual(
      ipv6([0x10002, 0x30004, 0x50006, 0x70008], 9),
    );
    expect(parseIp('::', 7)).toEqual(ipv6([0, 0, 0, 0], 7));
    expect(parseIp('1::', 7)).toEqual(ipv6([0x10000, 0, 0, 0], 7));
    expect(parseIp('192.0.2.1', 7)).toEqual(ipv4(0xc0000201, 7));
  });

  test.each([
    '',
    ':',
    '::',
    ':53',
    '10.0.0.1',
    '10.0.0.1:',
    '10.0.0.1:-1',
    '10.0.0.1:65536',
    '10.0.0.1:5 3',
    '10.0.0.1:0x35',
    '10.0.0:53',
    '10.0.0.0.1:53',
    '10..0.1:53',
    '.0.0.1:53',
    '10.0.0.256:53',
    '010.0.0.1:53',
    '10.0.0.00:53',
    ' 10.0.0.1:53',
    '10.0.0.1 :53',
    '１０.0.0.1:53',
    'localhost:53',
    'example.org:53',
    '2001:db8::1:53',
    '[2001:db8::1]',
    '[2001:db8::1:53',
    '[]:53',
    '[10.0.0.1]:53',
    '[1:2:3:4:5:6:7]:53',
    '[1:2:3:4:5:6:7:8:9]:53',
    '[1:2:3:4:5:6:7:8::]:53',
    '[::1::]:53',
    '[:::]:53',
    '[:1:2:3:4:5:6:7]:53',
    '[12345::]:53',
    '[g::]:53',
    '[1.2.3.4::]:53',
    '[::1.2.3]:53',
    '[::1.2.3.4:5]:53',
    '[fe80::1%]:53',
    '[fe80::1%eth0]:53',
    '[fe80::1%1%2]:53',
    '[fe80::1%4294967296]:53',
    '[[::1]]:53',
  ])('refuses %j', (text) => {
    expect(parseAddress(text)).toBeUndefined();
  });

  test('no text whatever makes it throw, and what it reads it writes in a form that reads the same', () => {
    const pieces = fc.constantFrom(
      '[',
      ']',
      ':',
      '::',
      '.',
      '%',
      '0',
      '1',
      '255',
      'ffff',
      'é',
      '\0',
    );
    const texts = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(pieces).map((all) => all.join('')),
    );
    fc.assert(
      fc.property(texts, (text) => {
        for (const read of [parseAddress(text), parseIp(text, 53)]) {
          if (read !== undefined) expect(parseAddress(formatAddress(read))).toEqual(read);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('writing', () => {
  test('what is written is read back', () => {
    fc.assert(
      fc.property(addresses, (address) => {
        expect(parseAddress(formatAddress(address))).toEqual(address);
        expect(parseIp(formatIp(address), address.port)).toEqual(address);
      }),
      { numRuns: 1_000 },
    );
  });

  test.each([
    // RFC 5952: §4.1 no leading zeros, §4.2.1 as short as can be, §4.2.2 no `::` for one group, §4.2.3 the longest
    // run and the first of equals, §4.3 small letters, §5 mapped addresses with a dotted quad.
    ['2001:0db8:0000:0000:0000:0000:0000:0001', '2001:db8::1'],
    ['2001:db8:0:0:0:0:2:1', '2001:db8::2:1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:DB8:0:0:0:0:ABCD:EF', '2001:db8::abcd:ef'],
    ['0:0:0:0:0:ffff:c000:0201', '::ffff:192.0.2.1'],
    ['0:0:0:0:0:0:0:0', '::'],
    ['0:0:0:0:0:0:0:1', '::1'],
    ['1:0:0:0:0:0:0:0', '1::'],
    ['0:0:1:2:3:4:5:6', '::1:2:3:4:5:6'],
    ['1:2:3:4:5:6:0:0', '1:2:3:4:5:6::'],
    ['0:1:2:3:4:5:6:7', '0:1:2:3:4:5:6:7'],
    ['fe80:0:0:0:0:0:0:1%3', 'fe80::1%3'],
  ])('%s is written %s', (long, canonical) => {
    const address = parseIp(long, 0);
    expect(address && formatIp(address)).toBe(canonical);
    expect(parseIp(canonical, 0)).toEqual(address);
  });
});

describe('kinds', () => {
  test('words are signed 32-bit integers, however they were given', () => {
    expect(ipv4(0xffffffff, 1)).toEqual(ipv4(-1, 1));
    expect(ipv6([0xffffffff, 0xfe800000, 0, 0], 1)).toEqual(ipv6([-1, -0x1800000, 0, 0], 1));
  });

  test('an address equals itself and nothing that differs in any part', () => {
    const base = ipv6([1, 2, 3, 4], 5, 6);
    expect(sameAddress(base, { ...base })).toBe(true);
    expect(sameIp(base, { ...base, port: 9 })).toBe(true);
    expect(sameAddress(base, { ...base, port: 9 })).toBe(false);
    for (const part of ['a', 'b', 'c', 'd', 'scope'] as const) {
      expect(sameIp(base, { ...base, [part]: 9 }), part).toBe(false);
    }
    expect(sameIp(ipv4(0, 1), ipv6([0, 0, 0, 0], 1))).toBe(false);
  });

  test('mapping and unmapping undo each other, and touch nothing else', () => {
    fc.assert(
      fc.property(addresses, (address) => {
        expect(isMapped(toIpv6(address))).toBe(address.family === 4 || isMapped(address));
        expect(unmap(toIpv6(unmap(address)))).toEqual(unmap(address));
        expect(unmap(address).family).toBe(isMapped(address) ? 4 : address.family);
      }),
    );
    expect(isMapped(ipv6([0, 0, 0, 0x0a000001], 1))).toBe(false);
    expect(isMapped(ipv6([0, 1, 0xffff, 0x0a000001], 1))).toBe(false);
  });

  test.each([
    ['192.0.2.1:0', true],
    ['0.0.0.0:1', true],
    ['[::]:1', true],
    ['224.0.0.0:1', true],
    ['239.255.255.255:1', true],
    ['255.255.255.255:1', true],
    ['[ff00::]:1', true],
    ['[ffff::1]:1', true],
    ['223.255.255.255:1', false],
    ['240.0.0.0:1', false],
    ['0.0.0.1:1', false],
    ['[::1]:1', false],
    ['[feff::1]:1', false],
  ])('%s cannot be answered: %s', (text, expected) => {
    const address = parseAddress(text);
    expect(address && isUnanswerable(address)).toBe(expected);
  });

  test.each([
    ['127.0.0.1:1', true],
    ['127.255.255.255:1', true],
    ['[::1]:1', true],
    ['126.255.255.255:1', false],
    ['128.0.0.1:1', false],
    ['[::2]:1', false],
    ['[1::1]:1', false],
  ])('%s is a loopback address: %s', (text, expected) => {
    const address = parseAddress(text);
    expect(address && isLoopback(address)).toBe(expected);
    expect(address && isUnspecified(address)).toBe(false);
  });
});
