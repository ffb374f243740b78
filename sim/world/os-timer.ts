/** One timer of a process, which may fire early, late or together with others. Time it spends asleep does not count. */
import type { Instant } from '../../core/time.ts';
import { instant, until } from '../../core/time.ts';
import type { QueuedEvent } from '../event-queue.ts';
import type { Random } from '../random.ts';
import type { Host } from './os-host.ts';

export class HostTimer {
  readonly #host: Host;
  readonly #onFire: () => void;
  readonly #errors: Random;
  /** When it fires, by the clock of the host. */
  #due: Instant | undefined;
  #event: QueuedEvent<() => void> | undefined;

  /** `onFire` is called in the process, from an event of its own. */
  constructor(host: Host, name: string, onFire: () => void) {
    this.#host = host;
    this.#onFire = onFire;
    this.#errors = host.stream('buggify', `${name}/timer`);
    host.onFaults(() => this.#set());
  }

  /** Replaces whatever was asked before; undefined disarms. */
  wakeAt(at: Instant | undefined): void {
    this.#due = at === undefined ? undefined : this.#misjudge(at);
    this.#set();
  }

  #set(): void {
    this.#host.cancel(this.#event);
    this.#event = undefined;
    if (this.#due === undefined || this.#host.faults.standstill !== undefined) return;
    this.#event = this.#host.later(until(this.#host.now(), this.#due), () => this.#fire());
  }

  /** What is due may still be disarmed before the process runs. */
  #fire(): void {
    this.#event = this.#host.wake(() => {
      this.#event = undefined;
      this.#due = undefined;
      this.#onFire();
    });
  }

  /** Some of the wait always passes: else what is asked for again would be early again at the same instant, without an end. */
  #misjudge(at: Instant): Instant {
    const { timer } = this.#host.faults;
    if (timer === undefined) return at;
    const { late, tick } = timer;
    const early = Math.min(timer.early, Math.floor(until(this.#host.now(), at) / 2));
    const moved = at - early + this.#errors.between('os.timer', 0, early + late);
    return instant(tick === 0 ? moved : Math.ceil(moved / tick) * tick);
  }
}
