/**
 * When a world within tolerance has healed: its faults are over, and as much time has passed as probes, pauses and idle flows
 * may take. Whoever disturbs it after that makes it wait anew.
 */
import type { Config } from '../../../core/config.ts';
import {
  after,
  microseconds,
  milliseconds,
  seconds,
  type Duration,
  type Instant,
} from '../../../core/time.ts';
import type { WorldAction } from '../actions.ts';
import type { Hearings } from '../facts.ts';
import type { WorldSpec } from '../spec.ts';
import { probingOf } from './probed-backends.ts';

/** A socket that has had no room for so long is given up (blocked-sockets.ts). */
export const BLOCKED_MAX: Duration = seconds(5);

/** The longest rest after an open that failed, and some for the way. */
const REST = milliseconds(500);

export class Healing {
  readonly hearings: Hearings;
  #upstreamStalls = false;
  #listenerStalls = false;
  #from: Instant | undefined;
  #longest: Duration = REST;

  constructor(spec: WorldSpec) {
    for (const { config } of spec.proxies) this.#learn(config);
    this.hearings = {
      PhaseBegan: ({ phase }, at) => {
        this.#from = phase === 'heal' && spec.withinTolerance ? at : undefined;
      },
      Acted: ({ action }, at) => this.#acted(action, at),
    };
  }

  /**
   * Sends did not complete, and their sockets have no room until they are given up. Nobody knows of one before something
   * waits for it, so that the faults may be long over by then.
   */
  get sawStalls(): boolean {
    return this.#upstreamStalls || this.#listenerStalls;
  }

  /**
   * Whoever has asked in vain for so long must be answered now: its socket was blocked by its first question at the latest,
   * and then the listener by the answer to a later one.
   */
  get patience(): Duration {
    if (this.#listenerStalls) return microseconds(3 * BLOCKED_MAX);
    return microseconds(this.#upstreamStalls ? BLOCKED_MAX + REST : 0);
  }

  /** Whether everything should work by now. */
  isSettled(at: Instant): boolean {
    return this.#from !== undefined && at >= after(this.#from, this.#longest);
  }

  #acted(action: WorldAction, at: Instant): void {
    if (action.kind === 'Send' || action.kind === 'Reopen' || action.kind === 'Remap') return;
    if (action.kind === 'Order' && action.command.kind === 'Reload')
      this.#learn(action.command.config);
    if (action.kind === 'HostFault') {
      const { upstreamStalls, listenerStalls } = action.faults;
      this.#upstreamStalls ||= upstreamStalls !== undefined;
      this.#listenerStalls ||= listenerStalls !== undefined;
    }
    if (action.kind === 'Start') this.#learn(action.config);
    if (action.kind !== 'Begin' && this.#from !== undefined) this.#from = at;
  }

  /** A backend is up again after `rise` probes, each an interval after the last, and the first may have to time out. */
  #learn({ clusters }: Config): void {
    for (const settings of clusters) {
      const probing = probingOf(settings);
      if (probing === undefined) continue;
      const { rise, probeInterval, probeTimeout } = probing;
      const time = (3 * rise + 1) * probeInterval + 2 * probeTimeout + REST;
      this.#longest = microseconds(Math.max(this.#longest, time));
    }
  }
}
