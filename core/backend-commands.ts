/** What an operator asks of one backend, and what is answered. Data only. */
import type { Address } from './address.ts';
import type { OperatorState } from './balancing/candidates.ts';
import type { Refused } from './commands.ts';
import type { Duration } from './time.ts';

/** Of every backend at `address`: that is what names one (spec §1.6). */
export type BackendCommand =
  /**
   * No new flows; those there are may stay until `deadline` from now, for ever without one. `force`: even if no active
   * backend is left.
   */
  | {
      readonly kind: 'DrainBackend';
      readonly cluster: string;
      readonly address: Address;
      readonly deadline?: Duration | undefined;
      readonly force?: boolean | undefined;
    }
  /** Active again, whether it was draining, drained or disabled. */
  | { readonly kind: 'UndrainBackend'; readonly cluster: string; readonly address: Address }
  /** No new flows, and those there are lose it at once. */
  | {
      readonly kind: 'DisableBackend';
      readonly cluster: string;
      readonly address: Address;
      readonly force?: boolean | undefined;
    };

/** The state that a command left the backend in, or why it changed nothing. */
export type BackendOutcome =
  { readonly ok: true; readonly changed: boolean; readonly state: OperatorState } | Refused;
