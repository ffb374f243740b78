/**
 * What is still to happen, by time. Events of one instant come in a drawn order: first in, first out would hide every
 * race between them on all seeds.
 */
import type { Instant } from '../core/time.ts';
import type { Random } from './random.ts';

/** An event in the queue: keep it to cancel it. */
export interface QueuedEvent<T> {
  readonly at: Instant;
  readonly value: T;
  /** Its place in the heap; of no meaning once it is out. */
  readonly place: number;
}

export class EventQueue<T> {
  readonly #sched: Random;
  readonly #heap: Entry<T>[] = [];
  #pushed = 0;

  constructor(sched: Random) {
    this.#sched = sched;
  }

  get size(): number {
    return this.#heap.length;
  }

  /** When the next event is due; undefined when there is none. */
  nextAt(): Instant | undefined {
    return this.#heap[0]?.at;
  }

  push(at: Instant, value: T): QueuedEvent<T> {
    const tie = this.#sched.choose('event-queue.tie', 2 ** 32);
    const entry = { at, tie, serial: this.#pushed++, value, place: this.#heap.length };
    this.#heap.push(entry);
    this.#rise(entry);
    return entry;
  }

  /** Takes the next event out. */
  pop(): QueuedEvent<T> | undefined {
    const first = this.#heap[0];
    if (first !== undefined) this.#removeAt(0);
    return first;
  }

  /** Takes an event out before it is due; false when it is not in the queue any more. */
  cancel(event: QueuedEvent<T>): boolean {
    if (this.#heap[event.place] !== event) return false;
    this.#removeAt(event.place);
    return true;
  }

  clear(): void {
    this.#heap.length = 0;
  }

  #removeAt(place: number): void {
    const last = this.#heap.pop();
    if (last === undefined || place === this.#heap.length) return;
    this.#put(last, place);
    this.#rise(last);
    this.#sink(last);
  }

  #rise(entry: Entry<T>): void {
    while (entry.place > 0) {
      const parent = this.#heap[(entry.place - 1) >>> 1];
      if (parent === undefined || precedes(parent, entry)) return;
      this.#swap(parent, entry);
    }
  }

  #sink(entry: Entry<T>): void {
    for (;;) {
      const left = this.#heap[2 * entry.place + 1];
      const right = this.#heap[2 * entry.place + 2];
      const child = left && right && precedes(right, left) ? right : left;
      if (child === undefined || precedes(entry, child)) return;
      this.#swap(entry, child);
    }
  }

  #swap(upper: Entry<T>, lower: Entry<T>): void {
    const place = upper.place;
    this.#put(upper, lower.place);
    this.#put(lower, place);
  }

  #put(entry: Entry<T>, place: number): void {
    this.#heap[place] = entry;
    entry.place = place;
  }
}

interface Entry<T> extends QueuedEvent<T> {
  readonly tie: number;
  readonly serial: number;
  place: number;
}

/** The serial number decides only when two draws of 32 bits agree: the order stays total. */
function precedes(left: Entry<unknown>, right: Entry<unknown>): boolean {
  if (left.at !== right.at) return left.at < right.at;
  if (left.tie !== right.tie) return left.tie < right.tie;
  return left.serial < right.serial;
}
