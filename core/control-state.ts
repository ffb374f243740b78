/**
 * The configuration that is wanted, and what each command does to it. Pure: no outputs, no probes, no sockets. What changed is
 * seen by comparing two states (control-directives.ts), so a command that changes nothing can direct nothing.
 */
import { formatAddress, isMapped, unmap, type Address } from './address.ts';
import { assertNever } from './assert.ts';
import { backendIdentity } from './balancing/identity.ts';
import { LISTENERS_MAX } from './brand.ts';
import { refused, type ClusterKnobs, type ConfigCommand, type Refused } from './commands.ts';
import { ACCESS_RULES_MAX } from './cidr.ts';
import {
  LIMITS,
  type AccessLogSettings,
  type ClusterSettings,
  type Config,
  type ListenerConfig,
  type SourceRates,
} from './config.ts';
import { DATAGRAM_BYTES_MAX, type Backend } from './contract.ts';
import { sameValue } from './same-value.ts';
import { seconds, type Duration } from './time.ts';
import { COLUMNS_MAX, TOKENS_MAX } from './token-sketch.ts';

export interface ListenerState {
  readonly config: ListenerConfig;
  readonly active: boolean;
}

/** Listeners by `addressKey`, clusters by name, each in the order of arrival. */
export interface ControlState {
  readonly listeners: ReadonlyMap<string, ListenerState>;
  readonly clusters: ReadonlyMap<string, ClusterSettings>;
  readonly grace: Duration;
  readonly accessLog: AccessLogSettings | undefined;
}

export const EMPTY_STATE: ControlState = {
  listeners: new Map(),
  clusters: new Map(),
  grace: seconds(LIMITS.graceSeconds),
  accessLog: undefined,
};

export type Applied =
  { readonly ok: true; readonly changed: boolean; readonly state: ControlState } | Refused;

/** The state after all of `commands`, or the first refusal and no new state at all. */
export function applyCommands(state: ControlState, commands: readonly ConfigCommand[]): Applied {
  const draft: Draft = {
    listeners: new Map(state.listeners),
    clusters: new Map(state.clusters),
    grace: state.grace,
    accessLog: state.accessLog,
  };
  let changed = false;
  for (const command of commands) {
    const outcome = edit(draft, command);
    if (typeof outcome !== 'boolean') return outcome;
    changed ||= outcome;
  }
  return { ok: true, changed, state: changed ? draft : state };
}

/** The names of addresses: an IPv4-mapped one is the IPv4 one. */
export function addressKey(address: Address): string {
  return formatAddress(unmap(address));
}

/** Of several entries with one id and address the last counts, in the place of the first; as data planes see it. */
export function distinctBackends(backends: readonly Backend[]): readonly Backend[] {
  return [...new Map(backends.map((backend) => [backendIdentity(backend), backend])).values()];
}

interface Draft {
  readonly listeners: Map<string, ListenerState>;
  readonly clusters: Map<string, ClusterSettings>;
  grace: Duration;
  accessLog: AccessLogSettings | undefined;
}

/** Whether anything changed, or why the draft is as it was. */
type Outcome = boolean | Refused;

function edit(draft: Draft, command: ConfigCommand): Outcome {
  switch (command.kind) {
    case 'SetGrace':
    case 'SetAccessLog':
      return editGlobals(draft, command);
    case 'AddListener':
      return addListener(draft, command.config);
    case 'RemoveListener':
      return removeListener(draft, command.address);
    case 'AddCluster':
      return addCluster(draft, command.settings);
    case 'RemoveCluster':
      return draft.clusters.delete(command.cluster) || noCluster(command.cluster);
    case 'AddBackend':
    case 'RemoveBackend':
    case 'SetWeight':
    case 'SetBackends':
      return editBackends(draft, command);
    default:
      return editListener(draft, command);
  }
}

function editGlobals(
  draft: Draft,
  command: Extract<ConfigCommand, { kind: 'SetGrace' | 'SetAccessLog' }>,
): Outcome {
  if (command.kind === 'SetAccessLog') return setAccessLog(draft, command.settings);
  const changed = draft.grace !== command.grace;
  draft.grace = command.grace;
  return changed;
}

function removeListener({ listeners }: Draft, address: Address): Outcome {
  return listeners.delete(addressKey(address)) || noListener(address);
}

function setAccessLog(draft: Draft, settings: AccessLogSettings | undefined): Outcome {
  if (sameValue(settings, draft.accessLog)) return false;
  const counts = settings === undefined ? [] : [settings.oneIn, settings.linesPerSecond];
  if (!counts.every((count) => count >= 1 && isNatural(count, LIMITS.accessLogCount))) {
    const message = `one_in and lines_per_second are whole numbers from 1 to ${LIMITS.accessLogCount}`;
    return refused('Invalid', message);
  }
  draft.accessLog = settings;
  return true;
}

function addListener(draft: Draft, config: ListenerConfig): Outcome {
  const key = addressKey(config.address);
  if (draft.listeners.has(key)) return refused('Exists', `${key} has a listener already`);
  if (draft.listeners.size === LISTENERS_MAX) {
    return refused('Invalid', `a process has at most ${LISTENERS_MAX} listeners`);
  }
  const invalid = whatIsWrongWith(config);
  if (invalid !== undefined) return invalid;
  draft.listeners.set(key, {
    config: { ...config, address: unmap(config.address) },
    active: false,
  });
  return true;
}

type ListenerEdit = Extract<
  ConfigCommand,
  {
    kind:
      | 'UpdateListener'
      | 'ActivateListener'
      | 'DeactivateListener'
      | 'AddFrontend'
      | 'RemoveFrontend';
  }
>;

function editListener(draft: Draft, command: ListenerEdit): Outcome {
  const key = addressKey(command.address);
  const known = draft.listeners.get(key);
  if (known === undefined) return noListener(command.address);
  const wanted = editedListener(known, command);
  if ('ok' in wanted) return wanted;
  if (sameValue(wanted, known)) return false;
  const invalid = whatIsWrongWith(wanted.config);
  if (invalid !== undefined) return invalid;
  draft.listeners.set(key, wanted);
  return true;
}

function editedListener(known: ListenerState, command: ListenerEdit): ListenerState | Refused {
  const { config } = known;
  switch (command.kind) {
    case 'UpdateListener': {
      const { address, cluster } = config;
      return { ...known, config: { ...config, ...command.patch, address, cluster } };
    }
    case 'ActivateListener':
      return { config, active: true };
    case 'DeactivateListener':
      return { config, active: false };
    case 'AddFrontend':
      return { ...known, config: { ...config, cluster: command.cluster } };
    case 'RemoveFrontend': {
      const { address, cluster } = command;
      if (config.cluster === cluster)
        return { ...known, config: { ...config, cluster: undefined } };
      return refused('NotFound', `${addressKey(address)} does not lead to cluster ${cluster}`);
    }
    default:
      return assertNever(command);
  }
}

function addCluster(draft: Draft, knobs: ClusterKnobs): Outcome {
  if (knobs.cluster === '') return refused('Invalid', 'a cluster has a name');
  const invalid = whatIsWrongWithRates(knobs.rates);
  if (invalid !== undefined) return invalid;
  const known = draft.clusters.get(knobs.cluster);
  const wanted: ClusterSettings = { ...knobs, backends: known?.backends ?? [] };
  if (sameValue(wanted, known)) return false;
  draft.clusters.set(knobs.cluster, wanted);
  return true;
}

type BackendEdit = Extract<
  ConfigCommand,
  { kind: 'AddBackend' | 'RemoveBackend' | 'SetWeight' | 'SetBackends' }
>;

function editBackends(draft: Draft, command: BackendEdit): Outcome {
  const known = draft.clusters.get(command.cluster);
  if (known === undefined) return noCluster(command.cluster);
  const backends = editedBackends(known.backends, command);
  if ('ok' in backends) return backends;
  if (sameValue(backends, known.backends)) return false;
  draft.clusters.set(command.cluster, { ...known, backends });
  return true;
}

function editedBackends(
  known: readonly Backend[],
  command: BackendEdit,
): readonly Backend[] | Refused {
  switch (command.kind) {
    case 'AddBackend':
      return distinctOrInvalid([...known, command.backend]);
    case 'SetBackends':
      return distinctOrInvalid(command.backends);
    case 'RemoveBackend': {
      const key = addressKey(command.address);
      const left = known.filter(({ address }) => addressKey(address) !== key);
      return left.length < known.length ? left : noBackend(command);
    }
    case 'SetWeight': {
      const { weight } = command;
      const key = addressKey(command.address);
      const isMeant = ({ address }: Backend): boolean => addressKey(address) === key;
      if (!known.some(isMeant)) return noBackend(command);
      return distinctOrInvalid(known.map((one) => (isMeant(one) ? { ...one, weight } : one)));
    }
    default:
      return assertNever(command);
  }
}

function distinctOrInvalid(backends: readonly Backend[]): readonly Backend[] | Refused {
  const wrong = backends.find(({ weight }) => !isNatural(weight, LIMITS.backendWeightMax));
  if (wrong === undefined) return distinctBackends(backends.map(unmapped));
  return refused('Invalid', `a weight is a whole number from 0 to ${LIMITS.backendWeightMax}`);
}

function unmapped(backend: Backend): Backend {
  const { address } = backend;
  return isMapped(address) ? { ...backend, address: unmap(address) } : backend;
}

/** What a data plane would trip over. A file's values were checked before, with all there is to say about them. */
function whatIsWrongWith({ maxFlows, maxRxDatagramSize }: ListenerConfig): Refused | undefined {
  if (!isNatural(maxFlows, LIMITS.flowsCeiling)) {
    return refused('Invalid', `max_flows is a whole number up to ${LIMITS.flowsCeiling}`);
  }
  if (!isNatural(maxRxDatagramSize, DATAGRAM_BYTES_MAX)) {
    return refused('Invalid', `max_rx_datagram_size is at most ${DATAGRAM_BYTES_MAX} bytes`);
  }
  return undefined;
}

function whatIsWrongWithRates(rates: SourceRates): Refused | undefined {
  const { newFlowsPerSecond, newFlowsBurst, datagramsPerSecond, datagramsBurst } = rates;
  const counts = [newFlowsPerSecond, newFlowsBurst, datagramsPerSecond, datagramsBurst];
  if (!counts.every((count) => isNatural(count, TOKENS_MAX))) {
    return refused('Invalid', `rates and bursts are whole numbers up to ${TOKENS_MAX}`);
  }
  const { columns, allow, deny } = rates;
  if (columns < 1 || !isNatural(columns, COLUMNS_MAX) || (columns & (columns - 1)) !== 0) {
    return refused('Invalid', `a sketch has a power of two of columns, at most ${COLUMNS_MAX}`);
  }
  if (allow.length + deny.length <= ACCESS_RULES_MAX) return undefined;
  return refused('Invalid', `access lists have at most ${ACCESS_RULES_MAX} blocks`);
}

function isNatural(value: number, max: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= max;
}

function noListener(address: Address): Refused {
  return refused('NotFound', `there is no listener at ${addressKey(address)}`);
}

function noCluster(cluster: string): Refused {
  return refused('NotFound', `there is no cluster ${cluster}`);
}

function noBackend({ cluster, address }: { cluster: string; address: Address }): Refused {
  return refused('NotFound', `cluster ${cluster} has no backend at ${addressKey(address)}`);
}

/** The configuration that a state is, as far as it serves: inactive listeners are left out. */
export function servedConfig({ listeners, clusters, grace, accessLog }: ControlState): Config {
  const active = [...listeners.values()].filter((listener) => listener.active);
  return {
    listeners: active.map(({ config }) => config),
    clusters: [...clusters.values()],
    grace,
    accessLog,
  };
}
