/** Socket ids to flows, against a Map; serials pass 2^32 without a stumble. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { listenerId, listenerOf, serialOf, socketId, type SocketId } from './brand.ts';
import { UpstreamTable } from './upstream-table.ts';

describe('socket ids', () => {
  test('say which listener they serve, at every serial below 2^43', () => {
    const serials = fc.oneof(fc.integer({ min: 1, max: 2 ** 43 - 1 }), fc.constant(2 ** 43 - 1));
    fc.assert(
      fc.property(serials, fc.nat(1_023), (serial, listener) => {
        const id = socketId(serial, listenerId(listener));
        expect(Number.isSafeInteger(id)).toBe(true);
        expect(listenerOf(id)).toBe(listener);
        expect(serialOf(id)).toBe(serial % 2 ** 32);
      }),
    );
  });

  test('there is a bound on listeners', () => {
    expect(() => listenerId(1_024)).toThrow('bound');
    expect(() => listenerId(-1)).toThrow('bound');
  });
});

describe('upstream table', () => {
  const [one, two] = [socket(1), socket(2)];

  test('an open socket leads to its flow, a closed one nowhere', () => {
    const table = new UpstreamTable(2);
    table.add(one, 7, 8, 9);
    expect(table.slotOf(one)).toBe(7);
    expect(table.ownersOf(one)).toEqual({ cluster: 8, backend: 9 });
    expect(table.slotOf(two)).toBeUndefined();
    table.remove(one);
    expect(table.slotOf(one)).toBeUndefined();
    expect(table.count).toBe(0);
  });

  test('asking for the owners of a closed socket, or closing it twice, is a bug of the caller', () => {
    const table = new UpstreamTable(2);
    expect(() => table.ownersOf(one)).toThrow('open');
    expect(() => table.remove(one)).toThrow('open');
  });

  test('serials 2^32 apart share a bucket and are told apart', () => {
    const table = new UpstreamTable(4);
    const serials = [5, 5 + 2 ** 32, 5 + 2 ** 33, 5 + 2 ** 42];
    for (const [slot, serial] of serials.entries()) table.add(socket(serial), slot, 0, 0);
    table.remove(socket(5));
    expect(serials.map((serial) => table.slotOf(socket(serial)))).toEqual([undefined, 1, 2, 3]);
  });

  test('sockets opened in a row are not neighbours: whoever closes the oldest has few to walk over', () => {
    for (const count of [1_000, 16_384, 100_000]) {
      const table = new UpstreamTable(count);
      for (let serial = 1; serial <= count; serial += 1) table.add(socket(serial), serial, 0, 0);
      expect(longestRun(table)).toBeLessThan(40);
      // A lap later, with every tenth left from the beginning.
      for (let serial = 1; serial <= count; serial += 1) {
        if (serial % 10 === 0) continue;
        table.remove(socket(serial));
        table.add(socket(count + serial), serial, 0, 0);
      }
      expect(longestRun(table)).toBeLessThan(40);
    }
  });

  test('more sockets than there is room for is a bug of the caller', () => {
    const table = new UpstreamTable(8);
    for (let serial = 1; serial <= 8; serial += 1) table.add(socket(serial), serial, 0, 0);
    expect(() => table.add(socket(9), 9, 0, 0)).toThrow('no more sockets');
  });
});

test('under openings, closings and growth in any order the table is a Map', () => {
  // Few serials, of which some differ by 2^32: they meet in the buckets.
  const serials = fc
    .tuple(fc.integer({ min: 1, max: 14 }), fc.nat(2))
    .map(([low, high]) => low + high * 2 ** 32);
  const act = fc.tuple(serials, fc.nat(2), fc.nat(20));
  fc.assert(
    fc.property(fc.array(act, { maxLength: 200, size: 'max' }), (acts) => {
      const table = new UpstreamTable(8);
      const model = new Map<SocketId, number>();
      let capacity = 8;
      for (const [serial, listener, what] of acts) {
        if (what === 0 && capacity < 100) table.grow((capacity += 7));
        const id = socket(serial, listener);
        if (model.has(id)) {
          table.remove(id);
          model.delete(id);
        } else if (model.size < capacity) {
          table.add(id, what, what + 1, what + 2);
          model.set(id, what);
        }
        expect(table.slotOf(id)).toBe(model.get(id));
        expect(table.count).toBe(model.size);
        for (const [known, slot] of model) {
          expect(table.slotOf(known)).toBe(slot);
          expect(table.ownersOf(known)).toEqual({ cluster: slot + 1, backend: slot + 2 });
        }
      }
    }),
    { numRuns: 60 },
  );
});

/** Taken buckets in a row, by the table's own keys. */
function longestRun(table: UpstreamTable): number {
  const keys = Object.values(table).find((one) => one instanceof Float64Array);
  let [run, longest] = [0, 0];
  for (const key of keys ?? []) {
    run = key === 0 ? 0 : run + 1;
    longest = Math.max(longest, run);
  }
  expect(longest).toBeGreaterThan(0);
  return longest;
}

function socket(serial: number, listener = 0): SocketId {
  return socketId(serial, listenerId(listener));
}
