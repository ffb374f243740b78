/**
 * The control plane, one for each process (law 9): it knows the configuration, probes the backends, judges what the probes
 * say and directs the data planes. What it decides leaves as directives, probes and events, in one queue.
 */
import type { Address } from './address.ts';
import { assert, assertNever, present } from './assert.ts';
import type { DrainWake } from './backend-states.ts';
import type { RequestId } from './brand.ts';
import { ClusterMetrics, type ClusterCounters } from './cluster-metrics.ts';
import { refused, type Answer, type Command, type ConfigCommand, type Reply } from './commands.ts';
import type { ControlEvent, ControlInput, ControlOutput } from './control-contract.ts';
import {
  changedClusters,
  directivesBetween,
  ListenerNumbers,
  removedClusters,
} from './control-directives.ts';
import { addressKey, applyCommands, EMPTY_STATE, type ControlState } from './control-state.ts';
import { isForPeople, type Directive, type Report } from './directives.ts';
import { PLACEMENT_SEED, type Hash64 } from './hash.ts';
import type { Health } from './health/hysteresis.ts';
import { evaluateAvailability, RollUp } from './health/roll-up.ts';
import {
  HealthWatch,
  watchedCluster,
  type Ejection,
  type WatchOutput,
  type WatchWake,
} from './health/watch.ts';
import { isOperatorCommand, Operators } from './operators.ts';
import { OutputQueue } from './output-queue.ts';
import type { PreviewWake } from './questions.ts';
import { createRandom } from './random.ts';
import { reconcileState } from './reconcile.ts';
import { statusOf, type Condition, type Status } from './status.ts';
import { after, until, type Instant } from './time.ts';

export interface ControlOptions {
  /** For the jitter of probes. */
  readonly randomSeed: Hash64;
  /** The data planes', for dry runs; PLACEMENT_SEED unless given. */
  readonly placementSeed?: Hash64 | undefined;
  /** PROBES_IN_FLIGHT_MAX unless given. */
  readonly probesInFlightMax?: number | undefined;
}

export type ControlWake = WatchWake | DrainWake | PreviewWake;

type HealthChanged = Extract<WatchOutput, { kind: 'HealthChanged' }>;
type ListenerFailed = Extract<Report, { kind: 'ListenerFailed' }>;
type ProbeEnded = Extract<WatchOutput, { kind: 'ProbeEnded' }>;

/** After each input, every output is polled before the next input. */
export class ControlPlane {
  private readonly watch: HealthWatch;
  private readonly operators: Operators;
  private readonly rollUp = new RollUp();
  private readonly metrics = new ClusterMetrics();
  private readonly outputs = new OutputQueue<ControlOutput>();
  private readonly numbers = new ListenerNumbers();
  /** Why a listener did not open, by the key of its address. */
  private readonly failures = new Map<string, string>();
  private state = EMPTY_STATE;
  private generation = 0;
  private stopping: 'soft' | 'hard' | undefined;

  constructor(options: ControlOptions) {
    this.operators = new Operators(options.placementSeed ?? PLACEMENT_SEED, (cluster, address) =>
      this.isHealthy(cluster, address),
    );
    this.watch = new HealthWatch(
      createRandom(options.randomSeed),
      (cluster, address) => this.operators.states.isClosing(cluster, address),
      options.probesInFlightMax,
    );
  }

  handleInput(input: ControlInput, now: Instant): void {
    assert(this.outputs.pending === 0, 'outputs are drained before the next call');
    switch (input.kind) {
      case 'Command': {
        const { request } = input;
        const reply = this.execute(request, input.command, now);
        this.drainOperators(now);
        if (reply !== undefined) this.outputs.push({ kind: 'Reply', request, reply });
        return undefined;
      }
      case 'ProbeAnswered':
        this.watch.probeAnswered(input.probe, input.answer, now);
        return this.drainWatch();
      case 'Reported':
        return this.onReport(input.report, now);
      default:
        return assertNever(input);
    }
  }

  /** The timer fired, perhaps early. */
  handleTimeout(now: Instant): void {
    assert(this.outputs.pending === 0, 'outputs are drained before the next call');
    this.watch.handleTimeout(now);
    this.drainWatch();
    this.operators.handleTimeout(this.generation, now);
    this.drainOperators(now);
  }

  pollOutput(): ControlOutput | undefined {
    return this.outputs.poll();
  }

  pollTimeout(): ControlWake | undefined {
    let wake: ControlWake | undefined;
    for (const machine of [this.watch, this.operators]) {
      const next = machine.nextWake();
      if (next !== undefined && (wake === undefined || next.at < wake.at)) wake = next;
    }
    return wake;
  }

  /** As probes see it: up for whatever is not probed. */
  healthOf(cluster: string, address: Address): Health {
    return this.watch.healthOf(cluster, address);
  }

  /** The counters of a cluster, for readers; undefined when there is no such cluster. */
  countersOf(cluster: string): Readonly<ClusterCounters> | undefined {
    return this.metrics.of(cluster);
  }

  /** What was counted of clusters, those included that are no more. */
  get clusterSums(): Pick<ClusterMetrics, 'sums' | 'namesBeyondBound'> {
    return this.metrics;
  }

  /** What `Status` tells, without what is told of each backend: cheap, however many there are. */
  get condition(): Condition {
    const { generation, stopping, failures } = this;
    return { generation, stopping: stopping !== undefined, failures };
  }

  private get status(): Status {
    const { state, numbers, watch, operators } = this;
    return statusOf(this.condition, { state, numbers, watch, states: operators.states });
  }

  /** Probes that were started and have neither ended nor been cancelled. */
  get probesInFlight(): number {
    return this.watch.probesInFlight;
  }

  /** Undefined when the reply comes later. */
  private execute(request: RequestId, command: Command, now: Instant): Reply | undefined {
    if (isOperatorCommand(command)) {
      const outcome = this.operators.command(request, command, now);
      return outcome?.ok === true ? this.accept(outcome.changed) : outcome;
    }
    switch (command.kind) {
      case 'Preview':
        return this.operators.preview(request, this.state, command.config);
      case 'Status':
        return this.accept(false, { kind: 'Status', status: this.status });
      case 'SoftStop':
        return this.beginDrain(now);
      case 'HardStop':
        return this.stop();
      case 'Reload': {
        const commands = reconcileState(this.state, command.config);
        return this.change(commands, now, { kind: 'Reloaded', commands: commands.length });
      }
      default:
        return this.change([command], now);
    }
  }

  /** All of them or none, as one generation. */
  private change(commands: readonly ConfigCommand[], now: Instant, answer?: Answer): Reply {
    if (this.stopping !== undefined) {
      return refused('Stopping', 'the process is about to end, and changes nothing any more');
    }
    const applied = applyCommands(this.state, commands);
    if (!applied.ok) return applied;
    if (applied.changed) this.adopt(applied.state, now);
    return this.accept(applied.changed, answer);
  }

  private accept(changed: boolean, answer?: Answer): Reply {
    return { ok: true, changed, generation: this.generation, answer };
  }

  /**
   * Data planes first, then the first probes of what is new; then, of clusters that were there before, who may serve and who
   * may not, so that nothing depends on what a data plane remembers. A backend that stays keeps its health, whatever else
   * changed.
   */
  private adopt(state: ControlState, now: Instant): void {
    const old = this.state;
    const changed = changedClusters(old, state);
    const removed = removedClusters(old, state);
    this.state = state;
    this.generation += 1;
    for (const key of this.failures.keys()) {
      if (!state.listeners.has(key)) this.failures.delete(key);
    }
    for (const cluster of removed) this.forgetCluster(cluster);
    for (const { cluster } of changed) {
      this.rollUp.add(cluster);
      this.metrics.add(cluster);
    }
    for (const directive of directivesBetween(old, state, this.numbers)) this.direct(directive);
    if (changed.length + removed.length === 0) return;
    this.watchBackends(now);
    for (const { cluster, backends } of changed) {
      if (!old.clusters.has(cluster)) continue;
      for (const { address } of backends) {
        this.steer(cluster, address);
        this.operators.states.repeat(cluster, address);
      }
    }
    this.drainOperators(now);
    for (const { cluster } of changed) this.recordAvailability(cluster);
  }

  private forgetCluster(cluster: string): void {
    this.rollUp.remove(cluster);
    this.metrics.remove(cluster);
  }

  private watchBackends(now: Instant): void {
    const clusters = [...this.state.clusters.values()];
    this.operators.states.configure(clusters);
    this.watch.configure(clusters.map(watchedCluster), now);
    this.drainWatch();
  }

  /** Backends are probed while flows are left: `Stopped` says when there are none. */
  private beginDrain(now: Instant): Reply {
    this.stopping ??= 'soft';
    this.direct({ kind: 'Drain', deadline: after(now, this.state.grace) });
    return this.accept(true);
  }

  private stop(): Reply {
    const isNews = this.stopping !== 'hard';
    this.stopping = 'hard';
    if (isNews) this.direct({ kind: 'Stop' });
    return this.accept(isNews);
  }

  private onReport(report: Report, now: Instant): void {
    if (isForPeople(report)) return undefined;
    switch (report.kind) {
      case 'BackendRefused':
        this.watch.refused(report.cluster, report.address, report.flow, now);
        return this.drainWatch();
      case 'BackendTraffic':
        this.watch.exchanged(report.cluster, report.address, report, now);
        return this.drainWatch();
      case 'BackendFlows':
      case 'Answered':
        this.operators.reported(report, this.generation, now);
        return this.drainOperators(now);
      case 'Stopped':
        return this.stopProbing(now);
      case 'ListenerFailed':
        return this.onListenerFailed(report, now);
      case 'ListenerOpened':
        this.failures.delete(addressKey(report.address));
        return undefined;
      // Whoever joins planes that drain together has heard it.
      case 'Drained':
        return undefined;
      default:
        return assertNever(report);
    }
  }

  /** It is not active then, unless a data plane tries again by itself: the next reload or Activate opens it anew. */
  private onListenerFailed(
    { listener, address, errno, retry }: ListenerFailed,
    now: Instant,
  ): void {
    const key = addressKey(address);
    if (this.numbers.of(key) !== listener) return;
    this.failures.set(key, errno);
    if (retry !== undefined) return;
    this.change([{ kind: 'DeactivateListener', address }], now);
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

  private drainOperators(now: Instant): void {
    const { operators } = this;
    for (let one = operators.pollOutput(); one !== undefined; one = operators.pollOutput()) {
      if (one.kind === 'Reply') this.outputs.push(one);
      else if (one.kind === 'Query') this.direct(one);
      else if (one.kind === 'SetBackendState') this.onStateSet(one, now);
      else this.tell(one);
    }
  }

  private onStateSet(state: Extract<Directive, { kind: 'SetBackendState' }>, now: Instant): void {
    const { cluster, address } = state;
    this.direct(state);
    this.watch.closingChanged(cluster, address, now);
    this.drainWatch();
    this.recordAvailability(cluster);
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
    if (outcome !== 'ok' || this.state.clusters.get(cluster)?.loadMetric !== 'CONNECTION_TIME')
      return;
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
    const healthy = this.isHealthy(cluster, address);
    this.direct({ kind: 'SetHealth', cluster, address, healthy });
  }

  private isHealthy(cluster: string, address: Address): boolean {
    return this.healthOf(cluster, address) === 'up' && !this.watch.isEjected(cluster, address);
  }

  private recordAvailability(cluster: string): void {
    const { backends, health } = present(
      this.state.clusters.get(cluster),
      'the cluster is configured',
    );
    const conditions = backends.map(({ address }) => ({
      health: this.healthOf(cluster, address),
      ejected: this.watch.isEjected(cluster, address),
      closing: this.operators.states.isClosing(cluster, address),
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
