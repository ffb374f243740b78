/**
 * What the tasks of the executor are made of: the task itself, its waits, and what tasks meet at. Nothing here decides who
 * runs; that is the executor's.
 */

/** What a task needs of its executor. */
export interface Scheduler {
  /** The task that runs now. Throws when there is none: the caller is outside the simulation. */
  running(): TaskState;
  /** A wait of the running task; `begin` is called when the task has really stopped there. */
  wait<T>(reason: string, begin: (park: Park<T>) => void): Wait<T>;
  parked(): void;
  makeReady(task: TaskState, resume: () => void): void;
  draw(site: string, bound: number): number;
  ended(task: TaskState): void;
  failed(task: TaskState, cause: unknown): void;
}

/** What the executor knows of a task, whatever its result is. */
export interface TaskState {
  readonly name: string;
  /** False once it has ended or was killed. */
  readonly alive: boolean;
  /** What it waits for, for messages. */
  reasons(): string[];
  add(park: AnyPark): void;
  remove(park: AnyPark): void;
  kill(): void;
}

type AnyPark = Park<never>;

/** One place where a task has stopped. */
export class Park<in T> {
  readonly reason: string;
  /** Called when the task dies while it waits here. */
  onDead: (() => void) | undefined;
  readonly #scheduler: Scheduler;
  readonly #task: TaskState;
  readonly #resolve: (value: T) => void;
  readonly #reject: (cause: unknown) => void;

  constructor(
    scheduler: Scheduler,
    task: TaskState,
    reason: string,
    settle: { readonly resolve: (value: T) => void; readonly reject: (cause: unknown) => void },
  ) {
    this.reason = reason;
    this.#scheduler = scheduler;
    this.#task = task;
    this.#resolve = settle.resolve;
    this.#reject = settle.reject;
  }

  /** The task may go on with `value`, when its turn is drawn. */
  wake(value: T): void {
    this.#leave(() => this.#resolve(value));
  }

  /** The task may go on with an error. */
  fail(cause: unknown): void {
    this.#leave(() => this.#reject(cause));
  }

  #leave(resume: () => void): void {
    this.#scheduler.makeReady(this.#task, () => {
      this.#task.remove(this);
      resume();
    });
  }
}

/** Something simulated that a task awaits. It begins when it is awaited. */
export class Wait<T> implements PromiseLike<T> {
  readonly #scheduler: Scheduler;
  readonly #task: TaskState;
  readonly #reason: string;
  readonly #begin: (park: Park<T>) => void;

  constructor(
    scheduler: Scheduler,
    task: TaskState,
    reason: string,
    begin: (park: Park<T>) => void,
  ) {
    this.#scheduler = scheduler;
    this.#task = task;
    this.#reason = reason;
    this.#begin = begin;
  }

  // oxlint-disable-next-line unicorn/no-thenable -- being awaited is all it is for
  then<Kept = T, Caught = never>(
    onKept?: ((value: T) => Kept | PromiseLike<Kept>) | null,
    onCaught?: ((cause: unknown) => Caught | PromiseLike<Caught>) | null,
  ): Promise<Kept | Caught> {
    return new Promise<T>((resolve, reject) => {
      if (!this.#task.alive) return;
      const park = new Park<T>(this.#scheduler, this.#task, this.#reason, { resolve, reject });
      this.#task.add(park);
      this.#scheduler.parked();
      this.#begin(park);
    }).then(onKept, onCaught);
  }
}

/** A task as the one who spawned it sees it. */
export class Task<T> implements TaskState {
  readonly name: string;
  readonly #scheduler: Scheduler;
  #state: TaskProgress<T> = { kind: 'alive' };
  readonly #parks = new Set<AnyPark>();
  readonly #joiners = new Set<Park<T>>();

  constructor(scheduler: Scheduler, name: string) {
    this.name = name;
    this.#scheduler = scheduler;
  }

  get alive(): boolean {
    return this.#state.kind === 'alive';
  }

  /** Waits for the task's end. Throws in the waiting task when it was cancelled. */
  join(): PromiseLike<T> {
    return this.#scheduler.wait<T>(`join ${this.name}`, (park) => {
      if (this.#state.kind === 'ended') park.wake(this.#state.result);
      else if (this.#state.kind === 'killed') park.fail(this.#cancelled());
      else meet(this.#joiners, park);
    });
  }

  /**
   * Kills the task: it is never resumed, and its `finally` blocks do not run, as in a crash. A task that cancels itself runs
   * on to its next wait.
   */
  cancel(): void {
    this.#scheduler.running();
    if (!this.alive) return;
    this.kill();
    for (const park of this.#joiners) park.fail(this.#cancelled());
    this.#scheduler.ended(this);
  }

  /** Runs the body: the executor's. */
  start(body: () => Promise<T>): void {
    void this.#run(body);
  }

  /** What the task returned: it has ended. */
  result(): T {
    if (this.#state.kind !== 'ended') throw this.#cancelled();
    return this.#state.result;
  }

  reasons(): string[] {
    return Array.from(this.#parks, (park) => park.reason);
  }

  add(park: AnyPark): void {
    this.#parks.add(park);
  }

  remove(park: AnyPark): void {
    this.#parks.delete(park);
  }

  kill(): void {
    this.#state = { kind: 'killed' };
    this.#leaveParks();
  }

  async #run(body: () => Promise<T>): Promise<void> {
    try {
      const result = await body();
      if (this.alive) this.#end(result);
    } catch (cause) {
      if (this.alive) this.#scheduler.failed(this, cause);
    }
  }

  #end(result: T): void {
    this.#state = { kind: 'ended', result };
    this.#leaveParks();
    this.#scheduler.ended(this);
    for (const park of this.#joiners) park.wake(result);
  }

  #leaveParks(): void {
    for (const park of this.#parks) park.onDead?.();
    this.#parks.clear();
  }

  #cancelled(): Error {
    return new Error(`task ${this.name} was cancelled`);
  }
}

/** A door that is opened once and then stays open. */
export class Gate {
  readonly #scheduler: Scheduler;
  readonly #name: string;
  readonly #waiting = new Set<Park<void>>();
  #open = false;

  constructor(scheduler: Scheduler, name: string) {
    this.#scheduler = scheduler;
    this.#name = name;
  }

  /** Lets everybody through who waits or comes later. */
  open(): void {
    this.#open = true;
    for (const park of this.#waiting) park.wake();
    this.#waiting.clear();
  }

  pass(): PromiseLike<void> {
    return this.#scheduler.wait<void>(`gate ${this.#name}`, (park) => {
      if (this.#open) park.wake();
      else meet(this.#waiting, park);
    });
  }
}

/** Messages in the order sent. Which of several waiting receivers gets one is drawn. */
export class Channel<T> {
  readonly #scheduler: Scheduler;
  readonly #name: string;
  readonly #messages: { readonly message: T }[] = [];
  readonly #waiting = new Set<Park<T>>();

  constructor(scheduler: Scheduler, name: string) {
    this.#scheduler = scheduler;
    this.#name = name;
  }

  /** Leaves a message; never waits. */
  send(message: T): void {
    const receivers = [...this.#waiting];
    const index =
      receivers.length > 0 ? this.#scheduler.draw('channel.receiver', receivers.length) : 0;
    const receiver = receivers[index];
    if (receiver === undefined) {
      this.#messages.push({ message });
      return;
    }
    this.#waiting.delete(receiver);
    receiver.wake(message);
  }

  receive(): PromiseLike<T> {
    return this.#scheduler.wait<T>(`channel ${this.#name}`, (park) => {
      const first = this.#messages.shift();
      if (first === undefined) meet(this.#waiting, park);
      else park.wake(first.message);
    });
  }
}

type TaskProgress<T> =
  | { readonly kind: 'alive' }
  | { readonly kind: 'ended'; readonly result: T }
  | { readonly kind: 'killed' };

/** Puts a park among those who wait here, until it is woken or its task dies. */
function meet<T>(waiting: Set<Park<T>>, park: Park<T>): void {
  waiting.add(park);
  park.onDead = () => waiting.delete(park);
}
