/**
 * Reads a replay file without trusting it: every problem is named by its path, nothing throws, and what comes out is within
 * bounds that no run can hurt itself with (a cap that allocates gigabytes, a clock beyond 2^53).
 */
import { assertNever } from '../../core/assert.ts';
import { LOAD_BALANCINGS } from '../../core/config.ts';
import { DATAGRAM_BYTES_MAX } from '../../core/contract.ts';
import {
  HEADER_FILL,
  ACTION_KINDS,
  LOSSES,
  RATES,
  REFUSALS,
  type Action,
  type ActionKind,
  type DrawnCluster,
  type DrawnTerms,
  type FlowReference,
  type GuardActionKind,
  type InitialState,
  type Payload,
  type ViewChange,
} from './actions.ts';
import { Fields, type Problem } from './fields.ts';
import { BACKEND_ADDRESSES, CLUSTER_COUNT, HOST_COUNT, SOURCES } from './pools.ts';
import { OUTCOMES, REPLAY_SCHEMA, type Replay } from './replay.ts';

export type ReplayDecoding =
  | { readonly ok: true; readonly replay: Replay }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** One day, in milliseconds: with the bound on actions, time stays exact. */
const MS_MAX = 86_400_000;
const ACTIONS_MAX = 100_000;
/** Flows at most, and the highest id worth trying. */
const FLOWS_MAX = 65_535;
const BYTES_MAX = 65_535;
const COUNT_MAX = 65_535;
const WORD_MAX = 0xffff_ffff;

export function decodeReplay(text: string): ReplayDecoding {
  const problems: Problem[] = [];
  const parsed = parse(text, problems);
  if (problems.length > 0) return { ok: false, problems };
  const fields = new Fields(parsed, '', problems);
  fields.integer('schema', REPLAY_SCHEMA, REPLAY_SCHEMA);
  const replay: Replay = {
    name: fields.text('name', /^[a-z0-9]+(?:-[a-z0-9]+)*$/, 'a name in kebab-case'),
    shows: fields.text('shows', /\S/, 'a text'),
    property: fields.text('property', /\S/, 'the name of a property'),
    outcome: fields.word('outcome', OUTCOMES, 'fixed'),
    digest: fields.text('digest', /^[0-9a-f]{16}$/, '16 hexadecimal digits'),
    initial: initialState(fields.object('initial')),
    actions: fields.objects('actions', ACTIONS_MAX).map(action),
  };
  fields.end();
  return problems.length === 0 ? { ok: true, replay } : { ok: false, problems };
}

function parse(text: string, problems: Problem[]): unknown {
  try {
    return JSON.parse(text);
  } catch {
    problems.push({ path: '$', problem: 'not JSON' });
    return undefined;
  }
}

function initialState(fields: Fields): InitialState {
  const hashSeed = fields.object('hashSeed');
  const state: InitialState = {
    config: cluster(fields.object('config')),
    cap: fields.integer('cap', 0, FLOWS_MAX),
    hashSeed: {
      high: hashSeed.integer('high', 0, WORD_MAX),
      low: hashSeed.integer('low', 0, WORD_MAX),
    },
    policy: fields.word('policy', LOAD_BALANCINGS, 'ROUND_ROBIN'),
    byRequests: fields.boolean('byRequests'),
    weights: fields.integers('weights', BACKEND_ADDRESSES.length, 0, 255),
  };
  hashSeed.end();
  fields.end();
  return state;
}

function action(fields: Fields): Action {
  const kind = fields.word('kind', ACTION_KINDS, 'CloseAll');
  const read = actionOf(kind, fields);
  fields.end();
  return read;
}

function actionOf(kind: ActionKind, fields: Fields): Action {
  switch (kind) {
    case 'ClientDatagram':
      return { kind, source: source(fields), payload: payload(fields) };
    case 'BackendView':
      return { kind, change: viewChange(fields.object('change')) };
    case 'BackendDatagram':
      return { kind, flow: flowReference(fields.object('flow')), payload: payload(fields) };
    case 'AdvanceClock':
      return { kind, ms: fields.integer('ms', 0, MS_MAX) };
    case 'EarlyTimer':
      return { kind, earlyMs: fields.integer('earlyMs', 0, MS_MAX) };
    case 'ReconfigCluster':
      return { kind, config: cluster(fields.object('config')) };
    case 'SetMaxFlows':
      return { kind, count: fields.integer('count', 0, FLOWS_MAX) };
    case 'AbortFlow':
      return { kind, id: fields.integer('id', 0, FLOWS_MAX) };
    case 'SetMaxRx':
      return { kind, bytes: fields.integer('bytes', 0, BYTES_MAX) };
    case 'Drain':
      return {
        kind,
        source: source(fields),
        payload: payload(fields),
        next: cluster(fields.object('next')),
        cap: fields.integer('cap', 0, FLOWS_MAX),
      };
    case 'CloseAll':
      return { kind };
    default:
      return guardActionOf(kind, fields);
  }
}

/** The actions that the seeds' table does not know. */
function guardActionOf(kind: GuardActionKind, fields: Fields): Action {
  switch (kind) {
    case 'LoseBackend':
      return {
        kind,
        backend: backend(fields),
        removed: fields.boolean('removed'),
        fate: fields.word('fate', LOSSES, 'pin'),
      };
    case 'RegainBackend':
    case 'SweepBackend':
      return { kind, backend: backend(fields) };
    case 'KillFlow':
      return { kind, back: fields.integer('back', 0, FLOWS_MAX) };
    case 'Deny':
      return { kind, hosts: fields.integer('hosts', 0, 2 ** HOST_COUNT - 1) };
    case 'Refuse':
      return {
        kind,
        refusal: fields.word('refusal', REFUSALS, 'Loop'),
        ms: fields.integer('ms', 0, MS_MAX),
      };
    default:
      return assertNever(kind);
  }
}

function backend(fields: Fields): number {
  return fields.integer('backend', 0, BACKEND_ADDRESSES.length - 1);
}

function source(fields: Fields): number {
  return fields.integer('source', 0, SOURCES.length - 1);
}

function payload(fields: Fields): Payload {
  const inner = fields.object('payload');
  const read = {
    length: inner.integer('length', 0, DATAGRAM_BYTES_MAX),
    fill: inner.integer('fill', 0, HEADER_FILL),
  };
  inner.end();
  return read;
}

function flowReference(fields: Fields): FlowReference {
  const by = fields.word('by', ['id', 'memory'], 'id');
  const read: FlowReference =
    by === 'id'
      ? { by, id: fields.integer('id', 0, FLOWS_MAX) }
      : {
          by,
          index: fields.integer('index', 0, COUNT_MAX),
          otherwise: fields.integer('otherwise', 0, FLOWS_MAX),
        };
  fields.end();
  return read;
}

function viewChange(fields: Fields): ViewChange {
  const kind = fields.word('kind', ['List', 'Health', 'Restore'], 'Restore');
  const read = viewChangeOf(kind, fields);
  fields.end();
  return read;
}

function viewChangeOf(kind: ViewChange['kind'], fields: Fields): ViewChange {
  const everyBit = 2 ** BACKEND_ADDRESSES.length - 1;
  switch (kind) {
    case 'List':
      return {
        kind,
        members: fields.integer('members', 0, everyBit),
        backups: fields.integer('backups', 0, everyBit),
      };
    case 'Health':
      return {
        kind,
        backend: backend(fields),
        healthy: fields.boolean('healthy'),
      };
    case 'Restore':
      return { kind };
    default:
      return assertNever(kind);
  }
}

function cluster(fields: Fields): DrawnCluster {
  const read: DrawnCluster = {
    cluster: fields.integer('cluster', -1, CLUSTER_COUNT - 1),
    affinityWithPort: fields.boolean('affinityWithPort'),
    responses: fields.integer('responses', 0, COUNT_MAX),
    requests: fields.integer('requests', 0, COUNT_MAX),
    frontMs: fields.integer('frontMs', 0, MS_MAX),
    backMs: fields.integer('backMs', 0, MS_MAX),
    sendProxyProtocol: fields.boolean('sendProxyProtocol'),
    everyDatagram: fields.boolean('everyDatagram'),
    perIp: fields.integer('perIp', 0, COUNT_MAX),
    perSubnet: fields.integer('perSubnet', 0, COUNT_MAX),
  };
  const inner = fields.optionalObject('terms');
  fields.end();
  return inner === undefined ? read : { ...read, terms: terms(inner) };
}

function terms(fields: Fields): DrawnTerms {
  const read: DrawnTerms = {
    responsesPerRequest: fields.boolean('responsesPerRequest'),
    requestsLinger: fields.boolean('requestsLinger'),
    graceMs: fields.integer('graceMs', 0, MS_MAX),
    forwardEmpty: fields.boolean('forwardEmpty'),
    rate: fields.oneOf('rate', RATES),
    burst: fields.integer('burst', 1, COUNT_MAX),
    creditFactor: fields.integer('creditFactor', 0, COUNT_MAX),
    creditFloor: fields.integer('creditFloor', 0, COUNT_MAX),
  };
  fields.end();
  return read;
}
