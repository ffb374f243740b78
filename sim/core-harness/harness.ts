/**
 * Performs actions on a UdpManager and on its shadow model, and compares everything after every call: the whole output
 * sequence, the step invariants of spec §11.4, the whole state, and what each flow did since it was opened.
 */
import { assertNever } from '../../core/assert.ts';
import { flowId } from '../../core/brand.ts';
import type { OnBackendLoss } from '../../core/config.ts';
import type { CloseReason, ConfigEvent, Output } from '../../core/contract.ts';
import { UdpManager } from '../../core/manager.ts';
import { Verifier } from '../../core/verify.ts';
import { after, instant, milliseconds, type Instant } from '../../core/time.ts';
import type { Digest } from '../digest.ts';
import type { Observer } from '../properties.ts';
import {
  DRAIN_WAIT_MS,
  INITIAL_MAX_RX,
  type Action,
  type DrawnCluster,
  type GuardAction,
  type InitialState,
  type Payload,
} from './actions.ts';
import { checkState } from './checks.ts';
import { matches } from './comparison.ts';
import { digestOutput } from './digest-output.ts';
import { FlowHistory, type Arrival } from './flow-history.ts';
import { FlowMemory } from './flow-memory.ts';
import type { Surroundings } from './grammar.ts';
import { checkGuards } from './guard-checks.ts';
import type { Guise, Trace } from './guise.ts';
import { LentBuffer } from './lent-buffer.ts';
import type { Expected } from './model-expected.ts';
import { GuardModel } from './model-guards.ts';
import { ShadowModel } from './model.ts';
import { SelectionModel } from './model-selection.ts';
import { noteOutcomes } from './outcomes.ts';
import { sourceAt } from './pools.ts';
import * as properties from './properties.ts';
import { checkSelection } from './selection-checks.ts';
import { SerialLog } from './serial-log.ts';
import { toClusterConfig } from './cluster-config.ts';
import { SimulatedView } from './view.ts';

export class CoreHarness {
  readonly view: SimulatedView;
  now: Instant = instant(0);
  private readonly initial: InitialState;
  private readonly guise: Guise;
  private readonly observer: Observer;
  private readonly digest: Digest;
  private readonly trace: Trace | undefined;
  private readonly selection: SelectionModel;
  private readonly guards = new GuardModel();
  private readonly buffer: LentBuffer;
  private readonly verifier = new Verifier();
  private outputs: Output[] = [];
  private readonly memory = new FlowMemory();
  private manager: UdpManager;
  private model: ShadowModel;
  private history: FlowHistory;
  private serials: SerialLog;
  /** Whether this run ever left the seeds' table: only then what it does not know is checked. */
  private isGuarded = false;
  private maxRx = INITIAL_MAX_RX;
  private ended = false;
  /** What the call that ended the run had to say. */
  failure: string | undefined;

  constructor(
    initial: InitialState,
    guise: Guise,
    observer: Observer,
    digest: Digest,
    trace?: Trace,
  ) {
    this.initial = initial;
    this.guise = guise;
    this.observer = observer;
    this.digest = digest;
    this.trace = trace;
    this.buffer = new LentBuffer(guise.poison);
    this.view = new SimulatedView(initial, guise.prefix);
    this.selection = new SelectionModel(initial);
    this.manager = this.newManager(initial.config, initial.cap);
    this.model = this.newModel(initial.config, initial.cap);
    this.history = new FlowHistory(initial.config, observer);
    this.serials = new SerialLog(observer);
    this.adopt(initial.config);
  }

  /** Whether a call threw: nothing can be said of such a machine any more. */
  get isOver(): boolean {
    return this.ended;
  }

  get surroundings(): Surroundings {
    return {
      flowCount: this.model.flowCount,
      maxRx: this.maxRx,
      remembered: this.memory.size,
    };
  }

  perform(action: Action): void {
    switch (action.kind) {
      case 'ClientDatagram':
        return this.clientDatagram(action.source, action.payload);
      case 'BackendDatagram':
        return this.backendDatagram(this.memory.resolve(action.flow), action.payload);
      case 'BackendView':
        this.view.change(action.change);
        return this.selection.change(action.change);
      case 'AdvanceClock':
        this.now = after(this.now, milliseconds(action.ms));
        return this.timeout();
      case 'EarlyTimer':
        return this.earlyTimer(action.earlyMs);
      case 'ReconfigCluster':
        return this.reconfigure(action.config);
      case 'SetMaxFlows':
        this.model.setMaxFlows(action.count);
        return this.configure({ kind: 'SetMaxFlows', count: action.count });
      case 'AbortFlow':
        return this.abort(action.id, 'Aborted');
      case 'SetMaxRx':
        this.maxRx = action.bytes;
        this.model.setMaxRx(action.bytes);
        return this.configure({ kind: 'SetMaxRxDatagramSize', bytes: action.bytes });
      case 'Drain':
        return this.drainEpisode(action);
      case 'CloseAll':
        return this.closeAll();
      default:
        this.isGuarded = true;
        return this.guard(action);
    }
  }

  /** What the seeds' table does not know. */
  private guard(action: GuardAction): void {
    switch (action.kind) {
      case 'LoseBackend':
        this.setPolicy(action.backend, action.fate);
        this.view.lose(action.backend, action.removed);
        return this.selection.lose(action.backend, action.removed);
      case 'RegainBackend':
        this.setPolicy(action.backend, 'pin');
        this.view.regain(action.backend);
        return this.selection.regain(action.backend);
      case 'SweepBackend':
        return this.sweep(action.backend);
      case 'KillFlow':
        return this.kill(action.back);
      case 'Deny':
        this.view.guards.deny(action.hosts);
        return this.guards.deny(action);
      case 'Refuse':
        this.view.guards.refuse(action.refusal, after(this.now, milliseconds(action.ms)));
        return this.guards.refuse(action, this.now);
      default:
        return assertNever(action);
    }
  }

  /** One hour passes and everything is closed: nothing may be left (spec §11.4). */
  finish(): void {
    this.now = after(this.now, milliseconds(3_600_000));
    this.timeout();
    this.closeAll();
    this.checkEmpty();
  }

  private clientDatagram(source: number, payload: Payload): void {
    const src = sourceAt(source);
    this.view.forget();
    const lent = this.buffer.lend(payload);
    const input = { kind: 'ClientDatagram', src, payload: lent, backends: this.view } as const;
    const arrival = { client: src, bytes: payload.length, now: this.now };
    this.act('ClientDatagram', () => this.manager.handleInput(input, this.now), arrival);
    const expected = this.model.clientDatagram(source, payload, this.now);
    const { outputs, model, selection, view, observer } = this;
    checkSelection(source, outputs, { model, selection, view }, observer);
    if (this.isGuarded) {
      const served = { source, bytes: payload.length, now: this.now, outputs };
      checkGuards(served, this.history, view, observer);
    }
    this.compare(expected, payload);
  }

  private backendDatagram(id: number, payload: Payload): void {
    const lent = this.buffer.lend(payload);
    const input = { kind: 'BackendDatagram', flow: flowId(id), payload: lent } as const;
    const arrival = { client: undefined, bytes: payload.length, now: this.now };
    this.act('BackendDatagram', () => this.manager.handleInput(input, this.now), arrival);
    this.compare(this.model.backendDatagram(id, payload, this.now), payload);
  }

  private timeout(): void {
    const armed = this.manager.pollTimeout();
    this.act('handleTimeout', () => this.manager.handleTimeout(this.now));
    const expected = this.model.timeout(this.now);
    this.compare(expected);
    const next = this.manager.pollTimeout();
    this.observer.check(properties.ADVANCES, next === undefined || next > this.now);
    const last = this.outputs.at(-1);
    const rearmed = last?.kind === 'ArmTimer' && last.at === next;
    this.observer.check(properties.REARMS, this.manager.flowCount === 0 || rearmed);
    const early = armed !== undefined && armed > this.now;
    this.observer.check(properties.EARLY_TIMER, early && expected.length === 1);
    let closed = 0;
    for (const { kind } of expected) if (kind === 'CloseFlow') closed += 1;
    this.observer.check(properties.MASS_EXPIRY, closed > 1);
  }

  private earlyTimer(earlyMs: number): void {
    const armed = this.manager.pollTimeout();
    if (armed === undefined) return;
    const early = armed - earlyMs * 1_000;
    if (early > this.now) this.now = instant(early);
    this.timeout();
  }

  private setPolicy(backend: number, policy: OnBackendLoss): void {
    this.view.guards.setPolicy(backend, policy);
    this.guards.setPolicy(backend, policy);
  }

  private adopt(config: DrawnCluster): void {
    if (config.terms !== undefined) this.isGuarded = true;
  }

  private reconfigure(config: DrawnCluster): void {
    this.adopt(config);
    this.model.setCluster(config);
    this.history.config = config;
    this.configure({ kind: 'SetCluster', config: toClusterConfig(config, this.guise.prefix) });
  }

  private configure(event: ConfigEvent): void {
    this.act(event.kind, () => this.manager.handleInput({ kind: 'Config', event }, this.now));
    this.compare([]);
  }

  private abort(id: number, reason: CloseReason): void {
    this.act('abortFlow', () => this.manager.abortFlow(flowId(id), this.now, reason));
    this.compare(this.model.abort(id, reason));
  }

  /** An operator finds a flow by its serial, sees since when it lives, and kills it. */
  private kill(back: number): void {
    const serial = this.model.created - back;
    const wanted = this.model.flowOf(serial);
    const found = this.manager.slotOfSerial(serial);
    const flow = found === undefined ? undefined : this.manager.flow(found);
    const isAlike = flow?.serial === wanted?.serial && flow?.createdAt === wanted?.openedAt;
    this.observer.check(
      properties.FOUND,
      isAlike && (found === undefined) === (flow === undefined),
    );
    if (found !== undefined) this.abort(found, 'Killed');
  }

  private sweep(backend: number): void {
    for (const one of this.view.entriesAt(backend)) {
      let next = this.manager.nextFlowOn(one, 0);
      for (; next !== undefined; next = this.manager.nextFlowOn(one, next + 1)) {
        this.abort(next, 'BackendLost');
      }
    }
    this.observer.check(properties.FOUND, this.model.flowsOn(backend).length === 0);
  }

  private closeAll(): void {
    this.act('closeAll', () => this.manager.closeAll(this.now));
    this.compare(this.model.closeAll());
  }

  /** Spec §11.3: draining is one-way, so the listener ends here and a fresh one takes its place. */
  private drainEpisode(action: Extract<Action, { kind: 'Drain' }>): void {
    this.model.drain();
    this.configure({ kind: 'Drain' });
    // Configuration goes on while a listener drains, and does not end the drain.
    this.reconfigure(action.next);
    this.clientDatagram(action.source, action.payload);
    const shed = this.outputs.some((output) => output.kind === 'Drop' && output.reason === 'Shed');
    this.observer.check(properties.SHED_DRAINING, shed);
    this.now = after(this.now, milliseconds(DRAIN_WAIT_MS));
    this.timeout();
    this.closeAll();
    this.checkEmpty();
    this.maxRx = INITIAL_MAX_RX;
    this.memory.forget();
    this.manager = this.newManager(action.next, action.cap);
    this.model = this.newModel(action.next, action.cap);
    this.history = new FlowHistory(action.next, this.observer);
    this.serials = new SerialLog(this.observer);
  }

  private checkEmpty(): void {
    const { manager, history } = this;
    const empty = manager.flowCount === 0 && manager.pollTimeout() === undefined;
    this.observer.check(properties.FINALLY_EMPTY, empty && history.created === history.evicted);
  }

  /** Calls the machine, drains it into `outputs` and lets every observer of outputs see them. */
  private act(
    name: string,
    call: () => void,
    arrival: Arrival = { client: undefined, bytes: 0, now: this.now },
  ): void {
    const { manager } = this;
    const outputs: Output[] = [];
    this.outputs = outputs;
    try {
      call();
      for (let next = manager.pollOutput(); next !== undefined; next = manager.pollOutput()) {
        outputs.push(next);
        this.take(next, arrival);
      }
    } catch (error) {
      this.failed(name, error);
    }
    this.observer.check(properties.NO_EXCEPTION, !this.ended);
    this.digestOutputs();
    this.trace?.call(name, this.now, outputs, manager);
  }

  private take(output: Output, arrival: Arrival): void {
    if (output.kind === 'OpenUpstream') {
      const before = this.history.backendOf(output.flow);
      if (before !== undefined) this.view.closed(before);
      this.view.opened(output.backend);
      this.memory.note(output.flow);
    } else if (output.kind === 'SendToBackend' || output.kind === 'CloseFlow') {
      const backend = this.history.backendOf(output.flow);
      if (backend !== undefined && output.kind === 'CloseFlow') this.view.closed(backend);
      else if (backend !== undefined) this.view.forwarded(backend, this.now);
    }
    this.history.take(output, arrival);
  }

  /** Holds the outputs against the prediction, the payloads against what was lent; then the whole state is checked. */
  private compare(expected: readonly Expected[], payload?: Payload): void {
    const { outputs, observer } = this;
    let same = expected.length === outputs.length;
    for (let index = 0; index < outputs.length; index += 1) {
      const output = outputs[index];
      const wanted = expected[index];
      if (output === undefined) continue;
      same &&= wanted !== undefined && matches(wanted, output);
      if (output.kind !== 'SendToBackend' && output.kind !== 'SendToClient') continue;
      const intact = payload !== undefined && this.buffer.isIntact(output.payload, payload);
      observer.check(properties.INTACT, intact);
    }
    observer.check(properties.AS_MODELLED, same);
    noteOutcomes(outputs, observer);
    if (this.isGuarded) this.serials.note(outputs, this.manager);
    if (payload !== undefined) this.buffer.takeBack(payload);
    if (!this.ended) this.checkWholeState();
  }

  private checkWholeState(): void {
    const { created, evicted } = this.history;
    const { isGuarded, model } = this;
    const outside = { created, evicted, highestCap: model.highestCap, isGuarded };
    try {
      checkState(this.manager, outside, this.observer, this.verifier);
    } catch (error) {
      this.failed('checkInvariants', error);
    }
  }

  private failed(call: string, error: unknown): void {
    this.ended = true;
    this.failure = `${call} at ${this.now} µs: ${error instanceof Error ? error.message : 'threw'}`;
  }

  private digestOutputs(): void {
    this.digest.number(this.now).number(this.manager.flowCount);
    for (const output of this.outputs) digestOutput(this.digest, output);
  }

  private newManager(config: DrawnCluster, cap: number): UdpManager {
    return new UdpManager({
      config: toClusterConfig(config, this.guise.prefix),
      maxFlows: cap,
      maxRxDatagramSize: INITIAL_MAX_RX,
      placementSeed: this.initial.hashSeed,
      tableSeed: this.guise.tableSeed,
    });
  }

  private newModel(config: DrawnCluster, cap: number): ShadowModel {
    return new ShadowModel(config, cap, INITIAL_MAX_RX, this.selection, this.guards);
  }
}
