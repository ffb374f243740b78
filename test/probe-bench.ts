/** What the tests of the probe plan stand on: clusters in a word, and a stand-in for the shell. */
import { ipv4, type Address } from '../core/address.ts';
import { present } from '../core/assert.ts';
import type { ProbeAnswer, ProbedCluster, ProbePlanOutput } from '../core/health/probe-contract.ts';
import { ProbePlan } from '../core/health/probe-plan.ts';
import { healthSettings, type HealthSettings } from '../core/health/settings.ts';
import { createRandom, type Random } from '../core/random.ts';
import { instant, type Instant } from '../core/time.ts';

export const QUESTION: Uint8Array = Uint8Array.of(0xab, 0xcd);
export const UDP: Partial<HealthSettings> = { mode: 'UDP_PROBE', udpProbePayload: QUESTION };
export const ONE: Address = backend(1);
export const TWO: Address = backend(2);

export function backend(number: number): Address {
  return ipv4(0x0a000000 + number, 53);
}

export function cluster(
  settings: Partial<HealthSettings>,
  more: Partial<ProbedCluster> = {},
): ProbedCluster {
  return {
    cluster: 'dns',
    settings: healthSettings(settings),
    proxyProtocol: false,
    backends: [ONE],
    ...more,
  };
}

type OutputOf<Kind extends ProbePlanOutput['kind']> = Extract<ProbePlanOutput, { kind: Kind }>;

/** Stands where the shell stands: performs nothing, keeps everything. */
export class ProbeBench {
  readonly random: Random = createRandom({ high: 7, low: 1 });
  readonly plan: ProbePlan;
  readonly log: ProbePlanOutput[] = [];
  readonly started: OutputOf<'StartProbe'>[] = [];
  readonly startedAt: Instant[] = [];
  readonly ended: OutputOf<'ProbeEnded'>[] = [];
  readonly changes: OutputOf<'HealthChanged'>[] = [];
  now: Instant = instant(0);

  constructor(inFlightMax?: number) {
    this.plan = new ProbePlan(this.random, inFlightMax);
  }

  configure(clusters: readonly ProbedCluster[]): void {
    this.plan.configure(clusters, this.now);
    this.drain();
  }

  /** Answers a probe now; the latest when not said which. */
  answer(answer: ProbeAnswer, probe = this.started.at(-1)?.probe ?? 0): void {
    this.plan.probeAnswered(probe, answer, this.now);
    this.drain();
  }

  answerAt(now: Instant, answer: ProbeAnswer): void {
    this.now = now;
    this.answer(answer);
  }

  confirm(address: Address): boolean {
    const probed = this.plan.confirm('dns', address, this.now);
    this.drain();
    return probed;
  }

  /** Sleeps until the plan wants to be woken. */
  wake(): void {
    this.wakeAt(present(this.plan.nextWake(), 'the plan has a date').at);
  }

  wakeAt(now: Instant | number): void {
    this.now = instant(now);
    this.plan.handleTimeout(this.now);
    this.drain();
  }

  /** One probe for each answer; undefined lets it run out of time. */
  rounds(answers: readonly (ProbeAnswer | undefined)[]): void {
    for (const answer of answers) {
      while (this.plan.inFlightCount === 0) this.wake();
      if (answer !== undefined) this.answer(answer);
      else this.wake();
    }
  }

  /** Started, not ended, not cancelled. */
  flying(): OutputOf<'StartProbe'>[] {
    const over = new Set(
      this.log.flatMap((output) =>
        output.kind === 'ProbeEnded' || output.kind === 'CancelProbe' ? [output.probe] : [],
      ),
    );
    return this.started.filter(({ probe }) => !over.has(probe));
  }

  kinds(): string[] {
    return this.log.map(({ kind }) => kind);
  }

  private drain(): void {
    for (let output = this.plan.pollOutput(); output !== undefined;) {
      this.log.push(output);
      if (output.kind === 'StartProbe') {
        this.started.push(output);
        this.startedAt.push(this.now);
      }
      if (output.kind === 'ProbeEnded') this.ended.push(output);
      if (output.kind === 'HealthChanged') this.changes.push(output);
      output = this.plan.pollOutput();
    }
  }
}
