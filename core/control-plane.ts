/**
 * The control plane, one for each process (law 9): it knows the configuration, probes the backends, judges what the probes
 * say and directs the data planes. What it decides leaves as directives, probes and events, in one queue.
 */
import type { Address } from './address.ts';
import { assert, assertNever, present } from './assert.ts';
import { BackendStates, type DrainWake } from './backend-states.ts';
import { backendIdentity } from './balancing/identity.ts';
import { ClusterMetrics, type ClusterCounters } from './cluster-metrics.ts';
import type { ClusterSettings, Config } from './config.ts';
import type { ControlEvent, ControlInput, ControlOutput } from './control-contract.ts';
import { initialDirectives, type Directive, type Report } from './directives.ts';
import type { Hash64 } from './hash.ts';
import type { Health } from './health/hysteresis.ts';
import { evaluateAvailability, RollUp } from './health/roll-up.ts';
import {
  HealthWatch,
  type Ejection,
  type WatchedCluster,
  type WatchOutput,
  type WatchWake,
} from './health/watch.ts';
import { OutputQueue } from './output-queue.ts';
import { createRandom } from './random.ts';
import { after, until, type Instant } from './time.ts';

export interface ControlOptions {
  /** For the jitter of probes. */
  readonly randomSeed: Hash64;
  /** PROBES_IN_FLIGHT_MAX unless given. */
  readonly probesInFlightMax?: number | undefined;
}

type HealthChanged = Extract<WatchOutput, { kind: 'HealthChanged' }>;
type ProbeEnded = Extract<WatchOutput, { kind: 'ProbeEnded' }>;

/** After each input, every output is polled before the next input. */
export class ControlPlane {
  private readonly watch: HealthWatch;
  private readonly states = new BackendStates();
  private readonly rollUp = new RollUp();
  private readonly metrics = new ClusterMetrics();
  private readonly outputs = new OutputQueue<ControlOutput>();
  private readonly clusters = new Map<string, ClusterSettings>();
  private config: Config | undefined;
  private generation = 0;

  constructor(options: ControlOptions) {
    this.watch = new HealthWatch(createRandom(options.randomSeed), options.probesInFlightMax);
  }

  handleInput(input: ControlInput, now: Instant): void {
    assert(this.outputs.pending === 0, 'outputs are drained before the next call');
    switch (input.kind) {
      case 'Configure':
        return this.configure(input.config, input.generation, now);
      case 'ProbeAnswered':
        this.watch.probeAnswered(input.probe, input.answer, now);
        return this.drainWatch();
      case 'Reported':
        return this.onReport(input.report, now);
      case 'Drain':
        return this.beginDrain(now);
      case 'Stop':
        return this.direct({ kind: 'Stop' });
      default:
        return assertNever(input);
    }
  }

  /** The timer fired, perhaps early. */
  handleTimeout(now: Instant): void {
    assert(this.outputs.pending === 0, 'outputs are drained before the next call');
    this.watch.handleTimeout(now);
    this.drainWatch();
    this.states.handleTimeout(now);
    this.drainStates();
  }

  pollOutput(): ControlOutput | undefined {
    return this.outputs.poll();
  }

  pollTimeout(): WatchWake | DrainWake | undefined {
    const watch = this.watch.nextWake();
    const drain = this.states.nextWake();
    return watch === undefined || (drain !== undefined && drain.at < watch.at) ? drain : watch;
  }

  /** As probes see it: up for whatever is not probed. */
  healthOf(cluster: string, address: Address): Health {
    return this.watch.healthOf(cluster, address);
  }

  /** The counters of a cluster, for readers; undefined when there is no such cluster. */
  countersOf(cluster: string): Readonly<ClusterCounters> | undefined {
    return this.metrics.of(cluster);
  }

  /** Probes that were started and have neither ended nor been cancelled. */
  get probesInFlight(): number {
    return this.watch.probesInFlight;
  }

  /**
   * Clusters first, so that no listener opens without; then the first probes; then, but for the first time, who may serve
   * and who may not, so that nothing depends on what a data plane remembers. A backend that stays keeps its health, whatever
   * else changed.
   */
  private configure(config: Config, generation: number, now: Instant): void {
    assert(generation > this.generation, 'each configuration has a generation of its own');
    const isFirst = this.config === undefined;
    this.config = config;
    this.generation = generation;
    this.replaceClusters(config.clusters);
    this.states.configure(config.clusters);
    for (const directive of initialDirectives(config)) {
      if (isFirst || directive.kind !== 'AddListener') this.direct(directive);
    }
    this.watch.configure(config.clusters.map(watchedCluster), now);
    this.drainWatch();
    if (!isFirst) this.repeatHealth(config);
    for (const { cluster } of config.clusters) this.recordAvailability(cluster);
  }

  private repeatHealth({ clusters }: Config): void {
    for (const { cluster, backends } of clusters) {
      for (const { address } of backends) {
        this.steer(cluster, address);
      }
    }
    this.states.repeat();
    this.drainStates();
  }

  private replaceClusters(clusters: readonly ClusterSettings[]): void {
    const wanted = new Set(clusters.map(({ cluster }) => cluster));
    for (const cluster of this.clusters.keys()) {
      if (wanted.has(cluster)) continue;
      this.clusters.delete(cluster);
      this.rollUp.remove(cluster);
      this.metrics.remove(cluster);
    }
    for (const settings of clusters) {
      this.clusters.set(settings.cluster, settings);
      this.rollUp.add(settings.cluster);
      this.metrics.add(settings.cluster);
    }
  }

  /** Backends are probed while flows are left: `Stopped` says when there are none. */
  private beginDrain(now: Instant): void {
    const { grace } = present(this.config, 'a drain follows a configuration');
    this.direct({ kind: 'Drain', deadline: after(now, grace) });
  }

  private onReport(report: Report, now: Instant): void {
    switch (report.kind) {
      case 'BackendRefused':
        this.watch.refused(report.cluster, report.address, report.flow, now);
        return this.drainWatch();
      case 'BackendTraffic':
        this.watch.exchanged(report.cluster, report.address, report, now);
        return this.drainWatch();
      case 'BackendFlows':
        this.states.reported(report);
        return this.drainStates();
      case 'Stopped':
        return this.stopProbing(now);
      case 'ListenerOpened':
      case 'ListenerFailed':
      case 'UpstreamFailed':
        return undefined;
      default:
        return assertNever(report);
    }
  }

  private stopProbing(now: Instant): void {
    this.watch.configure([], now);
    this.drainWatch();
  }

  private drainWatch(): void {
    const { watch } = this;
    for (let output = watch.pollOutput(); output !== undefined; output = watch.pollOutput()) {
      this.translate(output);
    }
  }

  private drainStates(): void {
    const { states } = this;
    for (let output = states.pollOutput(); output !== undefined; output = states.pollOutput()) {
      if (output.kind === 'SetBackendState') this.onStateSet(output);
      else this.tell(output);
    }
  }

  private onStateSet(directive: Extract<Directive, { kind: 'SetBackendState' }>): void {
    this.direct(directive);
    this.recordAvailability(directive.cluster);
  }

  private translate(output: WatchOutput): void {
    switch (output.kind) {
      case 'StartProbe':
      case 'CancelProbe':
        this.outputs.push(output);
        return undefined;
      case 'ProbeEnded':
        return this.onProbeEnded(output);
      case 'HealthChanged':
        return this.onHealthChanged(output);
      case 'Ejected':
      case 'Returned':
        return this.onEjection(output);
      default:
        return assertNever(output);
    }
  }

  private onProbeEnded({ cluster, address, outcome, startedAt, endedAt }: ProbeEnded): void {
    this.metrics.probeEnded(cluster, outcome);
    if (outcome !== 'ok' || this.clusters.get(cluster)?.loadMetric !== 'CONNECTION_TIME') return;
    this.direct({ kind: 'SetProbeTime', cluster, address, took: until(startedAt, endedAt) });
  }

  private onHealthChanged(changed: HealthChanged): void {
    const { cluster, address } = changed;
    this.steer(cluster, address);
    this.tell(changed);
    this.recordAvailability(cluster);
  }

  private onEjection(ejection: Ejection): void {
    const { cluster, address } = ejection;
    this.steer(cluster, address);
    if (ejection.kind === 'Ejected') this.tell({ ...ejection, kind: 'BackendEjected' });
    else this.tell({ ...ejection, kind: 'BackendReturned' });
    this.recordAvailability(cluster);
  }

  /** Whether new flows may go there: both its probes and its traffic have a say. */
  private steer(cluster: string, address: Address): void {
    const healthy =
      this.healthOf(cluster, address) === 'up' && !this.watch.isEjected(cluster, address);
    this.direct({ kind: 'SetHealth', cluster, address, healthy });
  }

  private recordAvailability(cluster: string): void {
    const { backends, health } = present(this.clusters.get(cluster), 'the cluster is configured');
    // As the data plane counts them: one id at one address is one backend.
    const distinct = new Map(backends.map((backend) => [backendIdentity(backend), backend]));
    const conditions = [...distinct.values()].map(({ address }) => ({
      health: this.healthOf(cluster, address),
      ejected: this.watch.isEjected(cluster, address),
      closing: this.states.stateOf(cluster, address) !== 'active',
    }));
    for (const output of this.rollUp.record(cluster, evaluateAvailability(conditions))) {
      if (output.kind === 'Gauges') this.tell({ ...output, kind: 'Availability' });
      else if (output.kind === 'ClusterRecovered') this.tell(output);
      else this.tell({ ...output, failOpen: health?.failOpen ?? true });
    }
  }

  private direct(directive: Directive): void {
    this.outputs.push({ kind: 'Direct', message: { generation: this.generation, directive } });
  }

  private tell(event: ControlEvent): void {
    this.metrics.fold(event);
    this.outputs.push({ kind: 'Event', event });
  }
}

function watchedCluster(settings: ClusterSettings): WatchedCluster {
  return {
    cluster: settings.cluster,
    settings: settings.health,
    proxyProtocol: settings.sendProxyProtocol,
    backends: settings.backends.map(({ address }) => address),
    exchange: settings.exchange,
    passive: settings.passive ?? true,
  };
}
