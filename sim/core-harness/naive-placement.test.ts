import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { ipv4, ipv6 } from '../../core/address.ts';
import { Maglev } from '../../core/balancing/maglev.ts';
import { rendezvousScore } from '../../core/balancing/rendezvous.ts';
import { remainder, type Hash64 } from '../../core/hash.ts';
import { affinityKey, backendHash } from '../../core/placement.ts';
import { dgramHeader } from '../../core/proxy-protocol.ts';
import { createRandom } from '../../core/random.ts';
import {
  naiveAffinityKey,
  naiveBackendHash,
  naiveHeader,
  naiveMaglevTable,
  naiveScore,
} from './naive-placement.ts';
import { NaiveRandom } from './naive-random.ts';

const word = fc.integer({ min: 0, max: 0xffff_ffff });
const hash = fc.record({ high: word, low: word });
const address = fc.tuple(word, fc.nat(65_535)).map(([octets, port]) => ipv4(octets, port));
/** Of either family; never IPv4-mapped, which drivers unmap. */
const client = fc.oneof(
  address,
  fc
    .tuple(word, word, word, fc.nat(65_535))
    .map(([b, c, d, port]) => ipv6([0x20010db8, b, c, d], port)),
);

test('the naive affinity key is the key of the core', () => {
  fc.assert(
    fc.property(hash, client, fc.boolean(), (seed, from, withPort) => {
      const key = affinityKey(seed, from, withPort);
      expect(naiveAffinityKey(whole(seed), from, withPort)).toBe(whole(key));
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
    fc.property(client, address, (from, backend) => {
      expect([...naiveHeader(from, backend)]).toEqual([...dgramHeader(from, backend)]);
    }),
  );
});

test('the naive generator draws what the core draws', () => {
  fc.assert(
    fc.property(hash, fc.array(fc.integer({ min: 1, max: 1_000 })), (seed, bounds) => {
      const naive = new NaiveRandom(seed);
      const random = createRandom(seed);
      expect(bounds.map((bound) => naive.below(bound))).toEqual(
        bounds.map((bound) => random.below(bound)),
      );
    }),
  );
});

function whole({ high, low }: Hash64): bigint {
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}
