/** What leaves a host, in the order it was sent: at once, at a rate, or, in a jam, not at all. */
import { microseconds } from '../../core/time.ts';
import type { QueuedEvent } from '../event-queue.ts';
import type { Host } from './os-host.ts';
import type { Datagram, Wire } from './wire.ts';

interface Waiting {
  readonly datagram: Datagram;
  readonly onLeft: () => void;
}

export class Device {
  readonly #host: Host;
  readonly #wire: Wire;
  readonly #queue: Waiting[] = [];
  #event: QueuedEvent<() => void> | undefined;

  constructor(host: Host, wire: Wire) {
    this.#host = host;
    this.#wire = wire;
    host.onFaults(() => this.#serve());
  }

  /** Datagrams that have not left. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Whether a datagram may leave at once. Then none waits. */
  get isOpen(): boolean {
    return this.#host.faults.sendRate === undefined;
  }

  /** `onLeft` is called when it has left. */
  send(datagram: Datagram, onLeft: () => void): void {
    this.#queue.push({ datagram, onLeft });
    if (this.#queue.length === 1) this.#serve();
  }

  /** Sends what may leave now, and sets the time of the next; a rate that changed counts from now. */
  #serve(): void {
    this.#host.cancel(this.#event);
    this.#event = undefined;
    const { sendRate } = this.#host.faults;
    if (sendRate === undefined) {
      while (this.#queue.length > 0) this.#leave();
      return;
    }
    const [next] = this.#queue;
    if (next === undefined || sendRate === 0) return;
    const time = microseconds(Math.ceil((next.datagram.payload.length * SECOND) / sendRate));
    this.#event = this.#host.later(time, () => {
      this.#leave();
      this.#serve();
    });
  }

  #leave(): void {
    const next = this.#queue.shift();
    if (next === undefined) return;
    this.#wire.send(next.datagram);
    next.onLeft();
  }
}

const SECOND = 1_000_000;
