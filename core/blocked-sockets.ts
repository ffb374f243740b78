/**
 * Sockets that have no room. A working kernel gives room again within moments; a send that never completes (libuv issue 5194)
 * takes it away for ever, and a client that goes on renews the idle time of its flow all the while. Whoever had no room for
 * too long is given up, and something waits for each of them, so nobody looks at a socket that is well.
 */
import { after, seconds, type Duration, type Instant } from './time.ts';

/**
 * How long a socket may be without a sign of room. The default send buffer empties by half, and Linux tells of that, within
 * five seconds even at 200 kbit/s; and what has waited so long is of no use to a UDP client any more.
 */
export const BLOCKED_MAX: Duration = seconds(5);

export class BlockedSockets<Key extends number> {
  /** When a driver was last asked to tell of room. Who waits longest comes first. */
  private readonly since = new Map<Key, Instant>();

  /** It had no room, or not enough, just now. */
  blocked(key: Key, now: Instant): void {
    this.since.delete(key);
    this.since.set(key, now);
  }

  /** It has room, or it closed. */
  forget(key: Key): void {
    this.since.delete(key);
  }

  /** When the first of them is to be given up. */
  get dueAt(): Instant | undefined {
    if (this.since.size === 0) return undefined;
    const { value: since } = this.since.values().next();
    return since === undefined ? undefined : after(since, BLOCKED_MAX);
  }

  /** One that is to be given up. It stays until it is forgotten. */
  due(now: Instant): Key | undefined {
    const { dueAt } = this;
    return dueAt === undefined || dueAt > now ? undefined : this.since.keys().next().value;
  }
}
