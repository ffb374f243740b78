/**
 * Those who make things happen in a world: plain async functions on the seeded executor. They see what a program or an operator
 * could see, and act by actions, which are written down.
 */
import { microseconds, type Duration, type Instant } from '../../core/time.ts';
import type { Context } from '../executor.ts';
import type { Random } from '../random.ts';
import type { Channel } from '../task.ts';
import type { WorldAction } from './actions.ts';
import { MESSAGE_BYTES_MIN, type Message } from './message.ts';
import { PHASES, type Phase, type WorldSpec } from './spec.ts';

export type ActorBody = (actor: Actor) => Promise<void>;

/** Actors by name: each draws from a stream of its own. */
export type Cast = Readonly<Record<string, ActorBody>>;

/** What an actor's world offers it. */
export interface Stage {
  readonly spec: WorldSpec;
  readonly phase: Phase;
  perform(action: WorldAction): void;
  /** The number of the request that a client sent last. */
  serialOf(client: number): number;
  /** Leaves what a client hears in the channel. */
  listen(client: number, channel: Channel<Message | undefined>): void;
}

/** Where a question goes, and for how long its answer is waited for. */
export interface Question {
  readonly proxy?: number;
  readonly listener?: number;
  readonly bytes: number;
  readonly timeout: Duration;
}

export class Actor {
  readonly random: Random;
  readonly #stage: Stage;
  readonly #context: Context;
  readonly #inboxes = new Map<number, Channel<Message | undefined>>();

  constructor(stage: Stage, context: Context, random: Random) {
    this.random = random;
    this.#stage = stage;
    this.#context = context;
  }

  get spec(): WorldSpec {
    return this.#stage.spec;
  }

  get phase(): Phase {
    return this.#stage.phase;
  }

  now(): Instant {
    return this.#context.now();
  }

  /** Whether the phase has begun. */
  isPast(phase: Phase): boolean {
    return PHASES.indexOf(this.phase) >= PHASES.indexOf(phase);
  }

  act(action: WorldAction): void {
    this.#stage.perform(action);
  }

  sleep(duration: Duration): PromiseLike<void> {
    return this.#context.sleep(duration);
  }

  /** A time from `low` to `high`. */
  pause(site: string, low: Duration, high: Duration): PromiseLike<void> {
    return this.sleep(microseconds(this.random.between(site, low, high)));
  }

  /** Sends a request and waits for nothing. */
  send(client: number, { proxy = 0, listener = 0, bytes }: Omit<Question, 'timeout'>): void {
    this.act({ kind: 'Send', client, proxy, listener, bytes });
  }

  /** Sends a request; the first answer to it, or undefined when none came in time. One question at a time for each client. */
  async ask(client: number, question: Question): Promise<Message | undefined> {
    const inbox = this.#inboxOf(client);
    const bytes = Math.max(question.bytes, MESSAGE_BYTES_MIN);
    this.send(client, { ...question, bytes });
    const serial = this.#stage.serialOf(client);
    const alarm = this.#context.spawn(`timeout of ${client}`, async (context) => {
      await context.sleep(question.timeout);
      inbox.send(undefined);
    });
    for (;;) {
      const heard = await inbox.receive();
      // Whoever hears something acts a moment later: actors come before the events of an instant.
      if (heard?.serial === serial) {
        alarm.cancel();
        await this.sleep(microseconds(1));
        return heard;
      }
      if (heard === undefined) return undefined;
    }
  }

  /** Another actor, of its own name and stream. */
  spawn(name: string, body: ActorBody): void {
    this.#context.spawn(name, (context) =>
      body(new Actor(this.#stage, context, this.random.fork(name))),
    );
  }

  #inboxOf(client: number): Channel<Message | undefined> {
    let inbox = this.#inboxes.get(client);
    if (inbox === undefined) {
      inbox = this.#context.channel<Message | undefined>(`inbox ${client}`);
      this.#inboxes.set(client, inbox);
      this.#stage.listen(client, inbox);
    }
    return inbox;
  }
}
