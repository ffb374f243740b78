/** Reads JSON of a known shape, and says where it is not so. */
import { printable } from './printable.ts';

export class ShapeError extends Error {
  override readonly name = 'ShapeError';
}

export class JsonReader {
  private readonly value: unknown;
  private readonly path: string;

  constructor(value: unknown, path: string) {
    this.value = value;
    this.path = path;
  }

  get isNull(): boolean {
    return this.value === null;
  }

  field(name: string): JsonReader {
    const { value } = this;
    if (typeof value !== 'object' || value === null) throw this.wrong('an object');
    const found: unknown = Object.getOwnPropertyDescriptor(value, name)?.value;
    return new JsonReader(found, `${this.path}.${name}`);
  }

  /** A text that may be printed: whoever wrote the file does not steer the terminal. */
  text(): string {
    if (typeof this.value !== 'string') throw this.wrong('a text');
    return printable(this.value);
  }

  /** One of some words. */
  word<Word extends string>(words: readonly Word[]): Word {
    const found = words.find((word) => word === this.value);
    if (found === undefined) throw this.wrong(`one of ${words.join(', ')}`);
    return found;
  }

  /** A natural number that a double holds. */
  count(): number {
    const { value } = this;
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
      throw this.wrong('a natural number');
    }
    return value;
  }

  flag(): boolean {
    if (typeof this.value !== 'boolean') throw this.wrong('true or false');
    return this.value;
  }

  decimal(): number {
    if (typeof this.value !== 'number') throw this.wrong('a number');
    return this.value;
  }

  list(): JsonReader[] {
    if (!Array.isArray(this.value)) throw this.wrong('a list');
    return this.value.map((item: unknown, index) => new JsonReader(item, `${this.path}[${index}]`));
  }

  /** Counts by these names, in their order. */
  counts(names: readonly string[]): Record<string, number> {
    return Object.fromEntries(names.map((name) => [name, this.field(name).count()]));
  }

  wrong(expected: string): ShapeError {
    return new ShapeError(`${this.path}: expected ${expected}`);
  }
}
