/**
 * Performs actions on a UdpManager and on its shadow model, and compares everything after every call: the whole output
 * sequence, the step invariants of spec §11.4, the whole state, and what each flow did since it was opened.
 */
import type { Address } from '../../core/address.ts';
import { assertNever } from '../../core/assert.ts';
import { flowId } from '../../core/brand.ts';
import type { ConfigEvent, Output } from '../../core/contract.ts';
import type { TableSeed } from '../../core/keyed-hash.ts';
import { UdpManager } from '../../core/manager.ts';
import { Verifier } from '../../core/verify.ts';
import { after, instant, milliseconds, type Instant } from '../../core/time.ts';
import type { Digest } from '../digest.ts';
import type { Observer } from '../properties.ts';
import {
  byteOf,
  DRAIN_WAIT_MS,
  HEADER_FILL,
  INITIAL_MAX_RX,
  type Action,
  type DrawnCluster,
  type FlowReference,
  type InitialState,
  type Payload,
} from './actions.ts';
import { checkState } from './checks.ts';
import { matches, sameBytes } from './comparison.ts';
import { digestOutput } from './digest-output.ts';
import { FlowHistory } from './flow-history.ts';
import type { Surroundings } from './grammar.ts';
import { ShadowModel, type Expected } from './model.ts';
import { SelectionModel } from './model-selection.ts';
import { placeIn, sourceAt, BACKEND_ADDRESSES } from './pools.ts';
import * as properties from './properties.ts';
import { toClusterConfig } from './cluster-config.ts';
import { SimulatedView } from './view.ts';

/** Everything that must not matter: another guise of the same run has the same outputs. */
export interface Guise {
  /** What the receive buffer holds once it is no longer lent. */
  readonly poison: number;
  readonly tableSeed: TableSeed;
  /** How the ids of clusters and backends are spelled. */
  readonly prefix: string;
}

/** A stranger's view of each call, for verbose runs. */
export interface Trace {
  call(name: string, now: Instant, outputs: readonly Output[], manager: UdpManager): void;
}

const REMEMBERED = 256;
const BUFFER_BYTES = 70_000;

export class CoreHarness {
  readonly view: SimulatedView;
  now: Instant = instant(0);
  private readonly initial: InitialState;
  private readonly guise: Guise;
  private readonly observer: Observer;
  private readonly digest: Digest;
  private readonly trace: Trace | undefined;
  private readonly selection: SelectionModel;
  private readonly buffer = new Uint8Array(BUFFER_BYTES);
  /** Views of the buffer by length: only their making is saved, every byte is written anew. */
  private readonly views: Uint8Array[] = [];
  private readonly verifier = new Verifier();
  private outputs: Output[] = [];
  private readonly remembered: number[] = [];
  private manager: UdpManager;
  private model: ShadowModel;
  private history: FlowHistory;
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
    this.view = new SimulatedView(initial, guise.prefix);
    this.selection = new SelectionModel(initial);
    this.manager = this.newManager(initial.config, initial.cap);
    this.model = this.newModel(initial.config, initial.cap);
    this.history = new FlowHistory(initial.config, observer);
  }

  /** Whether a call threw: nothing can be said of such a machine any more. */
  get isOver(): boolean {
    return this.ended;
  }

  get surroundings(): Surroundings {
    return {
      flowCount: this.model.flowCount,
      maxRx: this.maxRx,
      remembered: this.remembered.length,
    };
  }

  perform(action: Action): void {
    switch (action.kind) {
      case 'ClientDatagram':
        return this.clientDatagram(action.source, action.payload);
      case 'BackendDatagram':
        return this.backendDatagram(this.resolve(action.flow), action.payload);
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
        return this.abort(action.id);
      case 'SetMaxRx':
        this.maxRx = action.bytes;
        this.model.setMaxRx(action.bytes);
        return this.configure({ kind: 'SetMaxRxDatagramSize', bytes: action.bytes });
      case 'Drain':
        return this.drainEpisode(action);
      case 'CloseAll':
        return this.closeAll();
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
    this.act('ClientDatagram', src, () =>
      this.manager.handleInput(
        { kind: 'ClientDatagram', src, payload: this.lend(payload), backends: this.view },
        this.now,
      ),
    );
    const withPort = this.model.withPort;
    const expected = this.model.clientDatagram(source, payload, this.now);
    this.checkSelection(source, withPort);
    this.compare(expected, payload);
  }

  private backendDatagram(id: number, payload: Payload): void {
    this.act('BackendDatagram', undefined, () =>
      this.manager.handleInput(
        { kind: 'BackendDatagram', flow: flowId(id), payload: this.lend(payload) },
        this.now,
      ),
    );
    this.compare(this.model.backendDatagram(id, payload, this.now), payload);
  }

  private timeout(): void {
    const armed = this.manager.pollTimeout();
    this.act('handleTimeout', undefined, () => this.manager.handleTimeout(this.now));
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

  private reconfigure(config: DrawnCluster): void {
    this.model.setCluster(config);
    this.history.config = config;
    this.configure({ kind: 'SetCluster', config: toClusterConfig(config, this.guise.prefix) });
  }

  private configure(event: ConfigEvent): void {
    this.act(event.kind, undefined, () =>
      this.manager.handleInput({ kind: 'Config', event }, this.now),
    );
    this.compare([]);
  }

  private abort(id: number): void {
    this.act('abortFlow', undefined, () => this.manager.abortFlow(flowId(id), this.now));
    this.compare(this.model.abort(id));
  }

  private closeAll(): void {
    this.act('closeAll', undefined, () => this.manager.closeAll(this.now));
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
    this.remembered.length = 0;
    this.manager = this.newManager(action.next, action.cap);
    this.model = this.newModel(action.next, action.cap);
    this.history = new FlowHistory(action.next, this.observer);
  }

  private checkEmpty(): void {
    const { manager, history } = this;
    const empty = manager.flowCount === 0 && manager.pollTimeout() === undefined;
    this.observer.check(properties.FINALLY_EMPTY, empty && history.created === history.evicted);
  }

  /** Calls the machine, drains it into `outputs` and lets every observer of outputs see them. */
  private act(name: string, client: Address | undefined, call: () => void): void {
    const { manager } = this;
    const outputs: Output[] = [];
    this.outputs = outputs;
    try {
      call();
      for (let next = manager.pollOutput(); next !== undefined; next = manager.pollOutput()) {
        outputs.push(next);
        this.take(next, client);
      }
    } catch (error) {
      this.failed(name, error);
    }
    this.observer.check(properties.NO_EXCEPTION, !this.ended);
    this.digestOutputs();
    this.trace?.call(name, this.now, outputs, manager);
  }

  private take(output: Output, client: Address | undefined): void {
    if (output.kind === 'OpenUpstream') {
      this.view.opened(output.backend);
      this.remembered.push(output.flow);
      if (this.remembered.length > REMEMBERED) this.remembered.shift();
    } else if (output.kind === 'SendToBackend' || output.kind === 'CloseFlow') {
      const backend = this.history.backendOf(output.flow);
      if (backend !== undefined && output.kind === 'CloseFlow') this.view.closed(backend);
      else if (backend !== undefined) this.view.forwarded(backend, this.now);
    }
    this.history.take(output, client);
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
      const intact = payload !== undefined && this.isIntact(output.payload, payload);
      observer.check(properties.INTACT, intact);
    }
    observer.check(properties.AS_MODELLED, same);
    this.noteOutcome();
    if (payload !== undefined) this.buffer.fill(this.guise.poison, 0, payload.length);
    if (!this.ended) this.checkWholeState();
  }

  private checkWholeState(): void {
    const { created, evicted } = this.history;
    const outside = { created, evicted, highestCap: this.model.highestCap };
    try {
      checkState(this.manager, outside, this.observer, this.verifier);
    } catch (error) {
      this.failed('checkInvariants', error);
    }
  }

  /** Properties of the answer that the model cannot see in the sequence: who was asked for, and by which key. */
  private checkSelection(source: number, withPort: boolean): void {
    const { view, model, observer } = this;
    const { prediction } = model;
    observer.check(properties.KEYED, view.questions === (prediction === undefined ? 0 : 1));
    if (prediction === undefined || view.asked === undefined) return;
    const { high, low } = this.selection.keyOf(source, withPort);
    observer.check(properties.KEYED, view.asked.high === high && view.asked.low === low);
    const chosen = this.chosen();
    const { candidates } = prediction;
    const eligible = chosen === undefined ? candidates.length === 0 : candidates.includes(chosen);
    observer.check(properties.ELIGIBLE, eligible);
    observer.check(properties.FAIL_OPEN, prediction.failOpen && chosen !== undefined);
    observer.check(properties.NOBODY_LEFT, prediction.backend === -1);
  }

  /** What rare things this call showed, for the properties that must be seen sometimes. */
  private noteOutcome(): void {
    for (const output of this.outputs) {
      if (output.kind === 'CloseFlow') {
        this.observer.check(properties.RESPONSES_CAP, output.reason === 'ResponsesReached');
        this.observer.check(properties.REQUESTS_CAP, output.reason === 'RequestsReached');
      } else if (output.kind === 'Drop') {
        this.observer.check(properties.OVERSIZE, output.reason === 'Truncated');
        this.observer.check(properties.STALE_ID, output.reason === 'UnknownFlow');
      } else if (output.kind === 'Metric') {
        this.observer.check(properties.SHED_AT_CAP, output.event.kind === 'FlowShed');
        this.observer.check(properties.HEADER_REFUSED, output.event.kind === 'HeaderRefused');
      }
    }
  }

  private failed(call: string, error: unknown): void {
    this.ended = true;
    this.failure = `${call} at ${this.now} µs: ${error instanceof Error ? error.message : 'threw'}`;
  }

  /** The backend the machine chose in this call, as a place in the pool. */
  private chosen(): number | undefined {
    for (const output of this.outputs) {
      if (output.kind === 'OpenUpstream') return placeIn(BACKEND_ADDRESSES, output.backend.address);
    }
    return undefined;
  }

  private digestOutputs(): void {
    this.digest.number(this.now).number(this.manager.flowCount);
    for (const output of this.outputs) digestOutput(this.digest, output);
  }

  private resolve(reference: FlowReference): number {
    if (reference.by === 'id') return reference.id;
    const { length } = this.remembered;
    return this.remembered[reference.index % Math.max(1, length)] ?? reference.otherwise;
  }

  private lend(payload: Payload): Uint8Array {
    if (payload.fill === HEADER_FILL) {
      for (let at = 0; at < payload.length; at += 1) this.buffer[at] = byteOf(payload, at);
    } else {
      this.buffer.fill(payload.fill, 0, payload.length);
    }
    return (this.views[payload.length] ??= this.buffer.subarray(0, payload.length));
  }

  /** The very bytes that were lent, or a copy that equals them. */
  private isIntact(view: Uint8Array, payload: Payload): boolean {
    if (view.buffer !== this.buffer.buffer || view.byteOffset !== 0)
      return sameBytes(view, payload);
    const last = payload.length - 1;
    if (view.length !== payload.length || last < 0) return view.length === payload.length;
    return view[0] === byteOf(payload, 0) && view[last] === byteOf(payload, last);
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
    return new ShadowModel(config, cap, INITIAL_MAX_RX, this.selection);
  }
}
