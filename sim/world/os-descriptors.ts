/** The descriptor table of a process: the lowest free number is given first, so what is kept too long soon means another. */
import type { Host } from './os-host.ts';

/** What stands for a descriptor that is no UDP socket: a TCP connection of a probe. */
type Stream = 'stream';

export class Descriptors<Socket extends object> {
  readonly #host: Host;
  readonly #table: (Socket | Stream | undefined)[] = [];
  /** No number below it is free. */
  #lowest = 0;
  #count = 0;

  constructor(host: Host) {
    this.#host = host;
  }

  /** How many are open. */
  get count(): number {
    return this.#count;
  }

  /** The number that the next open gets; undefined when the process may have no more. */
  lowest(): number | undefined {
    while (this.#table[this.#lowest] !== undefined) this.#lowest++;
    const { shape, faults } = this.#host;
    const limit = Math.min(shape.descriptors, faults.descriptors ?? Infinity);
    return this.#lowest < limit ? this.#lowest : undefined;
  }

  /** Opens what `lowest` has just named. */
  take(descriptor: number, what: Socket | Stream): void {
    this.#table[descriptor] = what;
    this.#count += 1;
  }

  release(descriptor: number): void {
    if (this.#table[descriptor] === undefined) return;
    this.#table[descriptor] = undefined;
    this.#count -= 1;
    this.#lowest = Math.min(this.#lowest, descriptor);
  }

  /** The UDP socket that a number means at this moment. */
  socketAt(descriptor: number): Socket | undefined {
    const what = this.#table[descriptor];
    return what === 'stream' ? undefined : what;
  }

  *sockets(): Iterable<Socket> {
    for (const what of this.#table) if (what !== undefined && what !== 'stream') yield what;
  }
}
