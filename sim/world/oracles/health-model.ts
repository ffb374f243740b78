/**
 * What the health of backends should be, as naively as it can be said: of each backend the results since the last that
 * decided anything. While it is up these are failures, and `fall` of them turn it down; while it is down these are successes,
 * and silences that weigh a third of one, and `rise` turn it up (spec §5.5).
 */
import { formatAddress, type Address } from '../../../core/address.ts';
import type { ClusterSettings } from '../../../core/config.ts';
import type { Health, ProbeResult } from '../../../core/health/hysteresis.ts';
import type { ProbeAnswer, ProbeOutcome } from '../../../core/health/probe-contract.ts';
import type { HealthSettings } from '../../../core/health/settings.ts';
import { until, type Instant } from '../../../core/time.ts';

/** One backend address of a cluster. */
export interface ModelTarget {
  readonly cluster: string;
  readonly address: Address;
  health: Health;
  results: ProbeResult[];
  /** Until when its traffic speaks against it. */
  ejectedUntil: Instant | undefined;
  /** An operator keeps new flows away. */
  closing: boolean;
  /** Whether data planes were told last that it may serve. */
  told: boolean;
}

export interface ModelFlight {
  readonly target: ModelTarget;
  readonly settings: HealthSettings;
  readonly startedAt: Instant;
  /** It is to be asked something else, or nothing: its probe says nothing any more. */
  superseded: boolean;
}

/** What should be told: that a backend turned, for this outcome after so many results. */
export interface Turn {
  readonly to: Health;
  readonly outcome: ProbeOutcome | 'unwatched';
  readonly streak: number;
}

export interface ModelCluster {
  settings: ClusterSettings;
  readonly targets: Map<string, ModelTarget>;
}

export function newTarget(cluster: string, address: Address): ModelTarget {
  return {
    cluster,
    address,
    health: 'up',
    results: [],
    ejectedUntil: undefined,
    closing: false,
    told: true,
  };
}

export function nameOf({ cluster, address }: Pick<ModelTarget, 'cluster' | 'address'>): string {
  return `${cluster} ${formatAddress(address)}`;
}

/** Whether new flows may go there. */
export function mayServe({ health, ejectedUntil }: ModelTarget): boolean {
  return health === 'up' && ejectedUntil === undefined;
}

export function isAvailable(target: ModelTarget): boolean {
  return mayServe(target) && !target.closing;
}

/** How a probe ended that was answered at `now`: in time, or not. */
export function outcomeAt(flight: ModelFlight, answer: ProbeAnswer, now: Instant): ProbeOutcome {
  return isOverdue(flight, now) ? withoutAnswer(flight.settings) : answer;
}

export function isOverdue({ startedAt, settings }: ModelFlight, now: Instant): boolean {
  return until(startedAt, now) >= settings.probeTimeout;
}

/** Where no reply is expected, none is silence. */
export function withoutAnswer({ mode, expectReply }: HealthSettings): ProbeOutcome {
  return mode === 'UDP_PROBE' && !expectReply ? 'silence' : 'timeout';
}

/** Takes in how a probe ended. The turn it leads to, if it does. */
export function judgeOutcome(
  target: ModelTarget,
  outcome: ProbeOutcome,
  { rise, fall }: HealthSettings,
): Turn | undefined {
  const result = RESULTS[outcome];
  if (result === undefined) return undefined;
  const { results } = target;
  const isUp = target.health === 'up';
  if (isUp && result === 'unknown') return undefined;
  if (isUp ? result === 'up' : result === 'down') {
    results.length = 0;
    return undefined;
  }
  results.push(result);
  const weight = results.reduce((sum, one) => sum + (one === 'unknown' ? 1 / 3 : 1), 0);
  if (weight < (isUp ? fall : rise) - 0.001) return undefined;
  const streak = results.length;
  target.health = isUp ? 'down' : 'up';
  target.results = [];
  return { to: target.health, outcome, streak };
}

const RESULTS: Readonly<Record<ProbeOutcome, ProbeResult | undefined>> = {
  ok: 'up',
  refused: 'down',
  failed: 'down',
  timeout: 'down',
  silence: 'unknown',
  'not-tried': undefined,
};
