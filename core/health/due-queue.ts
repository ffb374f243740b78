/** Who is due first: a heap over small numbers, in which a number's instant can be moved or taken away in O(log n). */
import type { Instant } from '../time.ts';

interface Entry {
  readonly number: number;
  at: Instant;
  place: number;
}

export interface Due {
  readonly number: number;
  readonly at: Instant;
}

export class DueQueue {
  private readonly heap: Entry[] = [];
  private readonly entries = new Map<number, Entry>();

  get size(): number {
    return this.heap.length;
  }

  /** `number` is due at `at`, whatever it was before. */
  set(number: number, at: Instant): void {
    const known = this.entries.get(number);
    const entry = known ?? { number, at, place: this.heap.length };
    entry.at = at;
    if (known === undefined) {
      this.entries.set(number, entry);
      this.heap.push(entry);
    }
    this.rise(entry);
    this.sink(entry);
  }

  /** `number` is not due any more; nothing happens when it was not. */
  remove(number: number): void {
    const entry = this.entries.get(number);
    if (entry === undefined) return;
    this.entries.delete(number);
    const last = this.heap.pop();
    if (last === undefined || last === entry) return;
    this.put(last, entry.place);
    this.rise(last);
    this.sink(last);
  }

  /** The instant of `number`. */
  of(number: number): Instant | undefined {
    return this.entries.get(number)?.at;
  }

  /** The earliest; of several, the smallest number, so that replays agree. */
  first(): Due | undefined {
    return this.heap[0];
  }

  private rise(entry: Entry): void {
    for (;;) {
      const parent = this.heap[(entry.place - 1) >> 1];
      if (parent === undefined || !isBefore(entry, parent)) return;
      this.swap(entry, parent);
    }
  }

  private sink(entry: Entry): void {
    for (;;) {
      const left = this.heap[2 * entry.place + 1];
      const right = this.heap[2 * entry.place + 2];
      const child =
        right !== undefined && left !== undefined && isBefore(right, left) ? right : left;
      if (child === undefined || !isBefore(child, entry)) return;
      this.swap(child, entry);
    }
  }

  private swap(one: Entry, other: Entry): void {
    const { place } = one;
    this.put(one, other.place);
    this.put(other, place);
  }

  private put(entry: Entry, place: number): void {
    this.heap[place] = entry;
    entry.place = place;
  }
}

function isBefore(one: Entry, other: Entry): boolean {
  return one.at < other.at || (one.at === other.at && one.number < other.number);
}
