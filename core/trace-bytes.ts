/**
 * Bytes of a trace, one after the other. The writer is on the path of every datagram, so it neither checks nor grows: what
 * is written behind the end is lost, and `at` tells. The reader trusts no length that it has read.
 */
import type { Address } from './address.ts';

/** Largest first byte of a number that fits in one. */
const ONE_BYTE = 0x80;

const NO_ADDRESS = 0;
const IPV4 = 4;
const IPV6 = 6;
const IPV6_SCOPED = 7;

export class ByteWriter {
  bytes: Uint8Array;
  /** Where the next byte goes. Above `bytes.length`: what was written last is not whole. */
  at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  /** Makes room for so many more bytes, for those who are not in a hurry. */
  reserve(count: number): void {
    if (this.at + count <= this.bytes.length) return;
    const grown = new Uint8Array(Math.max(this.at + count, this.bytes.length * 2));
    grown.set(this.bytes.subarray(0, this.at));
    this.bytes = grown;
  }

  byte(value: number): void {
    this.bytes[this.at] = value;
    this.at += 1;
  }

  /** Four bytes, the lowest first. */
  word(value: number): void {
    const { bytes, at } = this;
    bytes[at] = value;
    bytes[at + 1] = value >>> 8;
    bytes[at + 2] = value >>> 16;
    bytes[at + 3] = value >>> 24;
    this.at = at + 4;
  }

  /** A natural number below 2^53, seven bits a byte, the lowest first. */
  natural(value: number): void {
    const { bytes } = this;
    let { at } = this;
    let rest = value;
    while (rest >= ONE_BYTE) {
      bytes[at] = (rest & 0x7f) | ONE_BYTE;
      at += 1;
      rest = rest < 0x7fff_ffff ? rest >>> 7 : Math.floor(rest / ONE_BYTE);
    }
    bytes[at] = rest;
    this.at = at + 1;
  }

  /** An integer between -2^52 and 2^52. */
  integer(value: number): void {
    this.natural(value < 0 ? -2 * value - 1 : 2 * value);
  }

  raw(value: Uint8Array): void {
    if (this.at + value.length <= this.bytes.length) this.bytes.set(value, this.at);
    this.at += value.length;
  }

  /** By its UTF-16 code units, so that any string comes back. */
  text(value: string): void {
    this.natural(value.length);
    for (let index = 0; index < value.length; index += 1) this.natural(value.charCodeAt(index));
  }

  address(address: Address | undefined): void {
    if (address === undefined) return this.byte(NO_ADDRESS);
    if (address.family === 4) {
      this.byte(IPV4);
    } else {
      this.byte(address.scope === 0 ? IPV6 : IPV6_SCOPED);
      if (address.scope !== 0) this.word(address.scope);
      this.word(address.b);
      this.word(address.c);
      this.word(address.d);
    }
    this.word(address.a);
    this.byte(address.port);
    this.byte(address.port >>> 8);
    return undefined;
  }
}

/** What is wrong with bytes that were to be a trace, and where. */
export class TraceDamage extends Error {
  override readonly name: string = 'TraceDamage';
  readonly offset: number;

  constructor(offset: number, problem: string) {
    super(problem);
    this.offset = offset;
  }
}

/** Throws a TraceDamage for whatever is not there. */
export class ByteReader {
  readonly bytes: Uint8Array;
  at = 0;
  /** Where `bytes` begin in their file, for reports of damage. */
  readonly origin: number;

  constructor(bytes: Uint8Array, origin = 0) {
    this.bytes = bytes;
    this.origin = origin;
  }

  get left(): number {
    return this.bytes.length - this.at;
  }

  damage(problem: string): TraceDamage {
    return new TraceDamage(this.origin + this.at, problem);
  }

  byte(): number {
    const value = this.bytes[this.at];
    if (value === undefined) throw this.damage('it ends in the middle of a word');
    this.at += 1;
    return value;
  }

  word(): number {
    return this.byte() | (this.byte() << 8) | (this.byte() << 16) | (this.byte() << 24);
  }

  natural(): number {
    let value = 0;
    let scale = 1;
    for (let byte = this.byte(); ; byte = this.byte()) {
      value += (byte & 0x7f) * scale;
      if (!Number.isSafeInteger(value)) throw this.damage('a number that is too large');
      if (byte < ONE_BYTE) return value;
      scale *= ONE_BYTE;
    }
  }

  /** A natural number up to `most`. */
  bounded(most: number, what: string): number {
    const value = this.natural();
    if (value > most) throw this.damage(`${what} ${value}, above ${most}`);
    return value;
  }

  integer(): number {
    const value = this.natural();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  raw(length: number): Uint8Array {
    if (length > this.left) throw this.damage(`${length} bytes where ${this.left} are left`);
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  text(): string {
    const length = this.bounded(this.left, 'a text of length');
    const parts: string[] = [];
    for (let index = 0; index < length; index += 1) {
      parts.push(String.fromCharCode(this.bounded(0xffff, 'a character')));
    }
    return parts.join('');
  }

  address(): Address {
    const address = this.maybeAddress();
    if (address === undefined) throw this.damage('an address is missing');
    return address;
  }

  maybeAddress(): Address | undefined {
    const form = this.byte();
    if (form === NO_ADDRESS) return undefined;
    if (form === IPV4) {
      const a = this.word();
      return { family: 4, a, b: 0, c: 0, d: 0, port: this.port(), scope: 0 };
    }
    if (form !== IPV6 && form !== IPV6_SCOPED) throw this.damage(`an address of form ${form}`);
    const scope = form === IPV6 ? 0 : this.word();
    const [b, c, d, a] = [this.word(), this.word(), this.word(), this.word()];
    return { family: 6, a, b, c, d, port: this.port(), scope };
  }

  private port(): number {
    return this.byte() | (this.byte() << 8);
  }
}
