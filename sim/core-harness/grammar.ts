/**
 * The seeded grammar (spec §11.2, §11.3): which action comes next and with which parameters. Draws that the seeds' table does
 * not know come from other streams than `workload` and `values`, so that they shift nothing in it.
 */
import { assertNever } from '../../core/assert.ts';
import type { LoadBalancing, OnBackendLoss } from '../../core/config.ts';
import { buggifyPoint, type BuggifyPoint } from '../buggify.ts';
import type { Streams } from '../random.ts';
import type { Seed } from '../seed.ts';
import {
  ACTION_KINDS,
  HEADER_FILL,
  RATES,
  REFUSALS,
  type Action,
  type ActionKind,
  type DrawnCluster,
  type DrawnTerms,
  type GuardActionKind,
  type InitialState,
  type Payload,
  type ViewChange,
} from './actions.ts';
import { CLUSTER_COUNT, FLOW_ID_BOUND, HOST_COUNT } from './pools.ts';

/** What a scenario may change; everything else is the seeds' table. */
export interface Grammar {
  /** Weights by kind; a kind that is missing is never drawn as an action of its own. */
  readonly weights: Readonly<Partial<Record<ActionKind, number>>>;
  /** Chance per step, in 1/1000, of one adversarial event. */
  readonly buggifyPermille: number;
  /** Chance per step, in 1/1000, of a timer delivered early. */
  readonly earlyTimerPermille: number;
  /** Draw per-source limits too. */
  readonly sourceLimits: boolean;
  /** Clusters may count replies by request, linger, and forward empty datagrams. */
  readonly accounting: boolean;
  /** Clusters may limit the rate of a flow, and what a client is sent before it spoke twice. */
  readonly flowLimits: boolean;
  /** One payload in eight begins like a PROXY header. */
  readonly headers: boolean;
  /** How many of the pool's clients there are: 32, or 64 with those on IPv6. */
  readonly sources: number;
  /** Policies to draw from. */
  readonly policies: readonly LoadBalancing[];
}

/** What the draws may depend on. */
export interface Surroundings {
  readonly flowCount: number;
  readonly maxRx: number;
  /** Flows remembered as established. */
  readonly remembered: number;
}

const BUGGIFY_ALWAYS = { numerator: 1, denominator: 1 };

export class ActionSource {
  private readonly grammar: Grammar;
  private readonly streams: Streams;
  private readonly kinds: readonly ActionKind[];
  private readonly weights: readonly number[];
  private readonly unkind: BuggifyPoint;

  constructor(grammar: Grammar, seed: Seed, streams: Streams) {
    this.grammar = grammar;
    this.streams = streams;
    this.unkind = buggifyPoint('core-harness step', seed, streams.buggify, BUGGIFY_ALWAYS);
    const kinds: ActionKind[] = [];
    const weights: number[] = [];
    for (const kind of ACTION_KINDS) {
      const weight = grammar.weights[kind] ?? 0;
      if (weight > 0) {
        kinds.push(kind);
        weights.push(weight);
      }
    }
    this.kinds = kinds;
    this.weights = weights;
  }

  initial(): InitialState {
    const { config } = this.streams;
    const cap = config.between('cap', 1, 31);
    const cluster = this.cluster(false);
    const hashSeed = {
      high: config.choose('hash seed, high', 2 ** 32),
      low: config.choose('hash seed, low', 2 ** 32),
    };
    return {
      config: cluster,
      cap,
      hashSeed,
      policy: config.pick('policy', this.grammar.policies),
      byRequests: config.chance('by requests', 1, 2),
      weights: [0, 1, 2, 3].map(() => config.pick('weight', WEIGHTS)),
    };
  }

  /** The actions of one step: one of the table, and now and then something nasty after it. */
  step(around: Surroundings): Action[] {
    const { workload, sched } = this.streams;
    const index = workload.weighted('action', this.weights);
    const actions = [this.action(this.kinds[index] ?? 'CloseAll', around)];
    if (this.unkind.fires(this.grammar.buggifyPermille, 1_000)) this.nasty(actions);
    if (sched.chance('early timer', this.grammar.earlyTimerPermille, 1_000)) {
      actions.push({ kind: 'EarlyTimer', earlyMs: sched.between('early by', 0, 99) });
    }
    return actions;
  }

  private action(kind: ActionKind, around: Surroundings): Action {
    const { workload } = this.streams;
    switch (kind) {
      case 'ClientDatagram':
        return { kind, source: this.source(), payload: this.payload(around.maxRx) };
      case 'BackendDatagram':
        return this.backendDatagram(around);
      case 'BackendView':
        return { kind, change: this.viewChange() };
      case 'AdvanceClock':
        return { kind, ms: this.clockStep() };
      case 'ReconfigCluster':
        return { kind, config: this.cluster(true) };
      case 'SetMaxFlows':
        return { kind, count: this.maxFlows(around.flowCount) };
      case 'AbortFlow':
        return { kind, id: workload.choose('abort', FLOW_ID_BOUND) };
      case 'SetMaxRx':
        return { kind, bytes: workload.between('max rx', 16, 4_095) };
      case 'Drain':
        return this.drain(around);
      case 'EarlyTimer':
        return { kind, earlyMs: workload.between('early by', 0, 99) };
      case 'CloseAll':
        return { kind };
      default:
        return this.guardAction(kind);
    }
  }

  private guardAction(kind: GuardActionKind): Action {
    const { net } = this.streams;
    switch (kind) {
      case 'LoseBackend':
        return {
          kind,
          backend: net.choose('lost', 4),
          removed: net.chance('removed', 1, 2),
          fate: net.pick('fate', FATES),
        };
      case 'RegainBackend':
        return { kind, backend: net.choose('regained', 4) };
      case 'SweepBackend':
        return { kind, backend: net.choose('swept', 4) };
      case 'KillFlow':
        return { kind, back: net.choose('back', 16) };
      case 'Deny':
        return { kind, hosts: this.deniedHosts() };
      case 'Refuse':
        return {
          kind,
          refusal: net.pick('refusal', REFUSALS),
          ms: net.between('refuse ms', 1, 500),
        };
      default:
        return assertNever(kind);
    }
  }

  /** Nobody in half the cases, else a quarter of all. */
  private deniedHosts(): number {
    const { net } = this.streams;
    if (net.chance('lift', 1, 2)) return 0;
    return net.choose('denied', 2 ** HOST_COUNT) & net.choose('denied', 2 ** HOST_COUNT);
  }

  private clockStep(): number {
    const { workload } = this.streams;
    return workload.chance('long', 12, 100)
      ? workload.between('long ms', 5_000, 14_999)
      : workload.between('short ms', 1, 299);
  }

  private maxFlows(flowCount: number): number {
    const { workload } = this.streams;
    return workload.chance('shrink', 1, 2)
      ? workload.between('shrink to', 0, flowCount)
      : workload.between('set to', 1, 63);
  }

  private backendDatagram(around: Surroundings): Action {
    const { workload } = this.streams;
    const id = workload.choose('flow id', FLOW_ID_BOUND);
    const known = workload.chance('known flow', 70, 100) && around.remembered > 0;
    return {
      kind: 'BackendDatagram',
      flow: known
        ? { by: 'memory', index: workload.choose('remembered', around.remembered), otherwise: id }
        : { by: 'id', id },
      payload: this.payload(around.maxRx),
    };
  }

  private drain(around: Surroundings): Action {
    return {
      kind: 'Drain',
      source: this.source(),
      payload: this.payload(around.maxRx),
      next: this.cluster(false),
      cap: this.streams.workload.between('cap', 1, 31),
    };
  }

  /** Spec §11.3 "Buggify", with the stale resolve replaced as §11.6 says: a view that offers nobody for a while. */
  private nasty(into: Action[]): void {
    const { buggify } = this.streams;
    switch (buggify.choose('what', 4)) {
      case 0:
        into.push({ kind: 'BackendView', change: NOBODY });
        for (let left = buggify.between('burst', 2, 5); left > 0; left -= 1) {
          const source = buggify.choose('burst source', this.grammar.sources);
          into.push({ kind: 'ClientDatagram', source, payload: { length: 1, fill: left } });
        }
        into.push({ kind: 'BackendView', change: { kind: 'Restore' } });
        break;
      case 1:
        for (let left = buggify.between('reconfigs', 2, 5); left > 0; left -= 1) {
          into.push({ kind: 'ReconfigCluster', config: this.cluster(true) });
        }
        break;
      case 2:
        into.push({ kind: 'SetMaxFlows', count: buggify.choose('tiny cap', 2) });
        break;
      default:
        into.push({ kind: 'AdvanceClock', ms: 1_000 * buggify.between('jump', 30, 599) });
    }
  }

  private source(): number {
    return this.streams.workload.choose('source', this.grammar.sources);
  }

  private payload(maxRx: number): Payload {
    const { values, net } = this.streams;
    const drawn = values.choose('fill', 256);
    const fill = this.grammar.headers && net.chance('a header', 1, 8) ? HEADER_FILL : drawn;
    const sort = values.choose('payload', 16);
    if (sort === 0) return { length: 0, fill };
    if (sort < 3) return { length: values.between('tiny', 1, 15), fill };
    if (sort < 13) return { length: Math.min(512, values.between('fitting', 1, maxRx)), fill };
    const least = Math.max(maxRx + 1, 2);
    return { length: values.between('oversize', least, least + 2_048), fill };
  }

  private cluster(mayBeEmpty: boolean): DrawnCluster {
    const { values } = this.streams;
    const empty = mayBeEmpty && values.chance('no cluster', 1, 10);
    const drawn: DrawnCluster = {
      cluster: empty ? -1 : values.choose('cluster', CLUSTER_COUNT),
      affinityWithPort: values.chance('with port', 1, 2),
      responses: values.chance('responses', 60, 100) ? 0 : values.between('responses', 1, 3),
      requests: values.chance('requests', 60, 100) ? 0 : values.between('requests', 1, 5),
      frontMs: values.between('front', 500, 4_999),
      backMs: values.between('back', 500, 4_999),
      sendProxyProtocol: values.chance('proxy protocol', 30, 100),
      everyDatagram: values.chance('every datagram', 1, 2),
      perIp: this.limit('per ip', 4),
      perSubnet: this.limit('per subnet', 12),
    };
    const { accounting, flowLimits } = this.grammar;
    return accounting || flowLimits ? { ...drawn, terms: this.terms() } : drawn;
  }

  private terms(): DrawnTerms {
    const { net } = this.streams;
    const { accounting, flowLimits } = this.grammar;
    const maybe = (site: string, wanted: boolean): boolean => wanted && net.chance(site, 1, 2);
    return {
      responsesPerRequest: maybe('per request', accounting),
      requestsLinger: maybe('linger', accounting),
      graceMs: maybe('grace', accounting) ? net.between('grace', 1, 1_500) : 0,
      forwardEmpty: maybe('forward empty', accounting),
      rate: flowLimits ? net.pick('rate', RATES) : 0,
      burst: net.between('burst', 1, 3),
      creditFactor: maybe('credit', flowLimits) ? net.between('factor', 1, 3) : 0,
      creditFloor: net.choose('floor', 600),
    };
  }

  private limit(site: string, highest: number): number {
    const { net } = this.streams;
    if (!this.grammar.sourceLimits || net.chance(site, 1, 3)) return 0;
    return net.between(site, 1, highest);
  }

  private viewChange(): ViewChange {
    const { net } = this.streams;
    const sort = net.choose('view', 32);
    if (sort < 25) {
      const backend = net.choose('whose health', 4);
      return { kind: 'Health', backend, healthy: net.chance('healthy', 1, 2) };
    }
    if (sort < 28) {
      const members = net.choose('members', 16);
      return {
        kind: 'List',
        members,
        backups: net.choose('backups', 16) & net.choose('backups', 16),
      };
    }
    return sort === 28 ? NOBODY : { kind: 'Restore' };
  }
}

const NOBODY: ViewChange = { kind: 'List', members: 0, backups: 0 };
/** Staying is what happens anyway: half of all are rebound. */
const FATES: readonly OnBackendLoss[] = ['pin', 'rebind', 'rebind', 'close'];
const WEIGHTS: readonly number[] = [0, 1, 50, 100, 255];
