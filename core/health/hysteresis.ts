/**
 * When a backend counts as up or down: only a streak of results turns it (spec §5.5). Pure functions of a small value, so
 * that a snapshot is a copy and a law is a property.
 */
import { assertNever } from '../assert.ts';

export type Health = 'up' | 'down';

/** `unknown`: a UDP probe that expects no reply got none. It may have arrived, or gone nowhere. */
export type ProbeResult = 'up' | 'down' | 'unknown';

export interface Thresholds {
  /** At least 1. */
  readonly rise: number;
  /** At least 1. */
  readonly fall: number;
}

export interface HealthState {
  readonly health: Health;
  /** Successes in a row; they count on beyond the threshold. */
  readonly successes: number;
  /** Failures in a row, unknown results between them not counted. */
  readonly failures: number;
  /** Unknown results since the last failure, while down. */
  readonly silences: number;
}

/** A backend is up until shown otherwise. */
export const INITIAL_HEALTH: HealthState = { health: 'up', successes: 0, failures: 0, silences: 0 };

export interface HealthTransition {
  readonly from: Health;
  readonly to: Health;
  /** Results in a row that turned it, for the log. */
  readonly streak: number;
}

export interface Judgement {
  readonly state: HealthState;
  readonly transition: HealthTransition | undefined;
}

/**
 * Three silences weigh as one success. They must weigh something: where no reply is expected, silence is the best that a
 * backend can do, and one that was refusing could never return. They must weigh less: a host whose refusals were cut off by
 * its own ICMP rate limit is silent too.
 */
export const SILENCES_PER_SUCCESS = 3;

/** What `result` makes of `state`. Silence never turns a backend down, and says nothing of one that is up. */
export function judge(state: HealthState, result: ProbeResult, thresholds: Thresholds): Judgement {
  switch (result) {
    case 'up':
      return settle({ ...state, successes: state.successes + 1, failures: 0 }, thresholds);
    case 'down':
      return settle(
        { ...state, successes: 0, failures: state.failures + 1, silences: 0 },
        thresholds,
      );
    case 'unknown':
      if (state.health === 'up') return { state, transition: undefined };
      return settle({ ...state, silences: state.silences + 1 }, thresholds);
    default:
      return assertNever(result);
  }
}

function settle(state: HealthState, { rise, fall }: Thresholds): Judgement {
  const { health, successes, failures, silences } = state;
  if (health === 'up') {
    if (failures < fall) return { state, transition: undefined };
    const transition: HealthTransition = { from: 'up', to: 'down', streak: failures };
    return { state: { ...state, health: 'down' }, transition };
  }
  const enough = rise * SILENCES_PER_SUCCESS;
  if (successes * SILENCES_PER_SUCCESS + silences < enough) return { state, transition: undefined };
  const transition: HealthTransition = { from: 'down', to: 'up', streak: successes + silences };
  return { state: { ...state, health: 'up', failures: 0, silences: 0 }, transition };
}
