/**
 * A rolling digest of what a run did: two runs that agree on it did the same. Values are typed, so that 1, "1" and true
 * differ, and so do 0 and −0. Fast rather than secret.
 */
import { assert } from '../core/assert.ts';

export class Digest {
  #high = 0x243f6a88;
  #low = -0x7a5cf72d;
  readonly #float = new DataView(new ArrayBuffer(8));

  /** Any number but NaN, which equals nothing, itself included. */
  number(value: number): this {
    if (Object.is(value, value | 0)) return this.#word(TAG_INTEGER).#word(value);
    assert(!Number.isNaN(value), 'a digest takes no NaN');
    this.#float.setFloat64(0, value);
    return this.#word(TAG_FLOAT).#word(this.#float.getInt32(0)).#word(this.#float.getInt32(4));
  }

  boolean(value: boolean): this {
    return this.#word(value ? TAG_TRUE : TAG_FALSE);
  }

  /** By its UTF-16 code units. */
  string(value: string): this {
    this.#word(TAG_STRING).#word(value.length);
    for (let index = 0; index < value.length; index++) this.#word(value.charCodeAt(index));
    return this;
  }

  bytes(value: Uint8Array): this {
    this.#word(TAG_BYTES).#word(value.length);
    let word = 0;
    for (let index = 0; index < value.length; index++) {
      word = (word << 8) | (value[index] ?? 0);
      if (index % 4 === 3) this.#word(word);
    }
    return value.length % 4 === 0 ? this : this.#word(word);
  }

  /** That something is not there: keeps an absent value apart from every present one. */
  absent(): this {
    return this.#word(TAG_ABSENT);
  }

  /** The upper 32 of the 64 bits so far, unsigned. A step's log keeps the two words instead of a string. */
  get high(): number {
    return finish(this.#high ^ rotate(this.#low, 16));
  }

  /** The lower 32 bits, unsigned. */
  get low(): number {
    return finish(this.#low + this.#high);
  }

  /** The digest so far as 16 hexadecimal digits. */
  print(): string {
    return hex(this.high) + hex(this.low);
  }

  #word(word: number): this {
    this.#high = Math.imul(rotate(this.#high, 5) ^ word, 0x9e3779b1);
    this.#low = Math.imul(rotate(this.#low, 13) + word, 0x85ebca77) ^ (this.#high >>> 15);
    return this;
  }
}

const TAG_INTEGER = 1;
const TAG_FLOAT = 2;
const TAG_FALSE = 3;
const TAG_TRUE = 4;
const TAG_STRING = 5;
const TAG_BYTES = 6;
const TAG_ABSENT = 7;

function rotate(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}

/** Spreads the last words over all bits, and makes the word unsigned. */
function finish(word: number): number {
  const mixed = Math.imul(word ^ (word >>> 16), 0x7feb352d);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}

function hex(word: number): string {
  return word.toString(16).padStart(8, '0');
}
