/** Whatever tables do, what they have not marked as used is zero: a snapshot leaves it out without a look. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { addressOf } from '../test/plane-bench.ts';
import { ipv4, ipv6, type Address } from './address.ts';
import { listenerId, socketId, type SocketId } from './brand.ts';
import { COUNT_KEY_WORDS, CountingTable } from './counting-table.ts';
import { Deadlines } from './deadlines.ts';
import { FlowTable } from './flow-table.ts';
import { fieldOf, fieldsOf, isObject } from './snapshot-objects.ts';
import { instant, seconds } from './time.ts';
import { UpstreamTable } from './upstream-table.ts';
import { UsedPart } from './used-part.ts';

const SEED = { first: 1, second: 2 };
const CAPACITY = 200;

/** What a table can do with a number, whatever it is. */
interface Subject {
  readonly table: object;
  readonly add: (n: number) => void;
  readonly remove: (n: number) => void;
  readonly grow: () => void;
}

test.each([
  ['flows', () => flows(false)],
  ['flows by local address', () => flows(true)],
  ['deadlines', deadlines],
  ['counts', counts],
  ['upstream sockets', upstreams],
])('a table of %s has nothing where it has no mark', (_, make) => {
  const op = fc.tuple(fc.constantFrom('add', 'add', 'add', 'remove', 'grow'), fc.nat(99));
  let marked = 0;
  let unmarked = 0;
  fc.assert(
    fc.property(fc.array(op, { minLength: 1, maxLength: 120 }), (ops) => {
      const subject = make();
      for (const [what, n] of ops) {
        if (what === 'add') subject.add(n);
        else if (what === 'remove') subject.remove(n);
        else subject.grow();
      }
      for (const used of usedIn(subject.table)) {
        const rest = new Uint8Array(used.table.buffer).slice();
        const before = rest.length;
        let kept = 0;
        const runs = used.runs();
        for (let at = 0; at < runs.length; at += 2) {
          const [begin = 0, end = 0] = [runs[at], runs[at + 1]];
          expect(end).toBeLessThanOrEqual(before);
          rest.fill(0, begin, end);
          kept += end - begin;
        }
        expect(rest.every((byte) => byte === 0)).toBe(true);
        marked += kept;
        unmarked += before - kept;
      }
    }),
    { numRuns: 200 },
  );
  expect(Math.min(marked, unmarked)).toBeGreaterThan(0);
});

test('a record that lies on a border marks both sides of it', () => {
  const table = new Int32Array(3_000);
  const used = new UsedPart(table, 3);
  expect(used.runs()).toEqual([]);
  used.mark(85);
  expect(used.runs()).toEqual([0, 2_048]);
  used.mark(999);
  expect(used.runs()).toEqual([0, 2_048, 11_264, 12_000]);
  used.mark(200);
  expect(used.runs()).toEqual([0, 3_072, 11_264, 12_000]);
});

function flows(byLocal: boolean): Subject {
  const table = new FlowTable(CAPACITY, SEED, byLocal);
  const slots = new Map<number, number>();
  let capacity = CAPACITY;
  return {
    table,
    add: (n) => {
      if (slots.has(n)) return;
      const [client, local] = [clientOf(n), byLocal ? addressOf('10.0.0.1:53') : undefined];
      slots.set(n, table.insert(table.hashOf(client, local), client, local));
    },
    remove: (n) => {
      const slot = slots.get(n);
      if (slot !== undefined) table.remove(slot);
      slots.delete(n);
    },
    grow: () => table.grow((capacity += 50)),
  };
}

function deadlines(): Subject {
  const table = new Deadlines(CAPACITY);
  const slots = new Set<number>();
  let capacity = CAPACITY;
  return {
    table,
    add: (n) => {
      if (slots.has(n)) table.touch(n, instant(1), seconds(n % 3));
      else table.add(n, instant(1), seconds(30));
      slots.add(n);
    },
    remove: (n) => {
      if (slots.delete(n)) table.remove(n);
    },
    grow: () => table.grow((capacity += 50)),
  };
}

function counts(): Subject {
  const table = new CountingTable(CAPACITY, SEED);
  const keyOf = (n: number): Int32Array => new Int32Array(COUNT_KEY_WORDS).fill(n);
  let capacity = CAPACITY;
  return {
    table,
    add: (n) => table.add(keyOf(n)),
    remove: (n) => {
      if (table.get(keyOf(n)) > 0) table.subtract(keyOf(n));
    },
    grow: () => table.grow((capacity += 50)),
  };
}

function upstreams(): Subject {
  const table = new UpstreamTable(CAPACITY);
  const sockets = new Map<number, SocketId>();
  let capacity = CAPACITY;
  let serial = 0;
  return {
    table,
    add: (n) => {
      if (sockets.has(n)) return;
      serial += 1;
      const socket = socketId(serial, listenerId(0));
      table.add(socket, n, 1, 2);
      sockets.set(n, socket);
    },
    remove: (n) => {
      const socket = sockets.get(n);
      if (socket !== undefined) table.remove(socket);
      sockets.delete(n);
    },
    grow: () => table.grow((capacity += 50)),
  };
}

function clientOf(n: number): Address {
  return n % 2 === 0 ? ipv4(0x0a000000 + n, n) : ipv6([0x20010db8, 0, 0, n], n);
}

/** Those of a table and of what it is made of. */
function usedIn(value: unknown): UsedPart[] {
  if (value instanceof UsedPart) return [value];
  if (!isObject(value) || ArrayBuffer.isView(value)) return [];
  return fieldsOf(value).flatMap((field) => usedIn(fieldOf(value, field)));
}
