/**
 * Upstream sockets that no way leads out of. A socket is bound to a local address for life; when that address goes, or the
 * route from it, each send fails, and a client that never pauses would keep such a socket for ever. A new one gets the next
 * source, or whichever address the kernel chooses by then.
 */
import type { SocketId } from './brand.ts';
import { after, seconds, until, type Duration, type Instant } from './time.ts';

/** One failure may be a route that flaps; the third in a row is a state. */
export const FAILURES_MIN = 3;

/** Failures further apart are no row: a sender of one datagram in half a minute is the slowest that matters. */
const FAILURES_WINDOW: Duration = seconds(60);

/** Of one flow: a new socket costs some thirty times what a datagram does, and may be no better. */
export const RENEWAL_PERIOD: Duration = seconds(1);

interface Row {
  failures: number;
  since: Instant;
  notBefore: Instant;
}

export class DeadWays {
  /** Of open sockets whose latest sends failed, or that took the place of one such. */
  private readonly rows = new Map<SocketId, Row>();

  /** Whether any socket is in doubt: else nobody need tell of answers and closes. */
  get hasDoubts(): boolean {
    return this.rows.size > 0;
  }

  /** A send found no way out. Whether the flow should have a new socket now. */
  failed(socket: SocketId, now: Instant): boolean {
    const row = this.rows.get(socket);
    if (row === undefined || until(row.since, now) > FAILURES_WINDOW) {
      this.rows.set(socket, { failures: 1, since: now, notBefore: row?.notBefore ?? now });
      return false;
    }
    row.failures += 1;
    return row.failures >= FAILURES_MIN && now >= row.notBefore;
  }

  /** `socket` took the place of one without a way. */
  renewed(socket: SocketId, now: Instant): void {
    this.rows.set(socket, { failures: 0, since: now, notBefore: after(now, RENEWAL_PERIOD) });
  }

  /** It was answered, or it closed. */
  forget(socket: SocketId): void {
    this.rows.delete(socket);
  }
}
