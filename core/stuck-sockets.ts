/**
 * Gives up sockets that had no room for too long: a flow goes on with another one, a listener with another at the same
 * address. What waited is dropped, for it is old.
 */
import { flowId, listenerOf, type SocketId } from './brand.ts';
import type { Egress } from './egress.ts';
import type { Listener } from './plane-listener.ts';
import type { Listeners } from './plane-listeners.ts';
import type { Instant } from './time.ts';
import type { Upstreams } from './upstreams.ts';

/** Of upstream sockets: what blocks all of them at once must not hold a turn while each is opened anew. */
export const GIVEN_UP_PER_TURN = 64;

export interface StuckSocketsOptions {
  readonly egress: Egress;
  readonly upstreams: Upstreams;
  readonly listeners: Listeners;
  readonly drain: (listener: Listener, now: Instant) => void;
}

export class StuckSockets {
  private readonly tools: StuckSocketsOptions;

  constructor(tools: StuckSocketsOptions) {
    this.tools = tools;
  }

  /** When the next is to be given up. */
  get dueAt(): Instant | undefined {
    const { upstreamsBlocked, listenersBlocked } = this.tools.egress;
    const upstream = upstreamsBlocked.dueAt;
    const listener = listenersBlocked.dueAt;
    if (upstream === undefined || listener === undefined) return upstream ?? listener;
    return upstream < listener ? upstream : listener;
  }

  /** Gives up those that are due, or some of many: then more are due at once. */
  giveUp(now: Instant): void {
    const { egress, listeners } = this.tools;
    const { upstreamsBlocked, listenersBlocked } = egress;
    for (let left = GIVEN_UP_PER_TURN; left > 0; left -= 1) {
      const socket = upstreamsBlocked.due(now);
      if (socket === undefined) break;
      this.giveUpUpstream(socket, now);
    }
    for (let id = listenersBlocked.due(now); id !== undefined; id = listenersBlocked.due(now)) {
      listenersBlocked.forget(id);
      listeners.reopen(id);
    }
  }

  /** A flow that lingers sends nothing more, and has nothing to renew its socket for. */
  private giveUpUpstream(socket: SocketId, now: Instant): void {
    const { egress, upstreams, listeners, drain } = this.tools;
    egress.upstreamsBlocked.forget(socket);
    const listener = listeners.at(listenerOf(socket));
    const slot = upstreams.slotOf(socket);
    if (listener === undefined || slot === undefined) return;
    listener.counters.socketsGivenUp += 1;
    const { manager } = listener;
    if (manager.table.isLingering(slot)) manager.abortFlow(flowId(slot), now);
    else manager.renewUpstream(flowId(slot), now);
    drain(listener, now);
  }
}
