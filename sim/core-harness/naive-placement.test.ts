import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { ipv4 } from '../../core/address.ts';
import { Maglev } from '../../core/balancing/maglev.ts';
import { rendezvousScore } from '../../core/balancing/rendezvous.ts';
import { remainder, type Hash64 } from '../../core/hash.ts';
import { affinityKey, backendHash } from '../../core/placement.ts';
import { dgramHeader } from '../../core/proxy-protocol.ts';
import {
  naiveAffinityKey,
  naiveBackendHash,
  naiveHeader,
  naiveMaglevTable,
  naiveScore,
} from './naive-placement.ts';

const word = fc.integer({ min: 0, max: 0xffff_ffff });
const hash = fc.record({ high: word, low: word });
const address = fc.tuple(word, fc.nat(65_535)).map(([octets, port]) => ipv4(octets, port));

test('the naive affinity key is the key of the core', () => {
  fc.assert(
    fc.property(hash, address, fc.boolean(), (seed, client, withPort) => {
      const key = affinityKey(seed, client, withPort);
      expect(naiveAffinityKey(whole(seed), client, withPort)).toBe(whole(key));
    }),
  );
});

test('the naive hash of a backend is the hash of the core, and so is its score', () => {
  fc.assert(
    fc.property(hash, hash, address, fc.integer({ min: 1, max: 255 }), (key, seed, to, weight) => {
      const strength = backendHash(key, seed, to);
      expect(naiveBackendHash(whole(key), whole(seed), to)).toBe(whole(strength));
      expect(naiveScore(whole(strength), weight)).toBe(rendezvousScore(strength, weight));
    }),
  );
});

test('the naive Maglev table is the table of the core, at any prime size and weights', () => {
  const weighted = fc.record({ address, weight: fc.integer({ min: 1, max: 255 }) });
  const lists = fc.uniqueArray(weighted, {
    maxLength: 6,
    selector: (one) => `${one.address.a}:${one.address.port}`,
  });
  fc.assert(
    fc.property(hash, fc.constantFrom(7, 11, 13, 251, 509), lists, (seed, size, list) => {
      const maglev = new Maglev(seed, size);
      maglev.backendsChanged(list.map((one, id) => ({ ...one, id: `${id}`, backup: false })));
      expect(naiveMaglevTable(whole(seed), size, list)).toEqual([...maglev.table]);
    }),
  );
});

test('a key falls into the slot that division says', () => {
  fc.assert(
    fc.property(hash, fc.integer({ min: 1, max: 65_537 }), (key, size) => {
      expect(remainder(key, size)).toBe(Number(whole(key) % BigInt(size)));
    }),
  );
});

test('the naive PROXY header is the header of the core', () => {
  fc.assert(
    fc.property(address, address, (client, backend) => {
      expect([...naiveHeader(client, backend)]).toEqual([...dgramHeader(client, backend)]);
    }),
  );
});

function whole({ high, low }: Hash64): bigint {
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}
