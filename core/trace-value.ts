/**
 * Plain data as bytes: commands, settings and whatever else of a trace is rare and of many shapes. What comes back equals
 * what went in, absent properties and undefined ones told apart, except that bytes are bytes of any kind.
 */
import { ByteWriter, type ByteReader } from './trace-bytes.ts';

const UNDEFINED = 0;
const FALSE = 1;
const TRUE = 2;
const INTEGER = 3;
const FLOAT = 4;
const TEXT = 5;
const BYTES = 6;
const LIST = 7;
const TABLE = 8;

/** Our deepest data has eight levels; deeper ones are damage, and must not overflow the stack. */
const DEPTH_MAX = 64;

const INTEGER_MAX = 2 ** 52;

/** Appends `value`, which is data all through: null is none of ours, and is written as undefined. */
function putValue(out: ByteWriter, value: unknown): void {
  // Of whatever has a fixed size.
  out.reserve(16);
  if (typeof value === 'number') return putNumber(out, value);
  if (typeof value === 'string') return putText(out, value);
  if (typeof value === 'boolean') return out.byte(value ? TRUE : FALSE);
  if (typeof value !== 'object' || value === null) return out.byte(UNDEFINED);
  if (value instanceof Uint8Array) return putBytes(out, value);
  if (Array.isArray(value)) return putList(out, value);
  return putTable(out, value);
}

export function encodeValue(value: unknown): Uint8Array {
  const out = new ByteWriter(new Uint8Array(256));
  putValue(out, value);
  return out.bytes.subarray(0, out.at);
}

/** The next value; throws a TraceDamage where there is none. */
export function takeValue(from: ByteReader, depth = 0): unknown {
  if (depth > DEPTH_MAX) throw from.damage('data nested too deep');
  const tag = from.byte();
  switch (tag) {
    case UNDEFINED:
      return undefined;
    case FALSE:
    case TRUE:
      return tag === TRUE;
    case INTEGER:
      return from.integer();
    case FLOAT:
      return takeFloat(from);
    case TEXT:
      return from.text();
    case BYTES:
      return from.raw(from.natural()).slice();
    case LIST:
      return takeList(from, depth + 1);
    case TABLE:
      return takeTable(from, depth + 1);
    default:
      throw from.damage(`data of kind ${tag}`);
  }
}

function putNumber(out: ByteWriter, value: number): void {
  const isSmall = Number.isInteger(value) && Math.abs(value) < INTEGER_MAX;
  if (isSmall && !Object.is(value, -0)) {
    out.byte(INTEGER);
    return out.integer(value);
  }
  out.byte(FLOAT);
  const words = new Uint8Array(8);
  new DataView(words.buffer).setFloat64(0, value);
  return out.raw(words);
}

function takeFloat(from: ByteReader): number {
  const bytes = from.raw(8);
  return new DataView(bytes.buffer, bytes.byteOffset, 8).getFloat64(0);
}

/** A code unit takes three bytes at most. */
function putText(out: ByteWriter, text: string): void {
  out.reserve(16 + 3 * text.length);
  out.byte(TEXT);
  out.text(text);
}

function putBytes(out: ByteWriter, bytes: Uint8Array): void {
  out.reserve(16 + bytes.length);
  out.byte(BYTES);
  out.natural(bytes.length);
  out.raw(bytes);
}

function putList(out: ByteWriter, list: readonly unknown[]): void {
  out.byte(LIST);
  out.natural(list.length);
  for (const item of list) putValue(out, item);
}

function putTable(out: ByteWriter, table: object): void {
  const entries = Object.entries(table);
  out.byte(TABLE);
  out.natural(entries.length);
  for (const [key, value] of entries) {
    out.reserve(16 + 3 * key.length);
    out.text(key);
    putValue(out, value);
  }
}

/** Each item takes a byte at least, so no count is believed that the bytes cannot hold. */
function takeList(from: ByteReader, depth: number): unknown[] {
  const count = from.bounded(from.left, 'a list of length');
  const list: unknown[] = [];
  for (let index = 0; index < count; index += 1) list.push(takeValue(from, depth));
  return list;
}

function takeTable(from: ByteReader, depth: number): unknown {
  const count = from.bounded(from.left, 'a table of size');
  const entries: [string, unknown][] = [];
  for (let index = 0; index < count; index += 1) {
    entries.push([from.text(), takeValue(from, depth)]);
  }
  return Object.fromEntries(entries);
}
