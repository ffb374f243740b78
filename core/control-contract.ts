/** The words that pass in and out of the control plane. Data only; a trace is a list of these. */
import type { Address } from './address.ts';
import type { DrainEvent } from './backend-states.ts';
import type { RequestId } from './brand.ts';
import type { Command, Reply } from './commands.ts';
import type { GeneratedDirective, Report } from './directives.ts';
import type { Health } from './health/hysteresis.ts';
import type { PassiveEvidence } from './health/passive-contract.ts';
import type {
  HealthEvidence,
  ProbeAnswer,
  ProbeId,
  ProbePlanOutput,
} from './health/probe-contract.ts';
import type { Instant } from './time.ts';

export type ControlInput =
  | { readonly kind: 'Command'; readonly request: RequestId; readonly command: Command }
  | { readonly kind: 'ProbeAnswered'; readonly probe: ProbeId; readonly answer: ProbeAnswer }
  | { readonly kind: 'Reported'; readonly report: Report };

/** A probe to perform. */
export type Probe = Extract<ProbePlanOutput, { kind: 'StartProbe' }>;

/** What an operator is told, and what metrics fold. */
export type ControlEvent =
  | {
      readonly kind: 'HealthChanged';
      readonly cluster: string;
      readonly address: Address;
      readonly from: Health;
      readonly to: Health;
      readonly evidence: HealthEvidence;
    }
  /** Its traffic speaks against a backend: no new flows for it until then. */
  | {
      readonly kind: 'BackendEjected';
      readonly cluster: string;
      readonly address: Address;
      readonly until: Instant;
      readonly evidence: PassiveEvidence;
    }
  | {
      readonly kind: 'BackendReturned';
      readonly cluster: string;
      readonly address: Address;
      readonly reason: 'time-over' | 'last-available';
    }
  | {
      readonly kind: 'Availability';
      readonly cluster: string;
      readonly available: number;
      readonly total: number;
    }
  /** Nobody is available, told once. `failOpen`: every backend is tried; else new flows are refused. */
  | {
      readonly kind: 'NoAvailableBackends';
      readonly cluster: string;
      readonly total: number;
      readonly failOpen: boolean;
    }
  /** The end of that, told once. */
  | { readonly kind: 'ClusterRecovered'; readonly cluster: string; readonly available: number }
  | DrainEvent;

export type ControlOutput =
  | { readonly kind: 'Direct'; readonly message: GeneratedDirective }
  | Probe
  | Extract<ProbePlanOutput, { kind: 'CancelProbe' }>
  | { readonly kind: 'Event'; readonly event: ControlEvent }
  /** To one command; once, and after everything that it directed. */
  | { readonly kind: 'Reply'; readonly request: RequestId; readonly reply: Reply };

/** A control plane as its pump sees it: the machine itself, or one that also tells somebody what goes in and out. */
export interface ControlMachine {
  handleInput(input: ControlInput, now: Instant): void;
  handleTimeout(now: Instant): void;
  pollOutput(): ControlOutput | undefined;
  pollTimeout(): { readonly at: Instant } | undefined;
}
