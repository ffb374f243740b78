/**
 * What the workers of a process know of each other's listeners: how many sockets they have at each address, and who is binding.
 * Whoever is first at an address binds it alone, so that the address of another process is never taken, and only siblings
 * join. It is the one thing that workers share in memory; no decision of the core reads it.
 */
import { LISTENERS_MAX, type Address } from '../../core/index.ts';

/** The word that is 1 while somebody binds or closes; rows follow. */
const LOCK = 0;
const ROWS = 1;
/** A row: the words of an address, and how many sockets are there; none: the row is free. */
const ROW = 8;
const COUNT = ROW - 1;

/** Between two looks at the lock, milliseconds; it is held for some system calls. */
const PATIENCE = 1;

export class Siblings {
  private readonly words: Int32Array;

  /** `memory` is that of all siblings. */
  constructor(memory: SharedArrayBuffer) {
    this.words = new Int32Array(memory);
  }

  /** Calls `run`, which may call the others, while no sibling is in here. */
  alone<T>(run: () => T): T {
    const { words } = this;
    while (Atomics.compareExchange(words, LOCK, 0, 1) !== 0) Atomics.wait(words, LOCK, 1, PATIENCE);
    try {
      return run();
    } finally {
      Atomics.store(words, LOCK, 0);
      Atomics.notify(words, LOCK);
    }
  }

  /** Whether siblings have a socket at `address`. */
  have(address: Address): boolean {
    return this.rowOf(address) !== undefined;
  }

  bound(address: Address): void {
    const row = this.rowOf(address) ?? this.freeRow();
    this.words.set(wordsOf(address), row);
    this.add(row, 1);
  }

  closed(address: Address): void {
    const row = this.rowOf(address);
    if (row !== undefined) this.add(row, -1);
  }

  private add(row: number, sockets: number): void {
    this.words[row + COUNT] = this.countIn(row) + sockets;
  }

  private rowOf(address: Address): number | undefined {
    const wanted = wordsOf(address);
    return this.find(
      (row) =>
        this.countIn(row) > 0 && wanted.every((word, at) => this.words[row + at] === (word | 0)),
    );
  }

  /** A process has no more listeners than there are rows. */
  private freeRow(): number {
    const row = this.find((one) => this.countIn(one) === 0);
    if (row === undefined) throw new Error('there are more listeners than there may be');
    return row;
  }

  private find(is: (row: number) => boolean): number | undefined {
    for (let row = ROWS; row < this.words.length; row += ROW) if (is(row)) return row;
    return undefined;
  }

  private countIn(row: number): number {
    return this.words[row + COUNT] ?? 0;
  }
}

/** For the siblings of one process. */
export function siblingMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer((ROWS + LISTENERS_MAX * ROW) * Int32Array.BYTES_PER_ELEMENT);
}

function wordsOf({ family, a, b, c, d, port, scope }: Address): readonly number[] {
  return [family, a, b, c, d, port, scope];
}
