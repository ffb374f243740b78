/**
 * Closes flows whose backend is lost, where the cluster closes such flows without waiting for a datagram. A million of them
 * are closed in slices, so that no turn is long; what is left over wakes the machine at once.
 */
import { flowId } from './brand.ts';
import type { Fates } from './fates.ts';
import type { UdpManager } from './manager.ts';
import type { Instant } from './time.ts';

const CLOSES_PER_TURN = 256;

/** Slots looked at in one turn: a fraction of a millisecond. */
const VISITS_PER_TURN = 65_536;

interface Swept {
  readonly manager: UdpManager;
}

export class Sweep {
  private readonly fates: Fates;
  private readonly closesPerTurn: number;
  private wake: Instant | undefined;
  /** Where the pass under way goes on. */
  private listener = 0;
  private slot = 0;
  /** Something was lost behind the pass under way. */
  private again = false;

  constructor(fates: Fates, closesPerTurn: number = CLOSES_PER_TURN) {
    this.fates = fates;
    this.closesPerTurn = closesPerTurn;
  }

  /** When the next slice is due; undefined when nothing is left to do. */
  get at(): Instant | undefined {
    return this.wake;
  }

  /** Flows may have lost their backend. A pass under way goes on to its end first: it always gets there. */
  begin(now: Instant): void {
    this.again = this.wake !== undefined;
    this.wake = now;
  }

  /** One slice, if one is due. After each close `closed` drains the flow machine. */
  slice<T extends Swept>(
    listeners: readonly (T | undefined)[],
    now: Instant,
    closed: (listener: T) => void,
  ): void {
    if (this.wake === undefined) return;
    this.wake = now;
    let closes = this.closesPerTurn;
    for (let visits = VISITS_PER_TURN; visits > 0 && closes > 0; visits -= 1) {
      if (this.listener >= listeners.length && !this.passAgain()) return;
      const listener = listeners[this.listener];
      if (listener === undefined || this.slot >= listener.manager.table.highWater) {
        this.listener += 1;
        this.slot = 0;
        continue;
      }
      this.slot += 1;
      if (!this.closeIfLost(listener.manager, this.slot - 1, now)) continue;
      closes -= 1;
      closed(listener);
    }
  }

  private closeIfLost(manager: UdpManager, slot: number, now: Instant): boolean {
    const { table, backends } = manager;
    if (!table.isLive(slot)) return false;
    if (this.fates.of(backends.get(table.backendOf(slot))) !== 'close') return false;
    manager.abortFlow(flowId(slot), now, 'BackendLost');
    return true;
  }

  /** Whether another pass is due after the one that is at its end. */
  private passAgain(): boolean {
    const { again } = this;
    this.listener = 0;
    this.slot = 0;
    this.again = false;
    if (!again) this.wake = undefined;
    return again;
  }
}
