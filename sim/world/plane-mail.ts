/**
 * The way between the planes of one process, where they do not share a thread: what is sent arrives after a drawn time, and in
 * the order it was sent.
 */
import type { Directed } from '../../core/control-pump.ts';
import type { GeneratedDirective } from '../../core/directives.ts';
import { instant, microseconds, until, type Instant } from '../../core/time.ts';
import type { Random } from '../random.ts';
import type { Span } from './faults.ts';
import type { Host } from './os-host.ts';

/** One direction of the way. */
export class PlaneMail<Message> {
  readonly #host: Host;
  readonly #delay: Span;
  readonly #random: Random;
  readonly #deliver: (message: Message) => void;
  readonly #messages: Message[] = [];
  #latest: Instant = instant(0);
  #isClosed = false;

  constructor(host: Host, delay: Span, name: string, deliver: (message: Message) => void) {
    this.#host = host;
    this.#delay = delay;
    this.#random = host.stream('sched', name);
    this.#deliver = deliver;
  }

  /** Messages that have not arrived. */
  get underWay(): number {
    return this.#messages.length;
  }

  send(message: Message): void {
    const { low, high } = this.#delay;
    const drawn = this.#host.now() + this.#random.between('plane-mail', low, high);
    this.#latest = instant(Math.max(this.#latest, drawn));
    this.#messages.push(message);
    const delay = until(this.#host.now(), this.#latest);
    this.#host.later(microseconds(delay), () => this.#host.wake(() => this.#arrive()));
  }

  /** The process is gone: nothing arrives any more. */
  close(): void {
    this.#isClosed = true;
    this.#messages.length = 0;
  }

  /** Wake-ups may overtake each other; messages do not. */
  #arrive(): void {
    const message = this.#messages.shift();
    if (message !== undefined && !this.#isClosed) this.#deliver(message);
  }
}

/** Directives that travel: each is a turn of its own. */
export class DistantPlane implements Directed {
  readonly mail: PlaneMail<GeneratedDirective>;

  constructor(host: Host, delay: Span, plane: Directed, name: string) {
    this.mail = new PlaneMail(host, delay, name, (message) => {
      plane.direct(message);
      plane.endTurn();
    });
  }

  direct(message: GeneratedDirective): void {
    this.mail.send(message);
  }

  endTurn(): void {
    // The plane ends its own turns.
  }
}
