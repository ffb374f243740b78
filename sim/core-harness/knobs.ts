/**
 * The numbers of an action and of an initial state, each with the value a reader would find plainest, so that a shrinker
 * can turn them one at a time without knowing what they mean. A flag is a number that is 0 or 1.
 */
import { assertNever } from '../../core/assert.ts';
import { LOAD_BALANCINGS } from '../../core/config.ts';
import {
  INITIAL_MAX_RX,
  LOSSES,
  RATES,
  REFUSALS,
  type Action,
  type DrawnCluster,
  type DrawnTerms,
  type FlowReference,
  type GuardAction,
  type InitialState,
  type Payload,
  type ViewChange,
} from './actions.ts';
import { HOST_COUNT } from './pools.ts';

/** One number of a `T`. */
export interface Knob<T> {
  readonly value: number;
  readonly simplest: number;
  /** The same `T` with this number instead; between `value` and `simplest`. */
  readonly turned: (value: number) => T;
}

/** A cap that no handful of clients reaches. */
export const PLAIN_CAP = 31;
const PLAIN_TIMEOUT_MS = 1_000;
const PLAIN_WEIGHT = 100;

/** `simplestCap`: 1 reaches the cap with the fewest clients, `PLAIN_CAP` shows that it does not matter. */
export function initialKnobs(state: InitialState, simplestCap: number): Knob<InitialState>[] {
  const { config, hashSeed, weights } = state;
  const policies: Knob<InitialState> = {
    value: LOAD_BALANCINGS.indexOf(state.policy),
    simplest: 0,
    turned: (value) => ({ ...state, policy: LOAD_BALANCINGS[value] ?? state.policy }),
  };
  return [
    policies,
    knob(Number(state.byRequests), 0, (value) => ({ ...state, byRequests: value === 1 })),
    ...weights.map((weight, place) =>
      knob(weight, PLAIN_WEIGHT, (value) => ({ ...state, weights: weights.with(place, value) })),
    ),
    knob(hashSeed.high, 0, (high) => ({ ...state, hashSeed: { ...hashSeed, high } })),
    knob(hashSeed.low, 0, (low) => ({ ...state, hashSeed: { ...hashSeed, low } })),
    ...clusterKnobs(config, (drawn) => ({ ...state, config: drawn })),
    knob(state.cap, simplestCap, (cap) => ({ ...state, cap })),
  ];
}

export function actionKnobs(action: Action): Knob<Action>[] {
  switch (action.kind) {
    case 'ClientDatagram':
      return datagramKnobs(action, (changed) => ({ ...action, ...changed }));
    case 'BackendDatagram':
      return [
        ...referenceKnobs(action.flow, (flow) => ({ ...action, flow })),
        ...payloadKnobs(action.payload, (payload) => ({ ...action, payload })),
      ];
    case 'BackendView':
      return viewKnobs(action.change, (change) => ({ ...action, change }));
    case 'AdvanceClock':
      return [knob(action.ms, 0, (ms) => ({ ...action, ms }))];
    case 'EarlyTimer':
      return [knob(action.earlyMs, 0, (earlyMs) => ({ ...action, earlyMs }))];
    case 'ReconfigCluster':
      return clusterKnobs(action.config, (config) => ({ ...action, config }));
    case 'SetMaxFlows':
      return [knob(action.count, 0, (count) => ({ ...action, count }))];
    case 'AbortFlow':
      return [knob(action.id, 0, (id) => ({ ...action, id }))];
    case 'SetMaxRx':
      return [knob(action.bytes, INITIAL_MAX_RX, (bytes) => ({ ...action, bytes }))];
    case 'Drain':
      return [
        ...datagramKnobs(action, (changed) => ({ ...action, ...changed })),
        ...clusterKnobs(action.next, (next) => ({ ...action, next })),
        knob(action.cap, PLAIN_CAP, (cap) => ({ ...action, cap })),
      ];
    case 'CloseAll':
      return [];
    default:
      return guardKnobs(action);
  }
}

function guardKnobs(action: GuardAction): Knob<Action>[] {
  switch (action.kind) {
    case 'LoseBackend':
      return [
        knob(action.backend, 0, (backend) => ({ ...action, backend })),
        knob(Number(action.removed), 0, (value) => ({ ...action, removed: value === 1 })),
        placeKnob(LOSSES, action.fate, (fate) => ({ ...action, fate })),
      ];
    case 'RegainBackend':
    case 'SweepBackend':
      return [knob(action.backend, 0, (backend) => ({ ...action, backend }))];
    case 'KillFlow':
      return [knob(action.back, 0, (back) => ({ ...action, back }))];
    case 'Deny':
      return Array.from({ length: HOST_COUNT }, (_, host) =>
        bitKnob(action.hosts, host, 0, (hosts) => ({ ...action, hosts })),
      );
    case 'Refuse':
      return [
        placeKnob(REFUSALS, action.refusal, (refusal) => ({ ...action, refusal })),
        knob(action.ms, 0, (ms) => ({ ...action, ms })),
      ];
    default:
      return assertNever(action);
  }
}

/**
 * The same with clients 0, 1, 2 in order of appearance: a client of several datagrams cannot change its number in one of
 * them alone.
 */
export function relabelClients(actions: readonly Action[]): Action[] {
  const labels = new Map<number, number>();
  return actions.map((action) => {
    if (!('source' in action)) return action;
    const source = labels.get(action.source) ?? labels.size;
    labels.set(action.source, source);
    return source === action.source ? action : { ...action, source };
  });
}

function knob<T>(value: number, simplest: number, turned: (value: number) => T): Knob<T> {
  return { value, simplest, turned };
}

interface Sent {
  readonly source: number;
  readonly payload: Payload;
}

function datagramKnobs<T>({ source, payload }: Sent, rebuild: (sent: Sent) => T): Knob<T>[] {
  return [
    knob(source, 0, (value) => rebuild({ source: value, payload })),
    ...payloadKnobs(payload, (changed) => rebuild({ source, payload: changed })),
  ];
}

function payloadKnobs<T>(payload: Payload, rebuild: (payload: Payload) => T): Knob<T>[] {
  return [
    knob(payload.length, 1, (length) => rebuild({ ...payload, length })),
    knob(payload.fill, 0, (fill) => rebuild({ ...payload, fill })),
  ];
}

/** A remembered flow becomes flow 0, or else the flow whose id is its place: ids are easier to follow than memories. */
function referenceKnobs<T>(flow: FlowReference, rebuild: (flow: FlowReference) => T): Knob<T>[] {
  if (flow.by === 'id') return [knob(flow.id, 0, (id) => rebuild({ by: 'id', id }))];
  const byId = (value: number): FlowReference =>
    value === 2 ? flow : { by: 'id', id: value * flow.index };
  return [
    knob(2, 0, (value) => rebuild(byId(value))),
    knob(flow.index, 0, (index) => rebuild({ ...flow, index })),
    knob(flow.otherwise, 0, (otherwise) => rebuild({ ...flow, otherwise })),
  ];
}

function viewKnobs<T>(change: ViewChange, rebuild: (change: ViewChange) => T): Knob<T>[] {
  switch (change.kind) {
    case 'Health':
      return [
        knob(change.backend, 0, (backend) => rebuild({ ...change, backend })),
        knob(Number(change.healthy), 1, (value) => rebuild({ ...change, healthy: value === 1 })),
      ];
    case 'List':
      return [
        ...bitKnobs(change.members, 1, (members) => rebuild({ ...change, members })),
        ...bitKnobs(change.backups, 0, (backups) => rebuild({ ...change, backups })),
      ];
    case 'Restore':
      return [];
    default:
      return assertNever(change);
  }
}

/** One knob for each of the four backends. */
function bitKnobs<T>(bits: number, simplest: number, rebuild: (bits: number) => T): Knob<T>[] {
  return [0, 1, 2, 3].map((place) => bitKnob(bits, place, simplest, rebuild));
}

function bitKnob<T>(
  bits: number,
  place: number,
  simplest: number,
  rebuild: (bits: number) => T,
): Knob<T> {
  return knob((bits >> place) & 1, simplest, (value) =>
    rebuild((bits & ~(1 << place)) | (value << place)),
  );
}

/** A value by its place in a list, the plainest first. */
function placeKnob<T, V>(values: readonly V[], value: V, rebuild: (value: V) => T): Knob<T> {
  return knob(values.indexOf(value), 0, (place) => rebuild(values[place] ?? value));
}

function clusterKnobs<T>(drawn: DrawnCluster, rebuild: (drawn: DrawnCluster) => T): Knob<T>[] {
  const flag = (value: boolean, changed: (value: boolean) => Partial<DrawnCluster>): Knob<T> =>
    knob(Number(value), 0, (turned) => rebuild({ ...drawn, ...changed(turned === 1) }));
  const count = (
    value: number,
    simplest: number,
    changed: (value: number) => Partial<DrawnCluster>,
  ): Knob<T> => knob(value, simplest, (turned) => rebuild({ ...drawn, ...changed(turned) }));
  return [
    count(drawn.cluster, 0, (cluster) => ({ cluster })),
    flag(drawn.affinityWithPort, (affinityWithPort) => ({ affinityWithPort })),
    count(drawn.responses, 0, (responses) => ({ responses })),
    count(drawn.requests, 0, (requests) => ({ requests })),
    count(drawn.frontMs, PLAIN_TIMEOUT_MS, (frontMs) => ({ frontMs })),
    count(drawn.backMs, PLAIN_TIMEOUT_MS, (backMs) => ({ backMs })),
    flag(drawn.sendProxyProtocol, (sendProxyProtocol) => ({ sendProxyProtocol })),
    flag(drawn.everyDatagram, (everyDatagram) => ({ everyDatagram })),
    count(drawn.perIp, 0, (perIp) => ({ perIp })),
    count(drawn.perSubnet, 0, (perSubnet) => ({ perSubnet })),
    ...termKnobs(drawn.terms, (terms) => rebuild({ ...drawn, terms })),
  ];
}

/** The first one drops all terms; once they are gone there is nothing left to turn. */
function termKnobs<T>(
  terms: DrawnTerms | undefined,
  rebuild: (terms: DrawnTerms | undefined) => T,
): Knob<T>[] {
  if (terms === undefined) return [];
  const flag = (value: boolean, changed: (value: boolean) => Partial<DrawnTerms>): Knob<T> =>
    knob(Number(value), 0, (turned) => rebuild({ ...terms, ...changed(turned === 1) }));
  const count = (
    value: number,
    simplest: number,
    changed: (value: number) => Partial<DrawnTerms>,
  ): Knob<T> => knob(value, simplest, (turned) => rebuild({ ...terms, ...changed(turned) }));
  return [
    knob(1, 0, (kept) => rebuild(kept === 1 ? terms : undefined)),
    flag(terms.responsesPerRequest, (responsesPerRequest) => ({ responsesPerRequest })),
    flag(terms.requestsLinger, (requestsLinger) => ({ requestsLinger })),
    count(terms.graceMs, 0, (graceMs) => ({ graceMs })),
    flag(terms.forwardEmpty, (forwardEmpty) => ({ forwardEmpty })),
    placeKnob(RATES, terms.rate, (rate) => rebuild({ ...terms, rate })),
    count(terms.burst, 1, (burst) => ({ burst })),
    count(terms.creditFactor, 0, (creditFactor) => ({ creditFactor })),
    count(terms.creditFloor, 0, (creditFloor) => ({ creditFloor })),
  ];
}
