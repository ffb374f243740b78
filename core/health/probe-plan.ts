/**
 * Who is probed when (spec §5.2 to §5.7). Every backend has one date in one heap: the start of its next probe, or the end of
 * the time that the probe in flight has. Backends that are due while too many probes are in flight wait, longest due first.
 */
import { formatAddress, type Address } from '../address.ts';
import { assert, present } from '../assert.ts';
import { OutputQueue } from '../output-queue.ts';
import type { Random } from '../random.ts';
import { after, microseconds, until, type Duration, type Instant } from '../time.ts';
import { DueQueue } from './due-queue.ts';
import {
  INITIAL_HEALTH,
  judge,
  type Health,
  type HealthState,
  type ProbeResult,
} from './hysteresis.ts';
import {
  LOCAL_HEADER,
  type ProbeAnswer,
  type ProbeId,
  type ProbeMode,
  type ProbeOutcome,
  type ProbePlanOutput,
  type ProbeWake,
  type ProbedCluster,
} from './probe-contract.ts';
import type { HealthSettings } from './settings.ts';

/**
 * Each probe in flight holds a descriptor and a port. 256 leave three quarters of the smallest usual descriptor limit (1,024)
 * to the flows, and are enough for 640 dead backends at the default interval and timeout; with more, intervals stretch.
 */
export const PROBES_IN_FLIGHT_MAX = 256;

/**
 * Two starts are between three quarters of the interval and all of it apart: never more, so that the time until a backend is
 * found down keeps its bound, and never much less, so that a streak spans time.
 */
const JITTER_SHARE = 1 / 4;

/** What is asked of a backend, and how the answer is judged. */
interface Question {
  readonly settings: HealthSettings;
  readonly proxyProtocol: boolean;
}

interface Flight {
  readonly probe: ProbeId;
  readonly startedAt: Instant;
  /** In effect at the start: a probe is judged by what it was sent under. */
  readonly settings: HealthSettings;
}

interface Target {
  readonly number: number;
  readonly cluster: string;
  readonly address: Address;
  question: Question;
  state: HealthState;
  flight: Flight | undefined;
}

/** One process's probes. After each input, every output is polled before the next input. */
export class ProbePlan {
  private readonly random: Random;
  private readonly inFlightMax: number;
  private readonly outputs = new OutputQueue<ProbePlanOutput>();
  private readonly targets: (Target | undefined)[] = [];
  private readonly free: number[] = [];
  private readonly numbers = new Map<string, number>();
  /** Targets by the probe in flight. */
  private readonly flights = new Map<ProbeId, Target>();
  /** Every target that does not wait. */
  private readonly schedule = new DueQueue();
  /** Due, but too many probes are in flight. */
  private readonly waiting = new DueQueue();
  private lastProbe: ProbeId = 0;
  private latest = 0;

  constructor(random: Random, inFlightMax: number = PROBES_IN_FLIGHT_MAX) {
    assert(inFlightMax >= 1, 'at least one probe may be in flight');
    this.random = random;
    this.inFlightMax = inFlightMax;
  }

  /**
   * All clusters there are. A backend that stays keeps its health and its date; one that comes is up and probed at once. A
   * probe in flight is cancelled when its backend went or is to be asked something else.
   */
  configure(clusters: readonly ProbedCluster[], now: Instant): void {
    this.begin(now);
    const kept = new Set<string>();
    const unwatched = new Set<string>();
    for (const cluster of clusters) {
      const { settings } = cluster;
      const probed = settings !== undefined && settings.mode !== 'HEALTH_OFF';
      for (const address of cluster.backends) {
        const key = keyOf(cluster.cluster, address);
        (probed ? kept : unwatched).add(key);
        if (!probed) continue;
        const question = { settings, proxyProtocol: cluster.proxyProtocol };
        this.watch(key, cluster.cluster, address, question, now);
      }
    }
    for (const [key, number] of this.numbers) {
      if (!kept.has(key)) this.forget(key, this.target(number), unwatched.has(key));
    }
    this.advance(now);
  }

  /** A probe ended. One that is not in flight is ignored. An answer at its deadline or later counts as none. */
  probeAnswered(probe: ProbeId, answer: ProbeAnswer, now: Instant): void {
    this.begin(now);
    const target = this.flights.get(probe);
    if (target?.flight !== undefined) {
      const { startedAt, settings } = target.flight;
      const isLate = until(startedAt, now) >= settings.probeTimeout;
      this.finish(target, target.flight, isLate ? missingAnswer(settings) : answer, now);
    }
    this.advance(now);
  }

  /**
   * Somebody doubts this backend: its next probe is due now. False when it is not probed, so nobody will say. With a probe
   * in flight that one is the answer.
   */
  confirm(cluster: string, address: Address, now: Instant): boolean {
    this.begin(now);
    const number = this.numbers.get(keyOf(cluster, address));
    if (number !== undefined) {
      // One that waits is due already.
      const isScheduled = this.schedule.of(number) !== undefined;
      if (isScheduled && this.target(number).flight === undefined) this.schedule.set(number, now);
    }
    this.advance(now);
    return number !== undefined;
  }

  handleTimeout(now: Instant): void {
    this.begin(now);
    this.advance(now);
  }

  pollOutput(): ProbePlanOutput | undefined {
    return this.outputs.poll();
  }

  /** Never in the past once `handleTimeout` was called for it. */
  nextWake(): ProbeWake | undefined {
    const first = this.schedule.first();
    if (first === undefined) return undefined;
    const inFlight = this.target(first.number).flight !== undefined;
    return { at: first.at, reason: inFlight ? 'probe-timeout' : 'probe-due' };
  }

  /** Up for whatever is not probed. */
  healthOf(cluster: string, address: Address): Health {
    const number = this.numbers.get(keyOf(cluster, address));
    return number === undefined ? 'up' : this.target(number).state.health;
  }

  get targetCount(): number {
    return this.numbers.size;
  }

  get inFlightCount(): number {
    return this.flights.size;
  }

  /** Due, and held back by the bound on probes in flight. */
  get waitingCount(): number {
    return this.waiting.size;
  }

  private begin(now: Instant): void {
    assert(this.outputs.pending === 0, 'every output is polled before the next input');
    assert(now >= this.latest, 'time does not go back');
    this.latest = now;
  }

  private watch(
    key: string,
    cluster: string,
    address: Address,
    question: Question,
    now: Instant,
  ): void {
    const number = this.numbers.get(key);
    if (number === undefined) {
      const next = this.free.pop() ?? this.targets.length;
      const state = INITIAL_HEALTH;
      this.targets[next] = { number: next, cluster, address, question, state, flight: undefined };
      this.numbers.set(key, next);
      this.schedule.set(next, now);
      return;
    }
    const target = this.target(number);
    const asksAnew = !sameQuestion(target.question, question);
    target.question = question;
    if (target.flight === undefined) {
      // A date that the new interval would not have given; else nothing is drawn, and configuring twice is configuring once.
      const due = this.schedule.of(number) ?? now;
      if (until(now, due) <= question.settings.probeInterval) return;
      this.schedule.set(number, after(now, this.gap(question.settings)));
    } else if (asksAnew) {
      this.cancel(target.flight);
      target.flight = undefined;
      this.schedule.set(number, now);
    }
  }

  private forget(key: string, target: Target, unwatched: boolean): void {
    const { number, cluster, address, flight, state } = target;
    if (flight !== undefined) this.cancel(flight);
    this.schedule.remove(number);
    this.waiting.remove(number);
    this.numbers.delete(key);
    this.targets[number] = undefined;
    this.free.push(number);
    if (!unwatched || state.health === 'up') return;
    const evidence = { kind: 'unwatched' } as const;
    this.outputs.push({
      kind: 'HealthChanged',
      cluster,
      address,
      from: 'down',
      to: 'up',
      evidence,
    });
  }

  private cancel({ probe }: Flight): void {
    this.flights.delete(probe);
    this.outputs.push({ kind: 'CancelProbe', probe });
  }

  /** Ends what has run out of time, then starts what is due as far as the bound allows. */
  private advance(now: Instant): void {
    for (;;) {
      const first = this.schedule.first();
      if (first === undefined || first.at > now) break;
      const target = this.target(first.number);
      if (target.flight === undefined) {
        this.schedule.remove(target.number);
        this.waiting.set(target.number, first.at);
      } else {
        this.outputs.push({ kind: 'CancelProbe', probe: target.flight.probe });
        this.finish(target, target.flight, missingAnswer(target.flight.settings), now);
      }
    }
    while (this.flights.size < this.inFlightMax) {
      const first = this.waiting.first();
      if (first === undefined) break;
      this.waiting.remove(first.number);
      this.start(this.target(first.number), now);
    }
  }

  private start(target: Target, now: Instant): void {
    const { settings } = target.question;
    const probe = this.lastProbe + 1;
    this.lastProbe = probe;
    target.flight = { probe, startedAt: now, settings };
    this.flights.set(probe, target);
    this.schedule.set(target.number, after(now, settings.probeTimeout));
    this.outputs.push(startProbe(probe, target));
  }

  private finish(target: Target, flight: Flight, outcome: ProbeOutcome, now: Instant): void {
    const { cluster, address, question } = target;
    const { probe, startedAt, settings } = flight;
    this.flights.delete(probe);
    target.flight = undefined;
    this.schedule.set(target.number, after(startedAt, this.gap(question.settings)));
    const result = resultOf(outcome);
    const endedAt = now;
    this.outputs.push({
      kind: 'ProbeEnded',
      probe,
      cluster,
      address,
      outcome,
      result,
      startedAt,
      endedAt,
    });
    if (result === undefined) return;
    const { state, transition } = judge(target.state, result, settings);
    target.state = state;
    if (transition === undefined) return;
    const { from, to, streak } = transition;
    const evidence = { kind: 'probe', mode: modeOf(settings), outcome, streak } as const;
    this.outputs.push({ kind: 'HealthChanged', cluster, address, from, to, evidence });
  }

  /** From one start to the next; one draw. */
  private gap({ probeInterval }: HealthSettings): Duration {
    const share = (this.random.next() / 2 ** 32) * JITTER_SHARE;
    return microseconds(probeInterval - Math.floor(probeInterval * share));
  }

  private target(number: number): Target {
    return present(this.targets[number], 'a number in use names a target');
  }
}

/** Cluster and address; an address has no space in it, so no two pairs share a key. */
function keyOf(cluster: string, address: Address): string {
  return `${formatAddress(address)} ${cluster}`;
}

function startProbe(probe: ProbeId, { cluster, address, question }: Target): ProbePlanOutput {
  const { settings, proxyProtocol } = question;
  const mode = modeOf(settings);
  const port = mode === 'tcp' ? (settings.tcpPort ?? address.port) : address.port;
  return {
    kind: 'StartProbe',
    probe,
    cluster,
    target: { ...address, port },
    mode,
    payload: mode === 'udp' ? settings.udpProbePayload : undefined,
    // A companion port is another service: the header is a matter of the backend's own port.
    header: proxyProtocol && port === address.port ? LOCAL_HEADER : undefined,
    expectReply: mode === 'tcp' || settings.expectReply,
  };
}

function modeOf({ mode }: HealthSettings): ProbeMode {
  return mode === 'UDP_PROBE' ? 'udp' : 'tcp';
}

function missingAnswer(settings: HealthSettings): ProbeOutcome {
  return modeOf(settings) === 'udp' && !settings.expectReply ? 'silence' : 'timeout';
}

function resultOf(outcome: ProbeOutcome): ProbeResult | undefined {
  if (outcome === 'not-tried') return undefined;
  if (outcome === 'ok') return 'up';
  return outcome === 'silence' ? 'unknown' : 'down';
}

/** Whether a probe in flight still asks what should be asked. Streaks and dates may differ: they are read later. */
function sameQuestion(one: Question, other: Question): boolean {
  const [before, now] = [one.settings, other.settings];
  return (
    one.proxyProtocol === other.proxyProtocol &&
    before.mode === now.mode &&
    before.tcpPort === now.tcpPort &&
    before.expectReply === now.expectReply &&
    sameBytes(before.udpProbePayload, now.udpProbePayload)
  );
}

function sameBytes(one: Uint8Array | undefined, other: Uint8Array | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}
