/**
 * The machine under a simulated operating system: its share of virtual time, its monotonic clock, and the faults in force.
 * A process at a standstill runs nothing; what should have run does so as soon as it goes on.
 */
import type { Duration, Instant } from '../../core/time.ts';
import { after, instant, microseconds } from '../../core/time.ts';
import type { VirtualClock } from '../clock.ts';
import type { EventQueue, QueuedEvent } from '../event-queue.ts';
import type { Random, Streams } from '../random.ts';
import { FAULTLESS_OS, type HostShape, type OsFaults } from './os-faults.ts';

/** What all parts of a simulated world share. Whoever runs the world moves the clock to the next event and calls it. */
export interface WorldTime {
  readonly clock: VirtualClock;
  readonly events: EventQueue<() => void>;
  readonly streams: Streams;
}

export class Host {
  readonly shape: HostShape;
  readonly #world: WorldTime;
  readonly #latency: Random;
  #faults: OsFaults = FAULTLESS_OS;
  /** Virtual time at which the monotonic clock stopped. */
  #stoppedAt: Instant | undefined;
  /** Microseconds that the monotonic clock has missed. */
  #lag = 0;
  readonly #deferred: (() => void)[] = [];
  readonly #watchers: (() => void)[] = [];

  constructor(shape: HostShape, world: WorldTime) {
    this.shape = shape;
    this.#world = world;
    this.#latency = this.stream('sched', 'latency');
  }

  get faults(): OsFaults {
    return this.#faults;
  }

  /** From now on. The parts of the host hear of it in the order in which they were made. */
  setFaults(faults: OsFaults): void {
    this.#faults = faults;
    this.#moveClock(faults.standstill === 'clock');
    for (const watcher of this.#watchers) watcher();
    if (faults.standstill !== undefined) return;
    for (const action of this.#deferred.splice(0)) this.wake(action);
  }

  /** Calls back whenever the faults have changed. */
  onFaults(watcher: () => void): void {
    this.#watchers.push(watcher);
  }

  /** The monotonic clock. */
  now(): Instant {
    const virtual = this.#stoppedAt ?? this.#world.clock.now();
    return instant(this.shape.origin + virtual - this.#lag);
  }

  /** Runs `action` when so much virtual time has passed, whether the process runs or not. */
  later(delay: Duration, action: () => void): QueuedEvent<() => void> {
    const { clock, events } = this.#world;
    return events.push(after(clock.now(), delay), action);
  }

  cancel(event: QueuedEvent<() => void> | undefined): void {
    if (event !== undefined) this.#world.events.cancel(event);
  }

  /** Runs `action` in the process: soon, but never within this call. */
  wake(action: () => void): QueuedEvent<() => void> {
    return this.later(this.#drawUpTo(this.#faults.wakeLatency, 'os.wake-latency'), () => {
      if (this.#faults.standstill === undefined) action();
      else this.#deferred.push(action);
    });
  }

  /** A stream of chance of this host alone. */
  stream(stream: 'sched' | 'buggify' | 'values', name: string): Random {
    return this.#world.streams[stream].fork(`${this.shape.name}/${name}`);
  }

  #drawUpTo(most: Duration | undefined, site: string): Duration {
    return microseconds(most === undefined ? 0 : this.#latency.between(site, 0, most));
  }

  #moveClock(stops: boolean): void {
    const virtual = this.#world.clock.now();
    if (stops) {
      this.#stoppedAt ??= virtual;
    } else if (this.#stoppedAt !== undefined) {
      this.#lag += virtual - this.#stoppedAt;
      this.#stoppedAt = undefined;
    }
  }
}
