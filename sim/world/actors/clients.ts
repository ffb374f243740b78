/**
 * Clients, as programs one meets: what asks and asks again, what tells and never listens, what chats in many sizes, what is
 * silent for long, what moves, and what lies about its address. Each is a function of what makes it differ.
 */
import type { Address } from '../../../core/address.ts';
import { milliseconds, type Duration } from '../../../core/time.ts';
import type { Actor, ActorBody, Cast } from '../actor.ts';
import type { Span } from '../faults.ts';
import { rest, throughChaos } from './phases.ts';

/** What the client of this number does. */
export type Program = (client: number) => ActorBody;

/** `count` clients from number `first` on, under names of their own. */
export function crowd(name: string, count: number, program: Program, first = 0): Cast {
  return Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`${name} ${index}`, program(first + index)]),
  );
}

/** How somebody speaks. */
export interface Habit {
  /** Of the world, by number. */
  readonly proxy?: number;
  /** Those it speaks to, by their numbers in the proxy's first configuration; each time one of them. */
  readonly listeners?: readonly number[];
  /** Sizes of its datagrams, each as likely as another. */
  readonly bytes?: readonly number[];
  /** Datagrams before it rests: from 1 to this. */
  readonly burst?: number;
  readonly rest: Span;
}

/** What somebody expects who asks. */
export interface Expectation {
  readonly timeout?: Duration;
  /** How often it repeats a question that nobody answered. */
  readonly retries?: number;
}

/** A resolver: one question at a time, and again when no answer came. */
export function resolver(habit: Habit, expectation: Expectation = {}): Program {
  const { timeout = milliseconds(40), retries = 1 } = expectation;
  return speaker(habit, async (actor, client, datagram) => {
    for (let attempt = 0; attempt <= retries; attempt++) {
      if ((await actor.ask(client, { ...datagram, timeout })) !== undefined) return;
    }
  });
}

/** A source of messages that nobody answers: a burst goes out within a moment. */
export function logger(habit: Habit): Program {
  return speaker(habit, (actor, client, datagram) => {
    actor.send(client, datagram);
    return actor.pause('between messages', milliseconds(0), milliseconds(2));
  });
}

/** One that sends the next before the last was answered. With sizes of 0 some of its datagrams are empty. */
export function chatter(habit: Habit): Program {
  return speaker(habit, (actor, client, datagram) => {
    actor.send(client, datagram);
    return actor.pause('between', milliseconds(0), milliseconds(1));
  });
}

/** Two questions at one instant from one socket, as for A and AAAA. */
export function twins(habit: Habit): Program {
  return speaker(habit, (actor, client, datagram) => {
    actor.send(client, datagram);
    actor.send(client, datagram);
    return actor.pause('between', milliseconds(0), milliseconds(1));
  });
}

/** Moves clients now and then, while there is chaos: `Reopen` gives another port, `Remap` another of the NAT. */
export function mover(kind: 'Reopen' | 'Remap', clients: number, every: Span): ActorBody {
  return throughChaos(every, (actor) => {
    actor.act({ kind, client: actor.random.choose('who moves', clients) });
    return Promise.resolve();
  });
}

export interface Flood extends Omit<Habit, 'rest'> {
  /** Where its datagrams say they come from. */
  readonly sources: (actor: Actor) => Address;
  readonly every: Span;
  /** The host they leave, by number. */
  readonly host?: number;
}

/** While there is chaos, datagrams under sources that are somebody else's, or nobody's. */
export function flood({ sources, every, host = 0, burst = 1, ...habit }: Flood): ActorBody {
  return throughChaos(every, (actor) => {
    const count = actor.random.between('burst', 1, burst);
    for (let sent = 0; sent < count; sent++) {
      actor.act({ kind: 'Spoof', host, src: sources(actor), ...drawDatagram(actor, habit) });
    }
    return Promise.resolve();
  });
}

interface Drawn {
  readonly proxy: number;
  readonly listener: number;
  readonly bytes: number;
}

/** Speaks in bursts until the proxies are told to stop. */
function speaker(
  habit: Habit,
  speak: (actor: Actor, client: number, datagram: Drawn) => PromiseLike<void>,
): Program {
  return (client) => async (actor) => {
    for (;;) {
      await rest(actor, 'rest', habit.rest);
      if (actor.isPast('drain')) return;
      const count = actor.random.between('burst', 1, habit.burst ?? 1);
      for (let said = 0; said < count; said++) {
        await speak(actor, client, drawDatagram(actor, habit));
      }
    }
  };
}

function drawDatagram(
  { random }: Actor,
  { proxy = 0, listeners = [0], bytes = QUESTION_BYTES }: Omit<Habit, 'rest'>,
): Drawn {
  return {
    proxy,
    listener: random.pick('listener', listeners),
    bytes: random.pick('bytes', bytes),
  };
}

/** Of a DNS query. */
const QUESTION_BYTES: readonly number[] = [28, 40, 61, 90];
