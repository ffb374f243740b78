/**
 * What the workers of a process know of each other's listeners: how many sockets they have at each port, and who is binding.
 * Whoever is first at an address binds it alone, so that the address of another process is never taken, and only siblings
 * join. It is the one thing that workers share in memory; no decision of the core reads it.
 */

/** The word that is 1 while somebody binds; ports count from there on. */
const LOCK = 0;
const PORTS = 65_536;

/** Between two looks at the lock, milliseconds; it is held for some system calls. */
const PATIENCE = 1;

export class Siblings {
  private readonly words: Int32Array;

  /** `memory` is that of all siblings. */
  constructor(memory: SharedArrayBuffer) {
    this.words = new Int32Array(memory);
  }

  /** Calls `bind` while no sibling binds. */
  alone(bind: () => number): number {
    const { words } = this;
    while (Atomics.compareExchange(words, LOCK, 0, 1) !== 0) Atomics.wait(words, LOCK, 1, PATIENCE);
    try {
      return bind();
    } finally {
      Atomics.store(words, LOCK, 0);
      Atomics.notify(words, LOCK);
    }
  }

  /** Sockets at `port`, of all siblings. */
  at(port: number): number {
    return Atomics.load(this.words, 1 + port);
  }

  bound(port: number): void {
    Atomics.add(this.words, 1 + port, 1);
  }

  closed(port: number): void {
    Atomics.sub(this.words, 1 + port, 1);
  }
}

/** For the siblings of one process. */
export function siblingMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer((1 + PORTS) * Int32Array.BYTES_PER_ELEMENT);
}
