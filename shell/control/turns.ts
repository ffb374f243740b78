/**
 * Whose turn it is to be served, of all clients of the control socket together: one request for each turn of the event loop,
 * whoever sent it. Datagrams are read a bounded number a turn, so a turn that did a request for each of 64 clients would let
 * them wait in the kernel until it has no more room.
 */

export class Turns {
  private readonly waiting: (() => void)[] = [];

  /** Settles when it is the caller's turn, in the order in which they came. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      if (this.waiting.length === 1) this.arm();
    });
  }

  private arm(): void {
    setImmediate(() => {
      this.waiting.shift()?.();
      if (this.waiting.length > 0) this.arm();
    });
  }
}
