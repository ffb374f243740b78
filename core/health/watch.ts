/**
 * Everything that is known of backends' health, in one machine: the probe plan, and for each cluster what its traffic shows.
 * The two are introduced to each other here: a suspicion asks for a probe, and what a probe says settles it.
 */
import type { Address } from '../address.ts';
import type { ClusterSettings } from '../config.ts';
import { OutputQueue } from '../output-queue.ts';
import type { Random } from '../random.ts';
import type { Instant } from '../time.ts';
import { DueQueue } from './due-queue.ts';
import type { Health } from './hysteresis.ts';
import {
  passiveSettings,
  type PassiveOutput,
  type PassiveSettings,
  type PassiveWake,
} from './passive-contract.ts';
import { PassiveHealth } from './passive.ts';
import type {
  ProbeAnswer,
  ProbeId,
  ProbePlanOutput,
  ProbeWake,
  ProbedCluster,
} from './probe-contract.ts';
import { ProbePlan } from './probe-plan.ts';

export interface WatchedCluster extends ProbedCluster {
  readonly exchange: PassiveSettings['exchange'];
  /** Whether its traffic is held against its backends at all. */
  readonly passive: boolean;
}

/** An ejection or its end, and where. */
export type Ejection = Exclude<PassiveOutput, { kind: 'ConfirmRequested' }> & {
  readonly cluster: string;
};

export type WatchOutput = ProbePlanOutput | Ejection;

export type WatchWake = ProbeWake | PassiveWake;

/** One cluster's traffic, and the number under which its next date is kept. */
interface Traffic {
  readonly number: number;
  readonly passive: PassiveHealth;
}

interface Doubt {
  readonly cluster: string;
  readonly address: Address;
}

/** After each input, every output is polled before the next input. */
export class HealthWatch {
  private readonly plan: ProbePlan;
  private readonly traffic = new Map<string, Traffic>();
  private readonly byNumber = new Map<number, string>();
  private readonly due = new DueQueue();
  private readonly outputs = new OutputQueue<WatchOutput>();
  /** Suspicions that a probe can prove wrong; it is asked once the plan is drained. */
  private readonly doubts: Doubt[] = [];
  private lastNumber = 0;
  private readonly isClosing: (cluster: string, address: Address) => boolean;

  /** `isClosing`: whether an operator keeps new flows from a backend. It is then not one that others may be held against. */
  constructor(
    random: Random,
    isClosing: (cluster: string, address: Address) => boolean,
    inFlightMax?: number,
  ) {
    this.isClosing = isClosing;
    this.plan = new ProbePlan(random, inFlightMax);
  }

  /** All clusters there are. A backend that stays keeps its health, its evidence and its ejection. */
  configure(clusters: readonly WatchedCluster[], now: Instant): void {
    this.plan.configure(clusters, now);
    this.settle(now);
    const watched = new Map(clusters.flatMap((one) => (one.passive ? [[one.cluster, one]] : [])));
    for (const [cluster, { number }] of this.traffic) {
      if (!watched.has(cluster)) this.forget(cluster, number);
    }
    for (const [cluster, { exchange, settings, backends }] of watched) {
      const wanted = passiveSettings(exchange, settings);
      const { passive } = this.traffic.get(cluster) ?? this.watch(cluster, wanted);
      passive.configure(wanted, backends, now);
      this.hear(cluster);
      this.introduce(cluster, backends, now);
    }
    this.settle(now);
  }

  /** See ProbePlan. */
  probeAnswered(probe: ProbeId, answer: ProbeAnswer, now: Instant): void {
    this.plan.probeAnswered(probe, answer, now);
    this.settle(now);
  }

  /** A flow's socket heard a refusal. Of a backend that is not watched it says nothing. */
  refused(cluster: string, address: Address, flow: number, now: Instant): void {
    const passive = this.traffic.get(cluster)?.passive;
    const slot = passive?.slotOf(address);
    if (passive === undefined || slot === undefined) return;
    passive.refused(slot, flow, now);
    this.hear(cluster);
    this.settle(now);
  }

  /** So many client datagrams went to a backend since it was last said, and so many came from it. */
  exchanged(
    cluster: string,
    address: Address,
    counts: { readonly forwarded: number; readonly answered: number },
    now: Instant,
  ): void {
    const passive = this.traffic.get(cluster)?.passive;
    const slot = passive?.slotOf(address);
    if (passive === undefined || slot === undefined) return;
    if (counts.forwarded > 0) passive.forwarded(slot, counts.forwarded, now);
    if (counts.answered > 0) passive.answered(slot, counts.answered);
    this.hear(cluster);
  }

  /** An operator gave a backend up, or took it back. */
  closingChanged(cluster: string, address: Address, now: Instant): void {
    this.introduce(cluster, [address], now);
    this.settle(now);
  }

  handleTimeout(now: Instant): void {
    this.plan.handleTimeout(now);
    this.settle(now);
    for (let first = this.due.first(); first !== undefined && first.at <= now;) {
      const cluster = this.byNumber.get(first.number) ?? '';
      this.traffic.get(cluster)?.passive.handleTimeout(now);
      this.hear(cluster);
      first = this.due.first();
    }
    this.settle(now);
  }

  pollOutput(): WatchOutput | undefined {
    return this.outputs.poll();
  }

  /** Never in the past once `handleTimeout` was called for it. */
  nextWake(): WatchWake | undefined {
    const probe = this.plan.nextWake();
    const first = this.due.first();
    if (first === undefined || (probe !== undefined && probe.at <= first.at)) return probe;
    return this.traffic.get(this.byNumber.get(first.number) ?? '')?.passive.nextWake();
  }

  /** As probes see it: up for whatever is not probed. */
  healthOf(cluster: string, address: Address): Health {
    return this.plan.healthOf(cluster, address);
  }

  /** Whether its traffic speaks against it, for a while. */
  isEjected(cluster: string, address: Address): boolean {
    return this.traffic.get(cluster)?.passive.isEjected(address) ?? false;
  }

  get probesInFlight(): number {
    return this.plan.inFlightCount;
  }

  private watch(cluster: string, settings: PassiveSettings): Traffic {
    this.lastNumber += 1;
    const traffic = { number: this.lastNumber, passive: new PassiveHealth(settings) };
    this.traffic.set(cluster, traffic);
    this.byNumber.set(traffic.number, cluster);
    return traffic;
  }

  /** Probes may know a backend longer than its traffic was watched. */
  private introduce(cluster: string, backends: readonly Address[], now: Instant): void {
    const passive = this.traffic.get(cluster)?.passive;
    for (const address of backends) {
      const slot = passive?.slotOf(address);
      if (passive === undefined || slot === undefined) continue;
      const isUp = this.plan.healthOf(cluster, address) === 'up';
      passive.setAvailable(slot, isUp && !this.isClosing(cluster, address), now);
      this.hear(cluster);
    }
  }

  private forget(cluster: string, number: number): void {
    this.traffic.delete(cluster);
    this.byNumber.delete(number);
    this.due.remove(number);
  }

  /** Drains the plan, and asks it for every probe that the outputs gave reason for, until neither is left. */
  private settle(now: Instant): void {
    const { plan } = this;
    for (;;) {
      for (let output = plan.pollOutput(); output !== undefined; output = plan.pollOutput()) {
        this.outputs.push(output);
        this.teach(output, now);
      }
      const doubt = this.doubts.shift();
      if (doubt === undefined) return;
      plan.confirm(doubt.cluster, doubt.address, now);
    }
  }

  /** What a probe found out, for whoever watches the traffic. */
  private teach(output: ProbePlanOutput, now: Instant): void {
    if (output.kind === 'StartProbe' || output.kind === 'CancelProbe') return;
    const { cluster, address } = output;
    const passive = this.traffic.get(cluster)?.passive;
    const slot = passive?.slotOf(address);
    if (passive === undefined || slot === undefined) return;
    if (output.kind === 'HealthChanged') this.introduce(cluster, [address], now);
    else if (output.result !== undefined) passive.probed(slot, output.result, now);
    this.hear(cluster);
  }

  /** Drains one cluster's traffic, and notes when it wants to be woken. */
  private hear(cluster: string): void {
    const traffic = this.traffic.get(cluster);
    if (traffic === undefined) return;
    const { passive, number } = traffic;
    for (let output = passive.pollOutput(); output !== undefined; output = passive.pollOutput()) {
      if (output.kind === 'ConfirmRequested') {
        this.doubts.push({ cluster, address: output.address });
      } else {
        this.outputs.push({ ...output, cluster });
      }
    }
    const wake = passive.nextWake();
    if (wake === undefined) this.due.remove(number);
    else this.due.set(number, wake.at);
  }
}

/** What is watched of a cluster as it is configured. */
export function watchedCluster(settings: ClusterSettings): WatchedCluster {
  return {
    cluster: settings.cluster,
    settings: settings.health,
    proxyProtocol: settings.sendProxyProtocol,
    backends: settings.backends.map(({ address }) => address),
    exchange: settings.exchange,
    passive: settings.passive ?? true,
  };
}
