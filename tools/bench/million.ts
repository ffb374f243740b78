/**
 * A million flows that come and go, in the core alone: whether any turn is so long that a datagram would feel it. Flows are
 * admitted a batch a turn and are due as they came; what the collector needs is in the turns.
 */
import { createManager, inputOf } from './in-core.ts';
import type { UdpManager } from '../../core/manager.ts';
import { after, instant, milliseconds, seconds, type Instant } from '../../core/time.ts';

/** Milliseconds by the clock, of the best run: the scheduler only ever makes a run worse. */
export interface MillionResult {
  readonly flows: number;
  readonly flowsPerTurn: number;
  readonly runs: number;
  readonly longestAdmission: number;
  readonly longestExpiry: number;
  /** One turn in which all of them are due, as after a pause of the machine. */
  readonly allAtOnce: number;
}

export interface MillionOptions {
  /** `globalThis.gc`. */
  readonly collect: () => void;
  readonly progress: (text: string) => void;
}

const FLOWS = 1_000_000;
/** As many as a driver hears of in a turn. */
const FLOWS_PER_TURN = 256;
const TURNS = Math.ceil(FLOWS / FLOWS_PER_TURN);
const IDLE_SECONDS = 30;
const IDLE = seconds(IDLE_SECONDS);
const START = instant(0);
/** When the last flow of the first million has gone. */
const AGAIN = after(START, seconds(2 * IDLE_SECONDS));
const RUNS = 3;

export function measureMillion({ collect, progress }: MillionOptions): MillionResult {
  const best = { longestAdmission: Infinity, longestExpiry: Infinity, allAtOnce: Infinity };
  for (let run = 1; run <= RUNS; run += 1) {
    progress(`a million flows, run ${run} of ${RUNS}`);
    const manager = createManager(FLOWS, IDLE);
    collect();
    const admission = longestTurn(START, (turn, now) => admit(manager, turn, now));
    expectFlows(manager, FLOWS);
    const expiry = longestTurn(after(START, IDLE), (_, now) => expire(manager, now));
    expectFlows(manager, 0);
    longestTurn(AGAIN, (turn, now) => admit(manager, turn, now));
    const begun = performance.now();
    expire(manager, after(AGAIN, seconds(2 * IDLE_SECONDS)));
    const allAtOnce = performance.now() - begun;
    expectFlows(manager, 0);
    best.longestAdmission = Math.min(best.longestAdmission, admission);
    best.longestExpiry = Math.min(best.longestExpiry, expiry);
    best.allAtOnce = Math.min(best.allAtOnce, allAtOnce);
  }
  return { flows: FLOWS, flowsPerTurn: FLOWS_PER_TURN, runs: RUNS, ...best };
}

/** Milliseconds of the longest turn; one begins every millisecond from `start` on, by the clock of the flows. */
function longestTurn(start: Instant, work: (turn: number, now: Instant) => void): number {
  let longest = 0;
  for (let turn = 0; turn < TURNS; turn += 1) {
    const begun = performance.now();
    work(turn, after(start, milliseconds(turn)));
    longest = Math.max(longest, performance.now() - begun);
  }
  return longest;
}

function admit(manager: UdpManager, turn: number, now: Instant): void {
  const end = Math.min(FLOWS, (turn + 1) * FLOWS_PER_TURN);
  for (let number = turn * FLOWS_PER_TURN; number < end; number += 1) {
    manager.handleInput(inputOf('client', number), now);
    while (manager.pollOutput() !== undefined);
  }
}

function expire(manager: UdpManager, now: Instant): void {
  manager.handleTimeout(now);
  while (manager.pollOutput() !== undefined);
}

function expectFlows(manager: UdpManager, count: number): void {
  if (manager.flowCount !== count) throw new Error(`${manager.flowCount} flows, not ${count}`);
}
