/**
 * A seeded executor for workloads written as plain `async` functions. One task runs at a time, and which of the ready ones
 * is next is drawn: native promises are first in, first out, and would show one order on every seed.
 *
 * How it works without a compiler's help: what a task awaits are thenables. The engine calls their `then` when the task has
 * really stopped there; that parks the task. The executor resumes one wait and gives the task microtasks until it has parked
 * again and stayed quiet, or ended. One that does neither and waits for nothing simulated waits for something outside.
 * A run never leaves the microtask queue, so no real timer can get in between.
 */
import type { Duration, Instant } from '../core/time.ts';
import { after } from '../core/time.ts';
import { VirtualClock } from './clock.ts';
import { EventQueue } from './event-queue.ts';
import type { Random } from './random.ts';
import type { Seed } from './seed.ts';
import { printSeed } from './seed.ts';
import { Channel, Gate, Task, Wait } from './task.ts';
import type { Park, Scheduler, TaskState } from './task.ts';

/** What a task sees of the simulation. The one context serves all tasks of a run: it knows which one is running. */
export interface Context {
  now(): Instant;
  /** Resumes when the time is there; zero gives the other ready tasks a chance. */
  sleep(duration: Duration): PromiseLike<void>;
  /** Makes a task ready; it does not run before the caller awaits something. */
  spawn<T>(name: string, body: TaskBody<T>): Task<T>;
  gate(name: string): Gate;
  channel<T>(name: string): Channel<T>;
}

export type TaskBody<T> = (context: Context) => Promise<T>;

export interface RunOptions {
  /** Named in every failure. */
  readonly seed: Seed;
  /** Draws who runs next. */
  readonly sched: Random;
  /** Shared with the world that the tasks act on; a new one starts at zero. */
  readonly clock?: VirtualClock;
  /** Resumptions after which a run counts as a livelock. */
  readonly stepsMax?: number;
  /** What happens beside the tasks. It shares the clock. */
  readonly surroundings?: Surroundings;
}

/** A world that tasks act on: its own events happen while they sleep. At one instant tasks come first. */
export interface Surroundings {
  /** When its next event is due; undefined when there is none. */
  nextAt(): Instant | undefined;
  /** Moves the clock there and has it happen. It may make tasks ready. */
  step(): void;
}

export type RunFailureKind = 'outside' | 'deadlock' | 'livelock' | 'error';

/** A run that cannot go on. The message has the seed and the names of the tasks concerned; an error of a task is the cause. */
export class RunFailure extends Error {
  override readonly name: string = 'RunFailure';
  readonly kind: RunFailureKind;
  readonly tasks: readonly string[];
  readonly seed: Seed;

  constructor(kind: RunFailureKind, tasks: readonly string[], seed: Seed, what: ErrorText) {
    super(`${kind}: ${what.text} (seed ${printSeed(seed)})`, { cause: what.cause });
    this.kind = kind;
    this.tasks = tasks;
    this.seed = seed;
  }
}

/**
 * Runs `main` and the tasks it spawns until `main` ends, and returns its result. Tasks that are still there are killed, as by
 * `Task.cancel`. Rejects with a `RunFailure` when any task throws, when one awaits something outside, on a deadlock and on a
 * livelock.
 */
export async function runTasks<T>(options: RunOptions, main: TaskBody<T>): Promise<T> {
  const executor = new Executor(options);
  try {
    return await executor.run(main);
  } finally {
    executor.drop();
  }
}

interface ErrorText {
  readonly text: string;
  readonly cause?: unknown;
}

/** Microtasks within which a resumed task has to park or end. */
const MICROTASKS_MAX = 1_000;

/** Microtasks without a new wait after which a parked task is believed: its other branches may still be on their way. */
const MICROTASKS_QUIET = 8;

const STEPS_MAX = 1_000_000;

const microtask = Promise.resolve();

class Executor implements Scheduler, Context {
  readonly #options: RunOptions;
  readonly #clock: VirtualClock;
  readonly #timers: EventQueue<() => void>;
  readonly #live = new Set<TaskState>();
  #ready: { readonly task: TaskState; readonly resume: () => void }[] = [];
  #current: TaskState | undefined;
  #failure: RunFailure | undefined;
  /** Counts waits that were parked: what tells a quiet task from one that is still on its way. */
  #parks = 0;

  constructor(options: RunOptions) {
    this.#options = options;
    this.#clock = options.clock ?? new VirtualClock();
    this.#timers = new EventQueue(options.sched);
  }

  async run<T>(main: TaskBody<T>): Promise<T> {
    const task = this.#start('main', main);
    const stepsMax = this.#options.stepsMax ?? STEPS_MAX;
    for (let step = 0; this.#live.has(task); step++) {
      if (step === stepsMax) this.#livelock(step);
      await this.#step();
    }
    return task.result();
  }

  /** Kills every task: nothing of the run is left to be resumed. */
  drop(): void {
    for (const task of this.#live) task.kill();
    this.#live.clear();
    this.#ready = [];
    this.#timers.clear();
  }

  now(): Instant {
    return this.#clock.now();
  }

  sleep(duration: Duration): PromiseLike<void> {
    const due = after(this.#clock.now(), duration);
    return this.wait<void>(`sleep until ${due}`, (park) => {
      if (due <= this.#clock.now()) return park.wake();
      const timer = this.#timers.push(due, () => park.wake());
      park.onDead = () => this.#timers.cancel(timer);
    });
  }

  spawn<T>(name: string, body: TaskBody<T>): Task<T> {
    this.running();
    return this.#start(name, body);
  }

  gate(name: string): Gate {
    return new Gate(this, name);
  }

  channel<T>(name: string): Channel<T> {
    return new Channel<T>(this, name);
  }

  wait<T>(reason: string, begin: (park: Park<T>) => void): Wait<T> {
    return new Wait(this, this.running(), reason, begin);
  }

  running(): TaskState {
    if (this.#current === undefined) {
      throw new Error('the simulation was used from outside a running task, or after its end');
    }
    return this.#current;
  }

  parked(): void {
    this.#parks++;
  }

  makeReady(task: TaskState, resume: () => void): void {
    this.#ready.push({ task, resume });
  }

  draw(site: string, bound: number): number {
    return this.#options.sched.choose(site, bound);
  }

  ended(task: TaskState): void {
    this.#live.delete(task);
    this.#ready = this.#ready.filter((entry) => entry.task !== task);
  }

  failed(task: TaskState, cause: unknown): void {
    const text = `task ${task.name} threw ${String(cause)}`;
    this.#failure ??= new RunFailure('error', [task.name], this.#options.seed, { text, cause });
  }

  #start<T>(name: string, body: TaskBody<T>): Task<T> {
    const task = new Task<T>(this, name);
    this.#live.add(task);
    this.makeReady(task, () => task.start(() => body(this)));
    return task;
  }

  async #step(): Promise<void> {
    const { task, resume } = this.#takeReady();
    this.#current = task;
    resume();
    await this.#settle(task);
    this.#current = undefined;
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Takes a drawn entry out of the ready ones; when there is none, time moves on to the next timer. */
  #takeReady(): { readonly task: TaskState; readonly resume: () => void } {
    this.#letSurroundingsPass();
    const next = this.#ready.length > 0 ? this.#clock.now() : this.#timers.nextAt();
    if (next === undefined) return this.#deadlock();
    this.#clock.advanceTo(next);
    while (this.#timers.nextAt() === next) this.#timers.pop()?.value();
    const index = this.draw('executor.next', this.#ready.length);
    const [entry] = this.#ready.splice(index, 1);
    return entry ?? this.#deadlock();
  }

  /** All that happens before the next timer, until a task is ready. */
  #letSurroundingsPass(): void {
    const { surroundings } = this.#options;
    if (surroundings === undefined) return;
    while (this.#ready.length === 0) {
      const next = surroundings.nextAt();
      const timer = this.#timers.nextAt();
      if (next === undefined || (timer !== undefined && timer <= next)) return;
      surroundings.step();
    }
  }

  /** Gives the resumed task its microtasks, by one callback for all of them: each `await` would make two of its own. */
  #settle(task: TaskState): Promise<void> {
    const before = this.#parks;
    let seen = before;
    let quiet = 0;
    let count = 0;
    return new Promise((resolve) => {
      const look = (): void => {
        count++;
        quiet = this.#parks === seen ? quiet + 1 : 0;
        seen = this.#parks;
        const isQuiet = seen !== before && quiet === MICROTASKS_QUIET;
        const isOver = isQuiet || !this.#live.has(task) || this.#failure !== undefined;
        if (!isOver && count < MICROTASKS_MAX) return void microtask.then(look);
        if (!isOver) this.#suspect(task);
        resolve();
      };
      void microtask.then(look);
    });
  }

  /** A task that was never quiet is at fault unless it waits for something simulated. */
  #suspect(task: TaskState): void {
    if (task.reasons().length > 0) return;
    const text = `task ${task.name} neither parked nor ended: it awaits something outside`;
    this.#failure = new RunFailure('outside', [task.name], this.#options.seed, { text });
  }

  #deadlock(): never {
    throw this.#stuck('deadlock', 'no task can run');
  }

  #livelock(steps: number): never {
    throw this.#stuck('livelock', `no end after ${steps} steps`);
  }

  #stuck(kind: 'deadlock' | 'livelock', what: string): RunFailure {
    const tasks = [...this.#live];
    const states = tasks.map((task) => `${task.name}: ${task.reasons().join(', ') || 'ready'}`);
    const names = tasks.map(({ name }) => name);
    return new RunFailure(kind, names, this.#options.seed, {
      text: `${what}; ${states.join('; ')}`,
    });
  }
}
