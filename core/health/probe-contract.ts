/** The words that pass in and out of the probe plan. Data only; whoever holds sockets performs them. */
import type { Address } from '../address.ts';
import type { Health, ProbeResult } from './hysteresis.ts';
import type { HealthSettings } from './settings.ts';
import type { Instant } from '../time.ts';

/** A probe in flight. Counts up from 1 and is never reused, so a late answer cannot reach another probe. */
export type ProbeId = number;

/** A cluster as far as probing goes. */
export interface ProbedCluster {
  readonly cluster: string;
  /** Undefined or HEALTH_OFF: not probed, and its backends count as up. */
  readonly settings: HealthSettings | undefined;
  /** Its backends expect a PROXY protocol header. */
  readonly proxyProtocol: boolean;
  /** Backups included. An address that stands twice is probed once. */
  readonly backends: readonly Address[];
}

/**
 * How a probe ended, as its socket saw it. TCP: connected is `ok`. UDP: any datagram is `ok`. `refused`: ECONNREFUSED.
 * `failed`: any other answer of the network (unreachable, reset). `not-tried`: this host had no descriptor, port or route
 * for it, which says nothing about the backend. The socket is closed by whoever says so.
 */
export type ProbeAnswer = 'ok' | 'refused' | 'failed' | 'not-tried';

/** `timeout`: an answer was due and did not come in time. `silence`: none was due, none came. */
export type ProbeOutcome = ProbeAnswer | 'timeout' | 'silence';

export type ProbeMode = 'tcp' | 'udp';

/** Why the health of a backend turned. */
export type HealthEvidence =
  | {
      readonly kind: 'probe';
      readonly mode: ProbeMode;
      /** Of the last probe. */
      readonly outcome: ProbeOutcome;
      /** Results in a row. */
      readonly streak: number;
    }
  /** Probing was switched off: nothing would ever bring the backend back. */
  | { readonly kind: 'unwatched' };

export type ProbePlanOutput =
  | {
      readonly kind: 'StartProbe';
      readonly probe: ProbeId;
      readonly cluster: string;
      /** Where to connect, the probe's port included. */
      readonly target: Address;
      readonly mode: ProbeMode;
      /** To send, behind `header` in one datagram; undefined for TCP. Never written to. */
      readonly payload: Uint8Array | undefined;
      /** A LOCAL header for whoever insists on one; on TCP the first bytes of the connection. Never written to. */
      readonly header: Uint8Array | undefined;
      readonly expectReply: boolean;
    }
  /** Close its socket; an answer that comes all the same is ignored. */
  | { readonly kind: 'CancelProbe'; readonly probe: ProbeId }
  /** Every probe that was not cancelled ends in one of these. */
  | {
      readonly kind: 'ProbeEnded';
      readonly probe: ProbeId;
      readonly cluster: string;
      readonly address: Address;
      readonly outcome: ProbeOutcome;
      /** What it says about the backend; undefined when it says something about this host only. */
      readonly result: ProbeResult | undefined;
      readonly startedAt: Instant;
      readonly endedAt: Instant;
    }
  | {
      readonly kind: 'HealthChanged';
      readonly cluster: string;
      readonly address: Address;
      readonly from: Health;
      readonly to: Health;
      readonly evidence: HealthEvidence;
    };

/** When the plan wants to be woken, and why. */
export interface ProbeWake {
  readonly at: Instant;
  readonly reason: 'probe-due' | 'probe-timeout';
}

/**
 * A PROXY protocol header, version 2, that says "no client, it is me" (HAProxy's proxy-protocol.txt §2.2): without it a
 * server that insists on headers drops the probe and would count as down for ever.
 */
export const LOCAL_HEADER: Uint8Array = new Uint8Array([
  0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a, 0x20, 0x00, 0x00, 0x00,
]);
