/** Which faults of one link are on: its own for good, and over them those of the episodes that run. */
import { assert } from '../../core/assert.ts';
import type { VirtualClock } from '../clock.ts';
import type { EventQueue, QueuedEvent } from '../event-queue.ts';
import type { Episode, LinkFaults } from './faults.ts';

export class Episodes {
  readonly #clock: VirtualClock;
  readonly #events: EventQueue<() => void>;
  readonly #apply: (faults: LinkFaults) => void;
  #lasting: LinkFaults;
  /** In the order they began: where two have the same fault, the later one's counts. */
  #running: readonly Episode[] = [];
  readonly #pending = new Set<QueuedEvent<() => void>>();

  constructor(
    clock: VirtualClock,
    events: EventQueue<() => void>,
    lasting: LinkFaults,
    apply: (faults: LinkFaults) => void,
  ) {
    this.#clock = clock;
    this.#events = events;
    this.#apply = apply;
    this.#lasting = lasting;
  }

  /** Changes what holds outside of episodes. */
  setLasting(faults: LinkFaults): void {
    this.#lasting = faults;
    this.#refresh();
  }

  /** An episode that should have begun already begins now. */
  add(episode: Episode): void {
    assert(episode.until > episode.from, 'an episode ends after it has begun');
    assert(episode.until > this.#clock.now(), 'an episode ends in the future');
    if (episode.from <= this.#clock.now()) this.#begin(episode);
    else this.#at(episode.from, () => this.#begin(episode));
  }

  /** Ends every episode, also those that have not begun. */
  heal(): void {
    for (const event of this.#pending) this.#events.cancel(event);
    this.#pending.clear();
    this.#running = [];
    this.#refresh();
  }

  #begin(episode: Episode): void {
    this.#running = [...this.#running, episode];
    this.#at(episode.until, () => {
      this.#running = this.#running.filter((other) => other !== episode);
      this.#refresh();
    });
    this.#refresh();
  }

  #at(at: Episode['from'], act: () => void): void {
    const event = this.#events.push(at, () => {
      this.#pending.delete(event);
      act();
    });
    this.#pending.add(event);
  }

  #refresh(): void {
    let faults = this.#lasting;
    for (const episode of this.#running) faults = { ...faults, ...episode.faults };
    this.#apply(faults);
  }
}
