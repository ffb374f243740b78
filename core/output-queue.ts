/** The one first-in first-out queue between a machine and whoever drains it. Its memory is reused from turn to turn. */

/** Slots kept when the queue is empty; a mass close may need more for a moment. */
const KEPT = 1_024;

export class OutputQueue<T> {
  private readonly items: (T | undefined)[] = [];
  private head = 0;
  private tail = 0;

  push(item: T): void {
    this.items[this.tail] = item;
    this.tail += 1;
  }

  /** The oldest item, or undefined when none is left. The queue keeps no reference to it. */
  poll(): T | undefined {
    if (this.head === this.tail) {
      this.head = 0;
      this.tail = 0;
      if (this.items.length > KEPT) this.items.length = 0;
      return undefined;
    }
    const item = this.items[this.head];
    this.items[this.head] = undefined;
    this.head += 1;
    return item;
  }

  get pending(): number {
    return this.tail - this.head;
  }
}
