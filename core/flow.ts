/**
 * One virtual connection: what is known of it, which phases it passes through and when a cap ends it (spec §1.8, §2.5).
 * The table below owns the transitions; doc/LIFECYCLE.md is generated from it.
 */
import type { Address } from './address.ts';
import { assert } from './assert.ts';
import type { Backend, CloseReason, ClusterConfig } from './contract.ts';
import type { Instant } from './time.ts';

/**
 * A flow is born established: selection happens inside the call that admits it. One that lingers takes no client datagram any
 * more, but still returns replies.
 */
export type FlowPhase = 'Established' | 'Lingering' | 'Closing';

/** What can happen to a flow. */
export type FlowEvent =
  | 'ClientDatagram'
  | 'BackendDatagram'
  /** It goes on with another backend. */
  | 'Rebound'
  /** It spent its requests, and replies are still to come (`requestsLinger`). */
  | 'RepliesAwaited'
  /** It has all its replies, and late ones are still welcome (`lateReplyGrace`). */
  | 'RepliesComplete'
  | CloseReason;

/** Why a flow that lingers closes at its deadline. */
export type LingerEnd = 'Idle' | 'ResponsesReached' | 'RequestsReached';

type TransitionTable = Readonly<Record<FlowPhase, Readonly<Partial<Record<FlowEvent, FlowPhase>>>>>;

/** A pair that is not in here cannot happen. Closing has no way out: the flow is gone when the call returns. */
export const FLOW_TRANSITIONS: TransitionTable = {
  Established: {
    ClientDatagram: 'Established',
    BackendDatagram: 'Established',
    Rebound: 'Established',
    RepliesAwaited: 'Lingering',
    RepliesComplete: 'Lingering',
    Idle: 'Closing',
    ResponsesReached: 'Closing',
    RequestsReached: 'Closing',
    Drain: 'Closing',
    Aborted: 'Closing',
    BackendLost: 'Closing',
    Killed: 'Closing',
  },
  Lingering: {
    BackendDatagram: 'Lingering',
    RepliesComplete: 'Lingering',
    Idle: 'Closing',
    ResponsesReached: 'Closing',
    RequestsReached: 'Closing',
    Drain: 'Closing',
    Aborted: 'Closing',
    BackendLost: 'Closing',
    Killed: 'Closing',
  },
  Closing: {},
};

/** The phase after `event`; asserts that the table has it. */
export function nextPhase(phase: FlowPhase, event: FlowEvent): FlowPhase {
  const next = FLOW_TRANSITIONS[phase][event];
  assert(next !== undefined, 'the transition table has this event in this phase');
  return next;
}

/** A live flow as a reader sees it: a copy, not a view. */
export interface UdpFlow {
  /** Counted from 1 within its machine and never given twice. A slot is used again. */
  readonly serial: number;
  readonly client: Address;
  /** The address the client sent to, on a listener that keys flows by it. */
  readonly local: Address | undefined;
  readonly backend: Backend;
  readonly phase: Exclude<FlowPhase, 'Closing'>;
  readonly createdAt: Instant;
  /** As it was at admission. */
  readonly config: ClusterConfig;
  readonly requestsSeen: number;
  readonly responsesSeen: number;
  readonly idleDeadline: Instant;
}

/** Why a flow with these counts must close, or undefined when no cap is exhausted. Responses are looked at first. */
export function teardownReason(
  config: ClusterConfig,
  requestsSeen: number,
  responsesSeen: number,
): 'ResponsesReached' | 'RequestsReached' | undefined {
  if (!awaitsReplies(config, requestsSeen, responsesSeen)) return 'ResponsesReached';
  if (config.requests !== 0 && requestsSeen >= config.requests) return 'RequestsReached';
  return undefined;
}

/**
 * Whether replies may still come: always where nobody said how many there are. A product above 2^53 is rounded, but it is
 * compared with a count below 2^32, so that no rounding changes the answer.
 */
export function awaitsReplies(
  config: ClusterConfig,
  requestsSeen: number,
  responsesSeen: number,
): boolean {
  const { responses } = config;
  if (responses === 0) return true;
  return responsesSeen < (config.responsesPerRequest ? responses * requestsSeen : responses);
}
