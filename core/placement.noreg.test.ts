/** Pins placement to what Sōzu 2.1.0 does: a change here moves clients between backends of a mixed fleet. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parseAddress, type Address } from './address.ts';
import { present } from './assert.ts';
import { Maglev } from './balancing/maglev.ts';
import { Rendezvous, rendezvousScore } from './balancing/rendezvous.ts';
import type { Backend } from './contract.ts';
import { PLACEMENT_SEED, type Hash64 } from './hash.ts';
import { affinityKey, backendHash } from './placement.ts';

interface Vectors {
  readonly seed: string;
  readonly affinity: readonly { client: string; sourceIp: string; sourceIpPort: string }[];
  readonly hash: readonly { key: string; address: string; h: string }[];
  readonly sets: readonly {
    readonly name: string;
    readonly backends: readonly { address: string; weight: number }[];
    readonly hrw: readonly { key: string; index: number; scores: readonly number[] }[];
    readonly hrw10000: { counts: readonly number[]; digest: string };
    readonly maglev: readonly {
      readonly size: number;
      readonly counts: readonly number[];
      readonly first32: readonly number[];
      readonly digest: string;
    }[];
  }[];
}

const vectors: Vectors = JSON.parse(
  readFileSync(new URL('./testdata/placement-vectors.json', import.meta.url), 'utf8'),
);

test('the placement seed is the fleet’s', () => {
  expect(hex(PLACEMENT_SEED)).toBe(vectors.seed);
});

test.each(vectors.affinity)('the affinity keys of $client are the fleet’s', (vector) => {
  const client = address(vector.client);
  expect(hex(affinityKey(PLACEMENT_SEED, client, false))).toBe(vector.sourceIp);
  expect(hex(affinityKey(PLACEMENT_SEED, client, true))).toBe(vector.sourceIpPort);
});

test.each(vectors.hash)('key $key hashes $address to $h', (vector) => {
  const hash = backendHash(parseHash(vector.key), PLACEMENT_SEED, address(vector.address));
  expect(hex(hash)).toBe(vector.h);
});

describe.each(vectors.sets)('the set "$name"', (set) => {
  const backends = set.backends.map((backend, index) => ({
    id: `b${index}`,
    address: address(backend.address),
    weight: backend.weight,
    backup: false,
  }));

  test.each(set.hrw)('HRW places key $key at $index', (vector) => {
    const key = parseHash(vector.key);
    expect(winner(new Rendezvous(PLACEMENT_SEED), backends, key)).toBe(vector.index);
    for (const [index, backend] of backends.entries()) {
      const hash = backendHash(key, PLACEMENT_SEED, backend.address);
      const expected = present(vector.scores[index], 'one score a backend');
      // V8 and Rust round `ln` apart in the last place.
      const tolerance = 2 * unitInLastPlace(expected);
      expect(Math.abs(rendezvousScore(hash, backend.weight) - expected)).toBeLessThanOrEqual(
        tolerance,
      );
    }
  });

  test('HRW places ten thousand keys as the fleet does', () => {
    const policy = new Rendezvous(PLACEMENT_SEED);
    const chosen: number[] = [];
    let z = 1n;
    for (let count = 0; count < 10_000; count += 1) {
      z = BigInt.asUintN(64, z * 6364136223846793005n + 1442695040888963407n);
      chosen.push(winner(policy, backends, parseHash(`0x${z.toString(16).padStart(16, '0')}`)));
    }
    expect(countsOf(chosen, backends.length)).toEqual(set.hrw10000.counts);
    expect(digest(chosen)).toBe(set.hrw10000.digest);
  });

  test.each(set.maglev)('the Maglev table of $size slots is the fleet’s', (vector) => {
    const policy = new Maglev(PLACEMENT_SEED, vector.size);
    policy.backendsChanged(backends);
    const table = [...policy.table];
    expect(table.slice(0, 32)).toEqual(vector.first32);
    expect(countsOf(table, backends.length)).toEqual(vector.counts);
    expect(digest(table)).toBe(vector.digest);
  });
});

test('the vectors of the specification’s appendix A hold', () => {
  const five = [1, 2, 3, 4, 5].map((n) => backendAt(`127.0.0.${n}:${7_999 + n}`, 100));
  const policy = new Rendezvous(PLACEMENT_SEED);
  const winners = [0, 1, 2, 3, 42, 99, 12_345].map((low) => winner(policy, five, { high: 0, low }));
  expect(winners).toEqual([4, 0, 1, 1, 2, 2, 1]);

  expect(firstSlots(five, 1_009, 24)).toEqual([
    0, 1, 1, 4, 0, 3, 1, 2, 2, 3, 1, 1, 1, 3, 2, 0, 0, 2, 0, 1, 1, 0, 4, 2,
  ]);
  expect(firstSlots(five.slice(0, 3), 65_537, 24)).toEqual([
    2, 2, 1, 1, 1, 0, 1, 0, 2, 0, 2, 1, 2, 0, 1, 0, 1, 0, 2, 0, 2, 1, 2, 2,
  ]);
  const weighted = [backendAt('127.0.0.1:8001', 100), backendAt('127.0.0.2:8002', 400)];
  expect(firstSlots(weighted, 1_009, 16)).toEqual([1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1]);
});

function firstSlots(backends: readonly Backend[], size: number, count: number): number[] {
  const policy = new Maglev(PLACEMENT_SEED, size);
  policy.backendsChanged(backends);
  return [...policy.table.subarray(0, count)];
}

function winner(policy: Rendezvous, backends: readonly Backend[], key: Hash64): number {
  return backends.indexOf(present(policy.select(backends, key), 'a winner'));
}

function backendAt(at: string, weight: number): Backend {
  return { id: at, address: address(at), weight, backup: false };
}

function address(text: string): Address {
  return present(parseAddress(text), `an address: ${text}`);
}

function parseHash(text: string): Hash64 {
  const digits = text.slice(2).padStart(16, '0');
  return {
    high: Number.parseInt(digits.slice(0, 8), 16),
    low: Number.parseInt(digits.slice(8), 16),
  };
}

function hex(hash: Hash64): string {
  const half = (word: number): string => word.toString(16).padStart(8, '0');
  return `0x${half(hash.high)}${half(hash.low)}`;
}

function countsOf(indices: readonly number[], length: number): number[] {
  return Array.from({ length }, (_, index) => indices.filter((at) => at === index).length);
}

function digest(indices: readonly number[]): string {
  const sum = indices.reduce((d, index) => BigInt.asUintN(64, d * 31n + BigInt(index) + 1n), 0n);
  return `0x${sum.toString(16).padStart(16, '0')}`;
}

function unitInLastPlace(value: number): number {
  return 2 ** (Math.floor(Math.log2(value)) - 52);
}
