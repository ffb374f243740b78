import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ipv4, ipv6, parseAddress, toIpv6, type Address } from './address.ts';
import { present } from './assert.ts';
import { decodeDgramHeader, dgramHeader } from './proxy-protocol.ts';

const SIGNATURE = '0d 0a 0d 0a 00 0d 0a 51 55 49 54 0a';

describe('the header that is written', () => {
  test('dgram_header_ipv4_exact_bytes: 28 bytes', () => {
    const header = dgramHeader(at('125.25.10.1:8080'), at('10.4.5.8:4200'));
    expect(hex(header)).toBe(`${SIGNATURE} 21 12 00 0c 7d 19 0a 01 0a 04 05 08 1f 90 10 68`);
    expect(header).toHaveLength(28);
  });

  test('dgram_header_ipv6_exact_bytes: 52 bytes', () => {
    const header = dgramHeader(at('[::1]:8080'), at('[::1]:4200'));
    const loopback = `${'00 '.repeat(15)}01`;
    expect(hex(header)).toBe(`${SIGNATURE} 21 22 00 24 ${loopback} ${loopback} 1f 90 10 68`);
    expect(header).toHaveLength(52);
  });

  test('mixed_family_emits_unspec is not what we do: the IPv4 side is mapped, so the client is not lost', () => {
    const mapped = `${'00 '.repeat(10)}ff ff`;
    const db8 = `20 01 0d b8 ${'00 '.repeat(11)}05`;
    const ports = '04 d2 00 35';
    expect(hex(dgramHeader(at('192.0.2.7:1234'), at('[2001:db8::5]:53')))).toBe(
      `${SIGNATURE} 21 22 00 24 ${mapped} c0 00 02 07 ${db8} ${ports}`,
    );
    expect(hex(dgramHeader(at('[2001:db8::5]:1234'), at('192.0.2.7:53')))).toBe(
      `${SIGNATURE} 21 22 00 24 ${db8} ${mapped} c0 00 02 07 ${ports}`,
    );
  });

  test('prepend_shifts_payload: the header’s length is where the payload begins, and the payload is kept', () => {
    fc.assert(
      fc.property(
        addresses,
        addresses,
        fc.uint8Array({ maxLength: 100 }),
        (client, to, payload) => {
          const header = dgramHeader(client, to);
          const datagram = concat(header, payload);
          const decoded = decodeDgramHeader(datagram);
          expect(decoded).toMatchObject({ kind: 'Proxied', payloadOffset: header.length });
          expect(datagram.subarray(header.length)).toEqual(payload);
        },
      ),
    );
  });

  test('is read back as it was meant, mixed families in their IPv6 form', () => {
    fc.assert(
      fc.property(addresses, addresses, (client, to) => {
        const mixed = client.family !== to.family;
        expect(decodeDgramHeader(dgramHeader(client, to))).toEqual({
          kind: 'Proxied',
          source: mixed ? toIpv6(client) : client,
          destination: mixed ? toIpv6(to) : to,
          payloadOffset: client.family === 4 && !mixed ? 28 : 52,
        });
      }),
    );
  });
});

describe('the header that is read', () => {
  test('parses_ppv2_ipv4_header: source, destination and the payload behind them', () => {
    const datagram = bytes(`${SIGNATURE} 21 12 00 0c 7d 19 0a 01 0a 04 05 08 1f 90 10 68 71`);
    expect(decodeDgramHeader(datagram)).toEqual({
      kind: 'Proxied',
      source: at('125.25.10.1:8080'),
      destination: at('10.4.5.8:4200'),
      payloadOffset: 28,
    });
  });

  test('un_proxied_datagram_passes_through: without the whole signature all of it is payload', () => {
    for (const text of ['', '71', '0d 0a 0d 0a', SIGNATURE.slice(0, -3), '0d 0a '.repeat(20)]) {
      expect(decodeDgramHeader(bytes(text.trim()))).toEqual({ kind: 'NotProxied' });
    }
  });

  test('TLVs behind the addresses are skipped by their length', () => {
    const tlv = '04 00 03 aa bb cc';
    const head = `${SIGNATURE} 21 12 00 12 7d 19 0a 01 0a 04 05 08 1f 90 10 68 ${tlv}`;
    expect(decodeDgramHeader(bytes(`${head} 71 71`))).toMatchObject({
      kind: 'Proxied',
      payloadOffset: 34,
    });
    expect(decodeDgramHeader(bytes(head.slice(0, -3)))).toEqual({
      kind: 'Malformed',
      problem: 'truncated',
    });
  });

  test('a length above 255 counts both of its bytes', () => {
    const datagram = concat(bytes(`${SIGNATURE} 21 12 01 2c`), new Uint8Array(301));
    expect(decodeDgramHeader(datagram)).toMatchObject({ kind: 'Proxied', payloadOffset: 316 });
  });

  test.each([
    ['LOCAL without addresses', '20 00 00 00 71', 16],
    ['LOCAL with addresses, which mean nothing', `20 12 00 0c ${'01 '.repeat(12)}71`, 28],
    ['LOCAL of a family nobody knows', '20 f7 00 01 00 71', 17],
    ['UNSPEC', '21 00 00 00 71', 16],
    ['UNSPEC with bytes to skip', '21 00 00 02 aa bb 71', 18],
    ['a stream in a datagram', `21 11 00 0c ${'01 '.repeat(12)}71`, 28],
    ['a UNIX socket', '21 32 00 01 00 71', 17],
  ])('%s says only where the payload begins', (_, rest, payloadOffset) => {
    expect(decodeDgramHeader(bytes(`${SIGNATURE} ${rest}`))).toEqual({
      kind: 'Local',
      payloadOffset,
    });
  });

  test.each([
    ['nothing behind the signature', '', 'truncated'],
    ['no length', '21 12 00', 'truncated'],
    ['a length beyond the datagram', '21 12 00 0c 01 02', 'truncated'],
    ['IPv4 in fewer than 12 bytes', `21 12 00 0b ${'01 '.repeat(20)}`, 'truncated'],
    ['IPv6 in fewer than 36 bytes', `21 22 00 23 ${'01 '.repeat(60)}`, 'truncated'],
    ['LOCAL beyond the datagram', '20 00 00 01', 'truncated'],
    ['version 1', '11 12 00 00', 'version'],
    ['version 3', '31 12 00 00', 'version'],
    ['an unknown command', '22 12 00 00', 'command'],
    ['an unknown family', '21 42 00 00', 'family'],
    ['an unknown transport', '21 13 00 00', 'family'],
  ])('%s is malformed', (_, rest, problem) => {
    const datagram = bytes(`${SIGNATURE} ${rest}`.trim());
    expect(decodeDgramHeader(datagram)).toEqual({ kind: 'Malformed', problem });
  });

  test('no bytes make it throw or point outside the datagram', () => {
    const hostile = fc
      .tuple(
        fc.constantFrom(
          '',
          SIGNATURE,
          `${SIGNATURE} 21`,
          `${SIGNATURE} 21 12`,
          `${SIGNATURE} 21 22`,
        ),
        fc.uint8Array({ maxLength: 80 }),
      )
      .map(([head, tail]) => concat(bytes(head), tail));
    const cut = fc
      .tuple(addresses, addresses, fc.nat({ max: 52 }), fc.nat({ max: 255 }))
      .map(([client, to, length, byte]) => {
        const header = dgramHeader(client, to);
        header[length % header.length] = byte;
        return header.subarray(0, length);
      });
    fc.assert(
      fc.property(fc.oneof(hostile, cut), (datagram) => {
        const decoded = decodeDgramHeader(datagram);
        if (decoded.kind !== 'Proxied' && decoded.kind !== 'Local') return;
        const smallest = decoded.kind === 'Local' ? 16 : decoded.source.family === 4 ? 28 : 52;
        expect(decoded.payloadOffset).toBeGreaterThanOrEqual(smallest);
        expect(decoded.payloadOffset).toBeLessThanOrEqual(datagram.length);
      }),
      { numRuns: 1_000 },
    );
  });
});

const words = fc.integer({ min: -0x80000000, max: 0x7fffffff });
const ports = fc.integer({ min: 0, max: 65_535 });
const addresses: fc.Arbitrary<Address> = fc.oneof(
  fc.tuple(words, ports).map(([word, port]) => ipv4(word, port)),
  fc.tuple(words, words, words, words, ports).map(([a, b, c, d, port]) => ipv6([a, b, c, d], port)),
);

function at(text: string): Address {
  return present(parseAddress(text), `an address: ${text}`);
}

function hex(octets: Uint8Array): string {
  return Array.from(octets, (octet) => octet.toString(16).padStart(2, '0')).join(' ');
}

function bytes(text: string): Uint8Array {
  const octets = text === '' ? [] : text.trim().split(' ');
  return Uint8Array.from(octets, (octet) => Number.parseInt(octet, 16));
}

function concat(head: Uint8Array, tail: Uint8Array): Uint8Array {
  const whole = new Uint8Array(head.length + tail.length);
  whole.set(head);
  whole.set(tail, head.length);
  return whole;
}
