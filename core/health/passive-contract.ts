/** The words that pass in and out of passive health, and which probes can speak against a suspicion. */
import type { Address } from '../address.ts';
import { microseconds, seconds, type Duration, type Instant } from '../time.ts';
import type { HealthSettings } from './settings.ts';

export interface PassiveSettings {
  /** Missing answers count only for `request-response`. Undefined: nobody said how the protocol talks. */
  readonly exchange: 'request-response' | 'one-way' | undefined;
  /** Which suspicions a probe could prove wrong. */
  readonly confirm: 'none' | 'refusals' | 'all';
  /** How long to wait for that probe; after it the evidence alone decides. */
  readonly confirmWait: Duration;
}

/** A probe that is due starts at once unless very many are in flight; this much is for its way there and back. */
const CONFIRM_SLACK = seconds(1);

/**
 * What passive health makes of a cluster's settings. A TCP probe may say that a backend lives although refusals were heard:
 * whoever forges ICMP does not stop it. It says nothing about missing answers: the kernel of a stopped process still
 * accepts connections. A UDP probe asks the very socket that is in doubt.
 */
export function passiveSettings(
  exchange: PassiveSettings['exchange'],
  health: HealthSettings | undefined,
): PassiveSettings {
  if (health === undefined || health.mode === 'HEALTH_OFF') {
    return { exchange, confirm: 'none', confirmWait: seconds(0) };
  }
  const confirm = health.mode === 'UDP_PROBE' ? 'all' : 'refusals';
  return { exchange, confirm, confirmWait: microseconds(health.probeTimeout + CONFIRM_SLACK) };
}

export type PassiveEvidence =
  | {
      readonly kind: 'refusals';
      /** Within the window, of at least REFUSAL_FLOWS_MIN flows. */
      readonly refusals: number;
    }
  | {
      readonly kind: 'answers';
      /** Within the window. */
      readonly requests: number;
      readonly answers: number;
      /** Answers for each request at the best backend of the cluster. */
      readonly bestRatio: number;
    };

export type PassiveOutput =
  /** Probe this backend now and say with `probed` what came of it. It serves meanwhile. */
  | {
      readonly kind: 'ConfirmRequested';
      readonly address: Address;
      readonly evidence: PassiveEvidence;
    }
  /** No new flows for it until it is returned. */
  | {
      readonly kind: 'Ejected';
      readonly address: Address;
      readonly until: Instant;
      readonly evidence: PassiveEvidence;
    }
  /** `time-over`: it served its time. `last-available`: nobody else is left. */
  | {
      readonly kind: 'Returned';
      readonly address: Address;
      readonly reason: 'time-over' | 'last-available';
    };

/** When passive health wants to be woken, and why. */
export interface PassiveWake {
  readonly at: Instant;
  readonly reason: 'answers-compared' | 'ejection-over' | 'confirmation-overdue';
}
