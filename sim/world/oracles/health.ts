/**
 * The health of each backend is what its probes say and nothing else: the answers that went into the control plane, judged by
 * a model of its own, must come to the changes that came out of it, and those to what data planes are told. Whoever is
 * ejected was seen to fail, and somebody else is left.
 */
import { formatAddress, type Address } from '../../../core/address.ts';
import type { ClusterSettings } from '../../../core/config.ts';
import type {
  ControlEvent,
  ControlInput,
  ControlOutput,
  Probe,
} from '../../../core/control-contract.ts';
import type { Directive, Report } from '../../../core/directives.ts';
import type { ProbeId } from '../../../core/health/probe-contract.ts';
import { instant, type Instant } from '../../../core/time.ts';
import { always, sometimes, type Property } from '../../properties.ts';
import type { ProcessNumber } from '../facts.ts';
import type { OracleKind } from '../oracle.ts';
import type { Verdicts } from '../verdicts.ts';
import { ShownEvidence } from './ejection-evidence.ts';
import {
  isAvailable,
  isOverdue,
  judgeOutcome,
  mayServe,
  nameOf,
  newTarget,
  outcomeAt,
  withoutAnswer,
  type ModelCluster,
  type ModelFlight,
  type ModelTarget,
  type Turn,
} from './health-model.ts';
import { asksRight, probedBackend, probingOf, sameQuestion } from './probed-backends.ts';

const ASKS: Property<'always'> = always('a probe asks a backend what its cluster says');
const TURNS: Property<'always'> = always('health turns as its probes say');
const TOLD: Property<'always'> = always('data planes are told who may serve');
const COUNTS: Property<'always'> = always('available backends are counted right');
const ENDS: Property<'always'> = always('what is overdue is over once its control plane was woken');
const EJECTS: Property<'always'> = always('a backend is ejected for what was seen of it');
const FALLS: Property<'sometimes'> = sometimes('probes turn a backend down in a world');
const RISES: Property<'sometimes'> = sometimes('probes turn a backend up in a world');

export const HEALTH: OracleKind = {
  name: 'health',
  begin: (verdicts) => {
    const processes = new Map<ProcessNumber, ProcessHealth>();
    const of = (process: ProcessNumber): ProcessHealth => {
      const known = processes.get(process) ?? new ProcessHealth(verdicts);
      processes.set(process, known);
      return known;
    };
    return {
      hearings: {
        ControlInput: ({ process, input, now }) => of(process).hearInput(input, now),
        ControlTimeout: ({ process, now }) => of(process).hearTimeout(now),
        ControlOutput: ({ process, output }) => of(process).hearOutput(output),
        Crashed: ({ process }) => void processes.delete(process),
        Exited: ({ process }) => void processes.delete(process),
      },
      finish: () => {
        for (const health of processes.values()) health.settle();
      },
    };
  },
};

type Ejected = Extract<ControlEvent, { kind: 'BackendEjected' }>;
type Changed = Extract<ControlEvent, { kind: 'HealthChanged' }>;

class ProcessHealth {
  readonly #verdicts: Verdicts;
  readonly #clusters = new Map<string, ModelCluster>();
  readonly #flights = new Map<ProbeId, ModelFlight>();
  readonly #shown = new WeakMap<ModelTarget, ShownEvidence>();
  /** Clusters with a probe that may be one backend's or another's: nobody can say what their health should be. */
  readonly #unclear = new Set<string>();
  #now: Instant = instant(0);
  #woken = false;
  /** Since the last input: turns that are to be told, who is to be looked at, and the last counts that were told. */
  readonly #due = new Map<string, Turn>();
  readonly #touched = new Set<ModelTarget>();
  readonly #counts = new Map<string, { readonly available: number; readonly total: number }>();

  constructor(verdicts: Verdicts) {
    this.#verdicts = verdicts;
  }

  hearInput(input: ControlInput, now: Instant): void {
    this.settle();
    this.#now = now;
    if (input.kind === 'Reported') this.#reported(input.report);
    if (input.kind !== 'ProbeAnswered') return;
    const flight = this.#flights.get(input.probe);
    if (flight === undefined) return;
    this.#flights.delete(input.probe);
    this.#ended(flight, outcomeAt(flight, input.answer, now));
  }

  hearTimeout(now: Instant): void {
    this.settle();
    this.#now = now;
    this.#woken = true;
  }

  hearOutput(output: ControlOutput): void {
    switch (output.kind) {
      case 'Direct':
        return this.#directed(output.message.directive);
      case 'StartProbe':
        return this.#started(output);
      case 'CancelProbe':
        return this.#cancelled(output.probe);
      case 'Event':
        return this.#told(output.event);
      default:
        return undefined;
    }
  }

  /** All that the last input led to was told: now it must fit. */
  settle(): void {
    const { value: missing } = this.#due.entries().next();
    this.#verdicts.check(TURNS, missing === undefined, () => {
      return `${missing?.[0]} should be ${missing?.[1].to} after ${missing?.[1].outcome}, and nobody said so`;
    });
    for (const target of this.#touched) {
      if (this.#unclear.has(target.cluster)) continue;
      this.#verdicts.check(TOLD, target.told === mayServe(target), () => {
        return `${nameOf(target)} is ${target.health}, ejected until ${target.ejectedUntil}; told was ${target.told}`;
      });
    }
    this.#touched.clear();
    for (const [cluster, told] of this.#counts) this.#checkCounts(cluster, told);
    this.#counts.clear();
    if (this.#woken) this.#checkOverdue();
    this.#woken = false;
  }

  #checkCounts(name: string, told: { readonly available: number; readonly total: number }): void {
    const cluster = this.#clusters.get(name);
    if (cluster === undefined || this.#unclear.has(name)) return;
    const { backends } = cluster.settings;
    const available = backends.filter(({ address }) => {
      const target = cluster.targets.get(formatAddress(address));
      return target !== undefined && isAvailable(target);
    }).length;
    this.#verdicts.check(
      COUNTS,
      told.available === available && told.total === backends.length,
      () =>
        `${name} has ${available} of ${backends.length}; told were ${told.available} of ${told.total}`,
    );
  }

  #checkOverdue(): void {
    for (const [probe, flight] of this.#flights) {
      this.#verdicts.check(ENDS, !isOverdue(flight, this.#now), () => {
        return `probe ${probe} of ${nameOf(flight.target)} began at ${flight.startedAt}; it is ${this.#now}`;
      });
    }
    for (const { targets } of this.#clusters.values()) {
      for (const target of targets.values()) {
        const { ejectedUntil } = target;
        if (ejectedUntil === undefined) continue;
        this.#verdicts.check(ENDS, ejectedUntil > this.#now, () => {
          return `${nameOf(target)} is ejected until ${ejectedUntil}; it is ${this.#now}`;
        });
      }
    }
  }

  #reported(report: Report): void {
    if (report.kind === 'Stopped') {
      for (const name of this.#clusters.keys()) this.#remove(name);
      return;
    }
    if (report.kind !== 'BackendRefused' && report.kind !== 'BackendTraffic') return;
    const target = this.#targetOf(report);
    if (target === undefined) return;
    const shown = this.#shown.get(target) ?? new ShownEvidence();
    this.#shown.set(target, shown);
    if (report.kind === 'BackendRefused') shown.refused(report.flow, this.#now);
    else shown.exchanged(report.forwarded, report.answered, this.#now);
  }

  #directed(directive: Directive): void {
    switch (directive.kind) {
      case 'SetCluster':
        return this.#set(directive.settings);
      case 'RemoveCluster':
        return this.#remove(directive.cluster);
      case 'SetHealth':
      case 'SetBackendState': {
        const target = this.#targetOf(directive);
        if (target === undefined) return undefined;
        this.#touched.add(target);
        if (directive.kind === 'SetHealth') target.told = directive.healthy;
        else target.closing = directive.state !== 'active';
        return undefined;
      }
      default:
        return undefined;
    }
  }

  /** A backend that stays keeps its health; where nobody probes any more it is up. */
  #set(settings: ClusterSettings): void {
    const name = settings.cluster;
    const known = this.#clusters.get(name);
    const targets = this.#targetsOf(settings, known?.targets ?? new Map<string, ModelTarget>());
    for (const target of targets.values()) {
      this.#touched.add(target);
      if (settings.passive === false) target.ejectedUntil = undefined;
      if (probingOf(settings) === undefined) this.#unwatch(target);
    }
    this.#clusters.set(name, { settings, targets });
    if (known !== undefined && sameQuestion(known.settings, settings)) return;
    for (const flight of this.#flights.values())
      if (flight.target.cluster === name) flight.superseded = true;
  }

  /** Those that are configured: who is new is up, who is not there any more is forgotten. */
  #targetsOf(
    { cluster, backends }: ClusterSettings,
    targets: Map<string, ModelTarget>,
  ): Map<string, ModelTarget> {
    const wanted = new Map(backends.map(({ address }) => [formatAddress(address), address]));
    for (const [key, target] of targets) if (!wanted.has(key)) this.#forget(targets, key, target);
    for (const [key, address] of wanted)
      if (!targets.has(key)) targets.set(key, newTarget(cluster, address));
    return targets;
  }

  #unwatch(target: ModelTarget): void {
    if (target.health === 'down')
      this.#due.set(nameOf(target), { to: 'up', outcome: 'unwatched', streak: 0 });
    target.health = 'up';
    target.results = [];
  }

  #forget(targets: Map<string, ModelTarget>, key: string, target: ModelTarget): void {
    targets.delete(key);
    this.#touched.delete(target);
    for (const flight of this.#flights.values())
      if (flight.target === target) flight.superseded = true;
  }

  #remove(name: string): void {
    const { targets } = this.#clusters.get(name) ?? {};
    if (targets === undefined) return;
    for (const [key, target] of targets) this.#forget(targets, key, target);
    this.#clusters.delete(name);
  }

  #started(probe: Probe): void {
    const cluster = this.#clusters.get(probe.cluster);
    const address = cluster && probedBackend(cluster.settings, probe);
    if (address === 'unclear') {
      this.#unclear.add(probe.cluster);
      return;
    }
    const target = address && cluster?.targets.get(formatAddress(address));
    const settings = cluster && probingOf(cluster.settings);
    const isRight = settings !== undefined && target !== undefined && asksRight(probe, settings);
    this.#verdicts.check(ASKS, isRight, () => {
      return `probe ${probe.probe} of ${probe.cluster} asks ${formatAddress(probe.target)} by ${probe.mode}`;
    });
    if (settings === undefined || target === undefined) return;
    const isOnly = ![...this.#flights.values()].some((flight) => flight.target === target);
    this.#verdicts.check(ASKS, isOnly, () => `${nameOf(target)} is asked by two probes at once`);
    const startedAt = this.#now;
    this.#flights.set(probe.probe, { target, settings, startedAt, superseded: false });
  }

  #cancelled(probe: ProbeId): void {
    const flight = this.#flights.get(probe);
    if (flight === undefined) return;
    this.#flights.delete(probe);
    if (flight.superseded) return;
    this.#verdicts.check(TURNS, isOverdue(flight, this.#now), () => {
      return `probe ${probe} of ${nameOf(flight.target)} was cancelled before its time`;
    });
    this.#ended(flight, withoutAnswer(flight.settings));
  }

  #ended({ target, settings, superseded }: ModelFlight, outcome: Turn['outcome']): void {
    if (superseded || outcome === 'unwatched') return;
    const turn = judgeOutcome(target, outcome, settings);
    if (turn !== undefined) this.#due.set(nameOf(target), turn);
  }

  #told(event: ControlEvent): void {
    switch (event.kind) {
      case 'HealthChanged':
        return this.#changed(event);
      case 'BackendEjected':
        return this.#ejected(event);
      case 'BackendReturned': {
        const target = this.#targetOf(event);
        if (target === undefined) return undefined;
        const until = target.ejectedUntil;
        const isOver =
          until !== undefined && (event.reason === 'last-available' || until <= this.#now);
        this.#verdicts.check(EJECTS, isOver, () => `${nameOf(target)} returned before ${until}`);
        target.ejectedUntil = undefined;
        this.#touched.add(target);
        return undefined;
      }
      case 'Availability': {
        const { cluster, available, total } = event;
        this.#counts.set(cluster, { available, total });
        return undefined;
      }
      default:
        return undefined;
    }
  }

  #changed({ cluster, address, to, evidence }: Changed): void {
    if (this.#unclear.has(cluster)) return;
    const name = nameOf({ cluster, address });
    const turn = this.#due.get(name);
    this.#due.delete(name);
    const isSo =
      turn?.to === to &&
      (evidence.kind === 'unwatched'
        ? turn.outcome === 'unwatched'
        : turn.outcome === evidence.outcome && turn.streak === evidence.streak);
    this.#verdicts.check(TURNS, isSo, () => {
      const why =
        evidence.kind === 'probe' ? `${evidence.streak} × ${evidence.outcome}` : 'unwatched';
      const model = turn === undefined ? 'nothing' : `${turn.to}: ${turn.streak} × ${turn.outcome}`;
      return `${name} was said to be ${to}: ${why}; by its probes: ${model}`;
    });
    this.#verdicts.see(to === 'down' ? FALLS : RISES);
    const target = this.#targetOf({ cluster, address });
    if (target !== undefined) this.#touched.add(target);
  }

  #ejected({ cluster, address, until, evidence }: Ejected): void {
    const known = this.#clusters.get(cluster);
    const target = this.#targetOf({ cluster, address });
    const others = [...(known?.targets.values() ?? [])].filter((one) => one !== target);
    const objection =
      known === undefined || target === undefined
        ? 'it is no backend'
        : (objectionTo(target, known.settings, others) ??
          this.#shown.get(target)?.objection(evidence, known.settings) ??
          (this.#shown.has(target) ? undefined : 'nothing was reported of it'));
    this.#verdicts.check(EJECTS, objection === undefined, () => {
      return `${nameOf({ cluster, address })} was ejected until ${until}: ${objection}`;
    });
    if (target === undefined) return;
    target.ejectedUntil = until;
    this.#touched.add(target);
  }

  #targetOf({
    cluster,
    address,
  }: {
    readonly cluster: string;
    readonly address: Address;
  }): ModelTarget | undefined {
    return this.#clusters.get(cluster)?.targets.get(formatAddress(address));
  }
}

/** Why this backend may not be ejected, whatever was seen of it. */
function objectionTo(
  target: ModelTarget,
  { passive }: ClusterSettings,
  others: readonly ModelTarget[],
): string | undefined {
  if (passive === false) return 'its cluster does not look at traffic';
  if (target.ejectedUntil !== undefined) return 'it is ejected already';
  if (!others.some(isAvailable)) return 'nobody else is left';
  const ejected = others.filter(({ ejectedUntil }) => ejectedUntil !== undefined).length + 1;
  return ejected * 2 > others.length + 1 ? 'more than half of its cluster is ejected' : undefined;
}
