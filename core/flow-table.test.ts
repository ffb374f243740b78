/** The flow table against a Map, with a table so small that every key collides. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatAddress, ipv4, ipv6, type Address } from './address.ts';
import { FlowTable } from './flow-table.ts';

const seed = { first: 3, second: 4 };
const home = ipv4(0x0a000001, 53);

describe('flow table', () => {
  test('finds what was inserted, and nothing else', () => {
    const table = new FlowTable(4, seed, false);
    const slot = insert(table, client(1));
    expect(find(table, client(1))).toBe(slot);
    expect(find(table, client(2))).toBeUndefined();
    expect(table.clientOf(slot)).toEqual(client(1));
    expect(table.localOf(slot)).toBeUndefined();
  });

  test('every part of the client address is part of the key', () => {
    const base = ipv6([1, 2, 3, 4], 5, 6);
    const others: Address[] = [
      { ...base, a: 9 },
      { ...base, b: 9 },
      { ...base, c: 9 },
      { ...base, d: 9 },
      { ...base, port: 9 },
      { ...base, scope: 9 },
      ipv4(1, 5),
      ipv6([1, 0, 0, 0], 5),
    ];
    const table = new FlowTable(16, seed, false);
    const keys = [base, ...others];
    // All under one hash: only the keys tell them apart.
    const slots = keys.map((address) => {
      expect(table.find(7, address, undefined)).toBeUndefined();
      return table.insert(7, address, undefined);
    });
    expect(new Set(slots).size).toBe(keys.length);
    expect(new Set(keys.map((address) => table.hashOf(address, undefined))).size).toBe(keys.length);
    for (const [index, address] of keys.entries()) {
      expect(table.find(7, address, undefined)).toBe(slots[index]);
      expect(table.clientOf(slots[index]!)).toEqual(address);
    }
  });

  test('the local address is part of the key exactly when the table says so', () => {
    const locals = [undefined, home, { ...home, port: 54 }, ipv6([0, 0, 0, 0x0a000001], 53)];
    const wildcard = new FlowTable(4, seed, true);
    const slots = locals.map((local) => insert(wildcard, client(1), local));
    expect(slots).toEqual([0, 1, 2, 3]);
    for (const [slot, local] of locals.entries()) {
      expect(find(wildcard, client(1), local)).toBe(slot);
      expect(wildcard.localOf(slot)).toEqual(local);
    }
    const plain = new FlowTable(4, seed, false);
    const slot = insert(plain, client(1), home);
    expect(find(plain, client(1), undefined)).toBe(slot);
  });

  test('two keys with one hash are told apart', () => {
    const table = new FlowTable(4, seed, false);
    const [one, two] = [client(1), client(2)];
    expect(table.insert(7, one, undefined)).toBe(0);
    expect(table.insert(7, two, undefined)).toBe(1);
    expect(table.find(7, one, undefined)).toBe(0);
    expect(table.find(7, two, undefined)).toBe(1);
    expect(table.find(7, client(3), undefined)).toBeUndefined();
    table.remove(0);
    expect(table.find(7, two, undefined)).toBe(1);
  });

  test('the last slot freed is the next one used, with fresh counters', () => {
    const table = new FlowTable(4, seed, false);
    for (const n of [0, 1, 2]) insert(table, client(n));
    table.countRequest(1);
    table.setHeaderDue(1, true);
    table.remove(0);
    table.remove(1);
    expect(insert(table, client(8))).toBe(1);
    expect([table.requestsOf(1), table.responsesOf(1), table.headerDue(1)]).toEqual([0, 0, false]);
    expect(insert(table, client(9))).toBe(0);
    expect(insert(table, client(10))).toBe(3);
    expect(table.highWater).toBe(4);
  });

  test('counts saturate at 2^32 − 1', () => {
    const table = new FlowTable(1, seed, false);
    insert(table, client(1));
    const records: unknown = Reflect.get(table, 'records');
    if (!(records instanceof Int32Array)) throw new Error('records are one array');
    records.fill(-2, 8, 10);
    expect([table.countRequest(0), table.countResponse(0)]).toEqual([0xffffffff, 0xffffffff]);
    expect([table.countRequest(0), table.countResponse(0)]).toEqual([0xffffffff, 0xffffffff]);
    expect([table.requestsOf(0), table.responsesOf(0)]).toEqual([0xffffffff, 0xffffffff]);
  });

  test('requests and responses are counted apart, and the header mark disturbs neither', () => {
    const table = new FlowTable(2, seed, false);
    const slot = insert(table, client(1));
    table.setUpstream(slot, 11, 22);
    expect([table.countRequest(slot), table.countRequest(slot)]).toEqual([1, 2]);
    expect(table.countResponse(slot)).toBe(1);
    table.setHeaderDue(slot, true);
    expect(table.headerDue(slot)).toBe(true);
    expect(table.isLive(slot)).toBe(true);
    table.setHeaderDue(slot, false);
    expect(table.isLive(slot)).toBe(true);
    expect([table.requestsOf(slot), table.responsesOf(slot)]).toEqual([2, 1]);
    expect([table.backendOf(slot), table.configOf(slot)]).toEqual([11, 22]);
  });

  test('a flow that lingers keeps its slot, and its key leads to the next flow of its client', () => {
    const table = new FlowTable(4, seed, false);
    insert(table, client(1));
    table.setUpstream(0, 11, 22);
    table.linger(0, 'Idle');
    expect([table.isLive(0), table.isLingering(0), table.isInGrace(0)]).toEqual([
      true,
      true,
      false,
    ]);
    expect(find(table, client(1))).toBeUndefined();
    expect(insert(table, client(1))).toBe(1);
    expect(find(table, client(1))).toBe(1);
    table.grow(40);
    expect([table.isIndexed(0), table.isIndexed(1), find(table, client(1))]).toEqual([
      false,
      true,
      1,
    ]);
    table.linger(0, 'RequestsReached');
    expect([table.endOf(0), table.endOf(1), table.isInGrace(0)]).toEqual([
      'RequestsReached',
      'Idle',
      true,
    ]);
    expect([table.clientOf(0), table.backendOf(0), table.count]).toEqual([client(1), 11, 2]);
    table.remove(0);
    expect(find(table, client(1))).toBe(1);
    expect(insert(table, client(2))).toBe(0);
    expect([table.isLingering(0), table.isInGrace(0), table.endOf(0)]).toEqual([
      false,
      false,
      'Idle',
    ]);
  });

  test('serial numbers count up from 1 and are exact beyond 2^32; credit begins without a limit', () => {
    const table = new FlowTable(2, seed, false);
    insert(table, client(1));
    expect([table.serialOf(0), table.creditOf(0)]).toEqual([1, -1]);
    table.setCredit(0, 77);
    table.countRequest(0);
    expect([table.serialOf(0), table.creditOf(0), table.requestsOf(0)]).toEqual([1, 77, 1]);
    Reflect.set(table, 'serials', 2 ** 52);
    insert(table, client(2));
    table.grow(3);
    expect([table.serialOf(0), table.serialOf(1)]).toEqual([1, 2 ** 52 + 1]);
    table.remove(0);
    insert(table, client(3));
    expect([table.serialOf(0), table.creditOf(0)]).toEqual([2 ** 52 + 2, -1]);
  });

  test('any number may be asked for; only the slot of a live flow is one', () => {
    const table = new FlowTable(4, seed, false);
    insert(table, client(1));
    table.countRequest(0);
    expect(table.isLive(0)).toBe(true);
    for (const slot of [1, 3, 4, -1, 0.0625, 0.5, Number.NaN, Infinity, 2 ** 32, 2 ** 53]) {
      expect(table.isLive(slot), String(slot)).toBe(false);
    }
    expect(() => table.remove(1)).toThrow('live');
  });

  test('a full table takes no more, and a table never shrinks', () => {
    const table = new FlowTable(2, seed, false);
    insert(table, client(1));
    insert(table, client(2));
    expect(() => insert(table, client(3))).toThrow('room');
    expect(() => table.grow(1)).toThrow('shrinks');
  });

  test('a flow costs at most 256 bytes, index included', () => {
    for (const byLocal of [false, true]) {
      expect(new FlowTable(65_536, seed, byLocal).byteLength / 65_536).toBeLessThanOrEqual(256);
    }
  });
});

test('under insertions, removals and growth in any order the table is a Map', () => {
  const act = fc.record({ n: fc.nat(11), local: fc.nat(2), what: fc.nat(9) });
  const seeds = fc.record({ first: fc.integer(), second: fc.integer() });
  fc.assert(
    fc.property(
      seeds,
      fc.boolean(),
      fc.boolean(),
      fc.array(act, { maxLength: 200, size: 'max' }),
      (tableSeed, byLocal, collide, acts) => {
        const table = new FlowTable(8, tableSeed, byLocal);
        const model = new Map<string, { slot: number; key: Key }>();
        for (const { n, local: which, what } of acts) {
          const key: Key = { client: client(n), local: LOCALS[which] };
          if (what === 0 && table.capacity < 40) table.grow(table.capacity + 3);
          toggle(table, model, key, byLocal, collide);
          agree(table, model, collide);
        }
      },
    ),
    { numRuns: 30 },
  );
});

interface Key {
  readonly client: Address;
  readonly local: Address | undefined;
}

const LOCALS = [undefined, home, ipv6([0x20010db8, 0, 0, 1], 53)];

/** Removes the key if it is there, else inserts it. With `collide` only three hashes are in use. */
function toggle(
  table: FlowTable,
  model: Map<string, { slot: number; key: Key }>,
  key: Key,
  byLocal: boolean,
  collide: boolean,
): void {
  const name = `${formatAddress(key.client)} ${byLocal && key.local ? formatAddress(key.local) : ''}`;
  const known = model.get(name);
  const hash = hashOf(table, key, collide);
  expect(table.find(hash, key.client, key.local)).toBe(known?.slot);
  if (known !== undefined) {
    table.remove(known.slot);
    model.delete(name);
  } else if (table.count < table.capacity) {
    model.set(name, { slot: table.insert(hash, key.client, key.local), key });
  }
}

function agree(
  table: FlowTable,
  model: Map<string, { slot: number; key: Key }>,
  collide: boolean,
): void {
  expect(table.count).toBe(model.size);
  const slots = [...model.values()].map(({ slot }) => slot);
  expect(new Set(slots).size).toBe(model.size);
  for (const { slot, key } of model.values()) {
    expect(table.isLive(slot)).toBe(true);
    expect(table.clientOf(slot)).toEqual(key.client);
    expect(table.find(hashOf(table, key, collide), key.client, key.local)).toBe(slot);
  }
}

/** Hashes near the end of the index, so that probes wrap around. */
function hashOf(table: FlowTable, key: Key, collide: boolean): number {
  const hash = table.hashOf(key.client, key.local);
  return collide ? -1 - (hash & 1) : hash;
}

function client(n: number): Address {
  return n % 3 === 0 ? ipv6([0xfe800000, 0, 0, n], 1_000, n) : ipv4(0xc0000200 + n, 1_000);
}

function insert(table: FlowTable, address: Address, local?: Address): number {
  return table.insert(table.hashOf(address, local), address, local);
}

function find(table: FlowTable, address: Address, local?: Address): number | undefined {
  return table.find(table.hashOf(address, local), address, local);
}
