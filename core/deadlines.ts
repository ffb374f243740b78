/**
 * When the next flow goes idle. Not a timer: nothing here fires, callers ask.
 *
 * Every touch sets `now + timeout`, so among flows of one timeout the deadlines are in the order of the touches: a linked
 * list per distinct timeout keeps its minimum at its head, and a small heap orders the heads. A touch is O(1) in flows.
 */
import { assert } from './assert.ts';
import { after, instant, type Duration, type Instant } from './time.ts';
import { UsedPart } from './used-part.ts';

const NONE = -1;
/** Words of a record: deadline (a double), then the class, the neighbours, and since when there is a deadline (a double). */
const STRIDE = 8;
const CLASS = 2;
const PREVIOUS = 3;
const NEXT = 4;
/** In doubles. */
const SINCE = 6 / 2;

/** Flows that share one timeout, as a list from the earliest deadline to the latest. */
interface TimeoutClass {
  readonly timeout: Duration;
  head: number;
  tail: number;
  /** Place in the heap. */
  place: number;
}

export class Deadlines {
  private records: Int32Array;
  private instants: Float64Array;
  private used: UsedPart;
  private readonly classes: (TimeoutClass | undefined)[] = [];
  private readonly freeClasses: number[] = [];
  private readonly classByTimeout = new Map<Duration, number>();
  /** Class numbers; the one whose head is due first at the front. */
  private readonly heap: number[] = [];
  private latest: Instant = instant(0);

  /** For slots 0 to `capacity` − 1. */
  constructor(capacity: number) {
    const buffer = new ArrayBuffer(capacity * STRIDE * 4);
    this.records = new Int32Array(buffer);
    this.instants = new Float64Array(buffer);
    this.used = new UsedPart(this.records, STRIDE);
  }

  /** Room for more slots; the deadlines stay. */
  grow(capacity: number): void {
    const buffer = new ArrayBuffer(capacity * STRIDE * 4);
    const records = new Int32Array(buffer);
    const used = new UsedPart(records, STRIDE);
    records.set(this.records);
    for (let slot = 0; slot * STRIDE < this.records.length; slot += 1) used.mark(slot);
    this.records = records;
    this.instants = new Float64Array(buffer);
    this.used = used;
  }

  /** A slot that has no deadline yet gets one: `now + timeout`. `now` never goes back. */
  add(slot: number, now: Instant, timeout: Duration): void {
    this.advance(now);
    this.used.mark(slot);
    this.instants[slot * (STRIDE / 2) + SINCE] = now;
    this.append(slot, this.classOf(timeout), after(now, timeout));
  }

  /** The deadline of a slot becomes `now + timeout`. */
  touch(slot: number, now: Instant, timeout: Duration): void {
    this.advance(now);
    const deadline = after(now, timeout);
    const number = this.records[slot * STRIDE + CLASS]!;
    const own = this.classes[number]!;
    if (own.timeout === timeout && own.tail === slot) {
      this.instants[slot * (STRIDE / 2)] = deadline;
      if (own.head === slot) this.sink(own.place);
      return;
    }
    // The new class first: leaving the old one may free its number.
    const target = own.timeout === timeout ? number : this.classOf(timeout);
    this.unlink(slot);
    this.append(slot, target, deadline);
  }

  remove(slot: number): void {
    this.unlink(slot);
  }

  /** The deadline of a slot that has one. */
  of(slot: number): Instant {
    return instant(this.instants[slot * (STRIDE / 2)]!);
  }

  /** When this slot, which has a deadline, got its first one: the birth of its flow. */
  since(slot: number): Instant {
    return instant(this.instants[slot * (STRIDE / 2) + SINCE]!);
  }

  /** The earliest deadline, or undefined when no slot has one. */
  earliest(): Instant | undefined {
    const first = this.heap[0];
    if (first === undefined) return undefined;
    return this.of(this.classes[first]!.head);
  }

  /** Appends to `into` every slot whose deadline is not after `now`, in no order that means anything. */
  dueBy(now: Instant, into: number[]): void {
    for (const own of this.classes) {
      if (own === undefined) continue;
      for (let slot = own.head; slot !== NONE; slot = this.records[slot * STRIDE + NEXT]!) {
        if (this.instants[slot * (STRIDE / 2)]! > now) break;
        into.push(slot);
      }
    }
  }

  /** Distinct timeouts among the slots that have a deadline. */
  get classCount(): number {
    return this.heap.length;
  }

  private advance(now: Instant): void {
    assert(now >= this.latest, 'time does not go back');
    this.latest = now;
  }

  private classOf(timeout: Duration): number {
    const known = this.classByTimeout.get(timeout);
    if (known !== undefined) return known;
    const number = this.freeClasses.pop() ?? this.classes.length;
    this.classes[number] = { timeout, head: NONE, tail: NONE, place: NONE };
    this.classByTimeout.set(timeout, number);
    return number;
  }

  private append(slot: number, number: number, deadline: Instant): void {
    const own = this.classes[number]!;
    const at = slot * STRIDE;
    this.instants[slot * (STRIDE / 2)] = deadline;
    this.records[at + CLASS] = number;
    this.records[at + PREVIOUS] = own.tail;
    this.records[at + NEXT] = NONE;
    if (own.tail !== NONE) this.records[own.tail * STRIDE + NEXT] = slot;
    own.tail = slot;
    if (own.head !== NONE) return;
    own.head = slot;
    own.place = this.heap.length;
    this.heap.push(number);
    this.rise(own.place);
  }

  private unlink(slot: number): void {
    const at = slot * STRIDE;
    const number = this.records[at + CLASS]!;
    const own = this.classes[number]!;
    const previous = this.records[at + PREVIOUS]!;
    const next = this.records[at + NEXT]!;
    if (next === NONE) own.tail = previous;
    else this.records[next * STRIDE + PREVIOUS] = previous;
    if (previous !== NONE) {
      this.records[previous * STRIDE + NEXT] = next;
      return;
    }
    own.head = next;
    if (next === NONE) this.drop(number, own);
    else this.sink(own.place);
  }

  /** An empty class leaves the heap, and its number is free again. */
  private drop(number: number, own: TimeoutClass): void {
    const last = this.heap.pop()!;
    if (last !== number) {
      this.put(own.place, last);
      this.rise(own.place);
      this.sink(this.classes[last]!.place);
    }
    this.classByTimeout.delete(own.timeout);
    this.classes[number] = undefined;
    this.freeClasses.push(number);
  }

  private key(number: number): number {
    return this.instants[this.classes[number]!.head * (STRIDE / 2)]!;
  }

  private put(place: number, number: number): void {
    this.heap[place] = number;
    this.classes[number]!.place = place;
  }

  private rise(from: number): void {
    let place = from;
    const number = this.heap[place]!;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (this.key(this.heap[parent]!) <= this.key(number)) break;
      this.put(place, this.heap[parent]!);
      place = parent;
    }
    this.put(place, number);
  }

  private sink(from: number): void {
    let place = from;
    const number = this.heap[place]!;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= this.heap.length) break;
      const right = child + 1;
      if (right < this.heap.length && this.key(this.heap[right]!) < this.key(this.heap[child]!)) {
        child = right;
      }
      if (this.key(this.heap[child]!) >= this.key(number)) break;
      this.put(place, this.heap[child]!);
      place = child;
    }
    this.put(place, number);
  }
}
