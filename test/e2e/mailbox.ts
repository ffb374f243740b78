/**
 * What a process, a socket or a log has said so far, and bounded waits for what it will say: the tests await events, they
 * never sleep.
 */

/** Far above what a busy machine needs: it ends a test that would hang, it measures nothing. */
const PATIENCE_MILLISECONDS = 15_000;

interface Waiter {
  /** Looks again, and says whether the wait is over. */
  readonly settle: () => boolean;
  readonly fail: (reason: string) => void;
}

export class Mailbox<T extends object | string> {
  /** Everything that arrived, oldest first. */
  readonly all: T[] = [];
  private readonly owner: string;
  private readonly hearers: ((item: T) => void)[] = [];
  private readonly waiters = new Set<Waiter>();
  private taken = 0;
  private closed: string | undefined;

  /** `owner` names the speaker in failures. */
  constructor(owner: string) {
    this.owner = owner;
  }

  push(item: T): void {
    this.all.push(item);
    for (const hear of this.hearers) hear(item);
    for (const waiter of this.waiters) if (waiter.settle()) this.waiters.delete(waiter);
  }

  /** Nothing more will come: whoever waits fails at once. */
  close(reason: string): void {
    this.closed = reason;
    for (const waiter of this.waiters) waiter.fail(reason);
    this.waiters.clear();
  }

  /** Calls `hear` with every item from now on. */
  each(hear: (item: T) => void): void {
    this.hearers.push(hear);
  }

  /** Each item once, in the order of arrival. */
  next(): Promise<T> {
    const at = this.taken;
    this.taken += 1;
    return this.wait(() => this.all[at], `item ${at + 1}`);
  }

  /** The first of all items, past or to come, that matches. */
  first(matches: (item: T) => boolean, what: string): Promise<T> {
    return this.wait(() => this.all.find(matches), what);
  }

  private wait(look: () => T | undefined, what: string): Promise<T> {
    return new Promise((resolve, reject) => {
      const fail = (reason: string): void => {
        clearTimeout(timer);
        reject(new Error(`${this.owner}: waited for ${what}, ${reason}`));
      };
      const settle = (): boolean => {
        const found = look();
        if (found === undefined) return false;
        clearTimeout(timer);
        resolve(found);
        return true;
      };
      const waiter = { settle, fail };
      const timer = setTimeout(() => {
        this.waiters.delete(waiter);
        fail(`in vain; there are ${this.all.length}: ${JSON.stringify(this.all.slice(-20))}`);
      }, PATIENCE_MILLISECONDS);
      if (settle()) return;
      if (this.closed === undefined) this.waiters.add(waiter);
      else fail(this.closed);
    });
  }
}
