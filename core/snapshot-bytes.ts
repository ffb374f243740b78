/**
 * Numbers, text and blocks of bytes of a snapshot, written and read one after the other. A reader believes nothing: whatever
 * its bytes say, it ends with a value or with a SnapshotError.
 */
import { assert } from './assert.ts';
import { SnapshotError } from './snapshot-error.ts';

/** The bits of one double, whichever way round the processor has them: the fingerprint says which. */
const FLOAT = new Float64Array(1);
const FLOAT_BYTES = new Uint8Array(FLOAT.buffer);

export class ByteWriter {
  private bytes = new Uint8Array(16_384);
  private at = 0;

  byte(value: number): void {
    if (this.at === this.bytes.length) this.grow(1);
    this.bytes[this.at] = value;
    this.at += 1;
  }

  /** A whole number from 0 to 2^53, seven bits a byte. */
  count(value: number): void {
    let rest = value;
    while (rest >= 128) {
      this.byte((rest % 128) | 128);
      rest = Math.floor(rest / 128);
    }
    this.byte(rest);
  }

  float(value: number): void {
    FLOAT[0] = value;
    for (const byte of FLOAT_BYTES) this.byte(byte);
  }

  /** UTF-16 code units, each as a number: any string at all comes back. */
  text(value: string): void {
    this.count(value.length);
    for (let at = 0; at < value.length; at += 1) this.count(value.charCodeAt(at));
  }

  /** All that was written: a view. */
  get written(): Uint8Array {
    return this.bytes.subarray(0, this.at);
  }

  private grow(room: number): void {
    const bytes = new Uint8Array(2 * this.bytes.length + room);
    bytes.set(this.bytes);
    this.bytes = bytes;
  }
}

export class ByteReader {
  private readonly bytes: Uint8Array;
  private at: number;
  private readonly end: number;

  /** Reads from `start` until `end`. */
  constructor(bytes: Uint8Array, start: number, end: number) {
    this.bytes = bytes;
    this.at = start;
    this.end = end;
  }

  /** Bytes that are left. */
  get left(): number {
    return this.end - this.at;
  }

  byte(): number {
    if (this.at >= this.end) throw new SnapshotError('the snapshot ends in the middle of a value');
    this.at += 1;
    return this.bytes[this.at - 1] ?? 0;
  }

  count(): number {
    let value = 0;
    for (let scale = 1; scale <= 2 ** 49; scale *= 128) {
      const byte = this.byte();
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
    throw new SnapshotError('a number of the snapshot has no end');
  }

  /** The number of things that follow, each of at least one byte. */
  countOfItems(): number {
    const count = this.count();
    if (count > this.left) throw new SnapshotError('the snapshot ends in the middle of a list');
    return count;
  }

  float(): number {
    for (let at = 0; at < FLOAT_BYTES.length; at += 1) FLOAT_BYTES[at] = this.byte();
    return FLOAT[0] ?? 0;
  }

  text(): string {
    const length = this.countOfItems();
    let value = '';
    for (let at = 0; at < length; at += 1) value += String.fromCharCode(this.count());
    return value;
  }

  /** The next so many bytes: a view. */
  block(length: number): Uint8Array {
    if (length > this.left) throw new SnapshotError('the snapshot ends in the middle of a table');
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }
}

/** Words of a checksum. */
export const CHECKSUM_WORDS = 4;

/**
 * Adds words to a checksum, in four lanes that the processor works on at once. Each step is a bijection of its lane, so
 * one changed word always shows; it finds accidents, and no forger. Of several parts each has a multiple of four words.
 */
export function addToChecksum(sum: Int32Array, words: Int32Array): void {
  assert(words.length % CHECKSUM_WORDS === 0, 'a part of a checksum ends with a step');
  let [a = 0, b = 0, c = 0, d = 0] = sum;
  for (let at = 0; at < words.length; at += CHECKSUM_WORDS) {
    a = Math.imul(a ^ (words[at] ?? 0), 0x9e3779b1);
    b = Math.imul(b ^ (words[at + 1] ?? 0), 0x85ebca6b);
    c = Math.imul(c ^ (words[at + 2] ?? 0), 0xc2b2ae35);
    d = Math.imul(d ^ (words[at + 3] ?? 0), 0x27d4eb2f);
  }
  sum[0] = a;
  sum[1] = b;
  sum[2] = c;
  sum[3] = d;
}

/** Zeros are told from data in pieces of so many words: smaller ones would be many, and larger ones hardly ever zero. */
const PIECE = 256;

/** Where a buffer is not zero, of one that nobody has marked the use of: begin and end in bytes of one run after the other. */
export function dataRuns(buffer: ArrayBuffer): number[] {
  if (buffer.byteLength % 4 !== 0) return [0, buffer.byteLength];
  const words = new Int32Array(buffer);
  const runs: number[] = [];
  let end = -1;
  for (let at = 0; at < words.length; at += PIECE) {
    const next = Math.min(at + PIECE, words.length);
    if (isZero(words, at, next)) continue;
    if (end === at) runs.pop();
    else runs.push(4 * at);
    runs.push(4 * next);
    end = next;
  }
  return runs;
}

function isZero(words: Int32Array, from: number, to: number): boolean {
  for (let at = from; at < to; at += 1) if (words[at] !== 0) return false;
  return true;
}
