/**
 * Shared values by small number: thousands of flows name one backend or one configuration, and their records hold only a
 * number. A value leaves when its last user does, so nothing here outgrows what is alive.
 */
import { assert, present } from './assert.ts';

/** Values of type `T`, compared by identity, each with a count of its users. */
export class Registry<T> {
  private readonly numbers = new Map<T, number>();
  private readonly values: (T | undefined)[] = [];
  private readonly users: number[] = [];
  private readonly free: number[] = [];

  /** The number of `value`, with one more user. */
  acquire(value: T): number {
    const known = this.numbers.get(value);
    if (known !== undefined) {
      this.users[known] = this.usersOf(known) + 1;
      return known;
    }
    const number = this.free.pop() ?? this.values.length;
    this.values[number] = value;
    this.users[number] = 1;
    this.numbers.set(value, number);
    return number;
  }

  /** One user fewer; the last one frees the number. */
  release(number: number): void {
    const left = this.usersOf(number) - 1;
    assert(left >= 0, 'a value is released as often as it was acquired');
    this.users[number] = left;
    if (left > 0) return;
    this.numbers.delete(this.get(number));
    this.values[number] = undefined;
    this.free.push(number);
  }

  /** The value behind a number that has a user. */
  get(number: number): T {
    return present(this.values[number], 'a number in use has a value');
  }

  /** The number of `value` while it has a user. */
  find(value: T): number | undefined {
    return this.numbers.get(value);
  }

  /** Values in use. */
  get size(): number {
    return this.numbers.size;
  }

  usersOf(number: number): number {
    return this.users[number] ?? 0;
  }
}
