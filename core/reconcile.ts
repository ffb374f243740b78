/**
 * From one configuration to another by commands: what stays the same is not mentioned, so its sockets, flows and health are
 * not touched. Applied to a state that equals the old configuration they give one that equals the new (spec §10.1).
 */
import { backendIdentity } from './balancing/identity.ts';
import type { ClusterKnobs, ConfigCommand, ListenerPatch } from './commands.ts';
import type { ClusterSettings, Config, ListenerConfig } from './config.ts';
import type { Backend } from './contract.ts';
import { addressKey, distinctBackends, servedConfig, type ControlState } from './control-state.ts';
import { sameValue } from './same-value.ts';

/** More single changes than this are told as a whole list. */
const BACKEND_COMMANDS_MAX = 64;

/**
 * Clusters come before the listeners that lead there, and go after them. A listener that is new is active at the end. Two
 * listeners of `wanted` at one address make a command that is refused.
 */
export function reconcile(before: Config, wanted: Config): ConfigCommand[] {
  const oldClusters = new Map(before.clusters.map((one) => [one.cluster, one]));
  const keptClusters = new Set(wanted.clusters.map(({ cluster }) => cluster));
  // Each is met once: a second listener at its address is a new one.
  const oldListeners = new Map(before.listeners.map((one) => [addressKey(one.address), one]));
  const keptListeners = new Set(wanted.listeners.map(({ address }) => addressKey(address)));
  const lostListeners = before.listeners.filter(({ address }) => {
    return !keptListeners.has(addressKey(address));
  });
  const lostClusters = before.clusters.filter(({ cluster }) => !keptClusters.has(cluster));
  return [
    ...(before.grace === wanted.grace ? [] : [{ kind: 'SetGrace', grace: wanted.grace } as const]),
    ...(sameValue(before.accessLog, wanted.accessLog)
      ? []
      : [{ kind: 'SetAccessLog', settings: wanted.accessLog } as const]),
    ...lostListeners.map(({ address }) => ({ kind: 'RemoveListener', address }) as const),
    ...wanted.clusters.flatMap((one) => clusterCommands(oldClusters.get(one.cluster), one)),
    ...wanted.listeners.flatMap((one) => {
      const old = oldListeners.get(addressKey(one.address));
      oldListeners.delete(addressKey(one.address));
      return listenerCommands(old, one);
    }),
    ...lostClusters.map(({ cluster }) => ({ kind: 'RemoveCluster', cluster }) as const),
  ];
}

/**
 * The same from a running state. A listener that somebody deactivated, or that did not open, is there again when the
 * configuration has it: it has no socket and no flow to lose.
 */
export function reconcileState(state: ControlState, wanted: Config): ConfigCommand[] {
  const idle = [...state.listeners.values()].filter(({ active }) => !active);
  return [
    ...idle.map(({ config: { address } }) => ({ kind: 'RemoveListener', address }) as const),
    ...reconcile(servedConfig(state), wanted),
  ];
}

function clusterCommands(
  old: ClusterSettings | undefined,
  wanted: ClusterSettings,
): ConfigCommand[] {
  const settings = knobsOf(wanted);
  const isNew = old === undefined || !sameValue(knobsOf(old), settings);
  return [
    ...(isNew ? [{ kind: 'AddCluster', settings } as const] : []),
    ...backendCommands(wanted.cluster, old?.backends ?? [], distinctBackends(wanted.backends)),
  ];
}

/** The settings without the backends. */
export function knobsOf(settings: ClusterSettings): ClusterKnobs {
  const { backends: _, ...knobs } = settings;
  return knobs;
}

/** One by one where that ends at the wanted order, else the list as a whole. */
function backendCommands(
  cluster: string,
  old: readonly Backend[],
  wanted: readonly Backend[],
): ConfigCommand[] {
  if (sameValue(old, wanted)) return [];
  const known = new Map(old.map((backend) => [backendIdentity(backend), backend]));
  const kept = new Set(wanted.map(({ address }) => addressKey(address)));
  const lost = new Map(old.map(({ address }) => [addressKey(address), address]));
  for (const key of kept) lost.delete(key);
  const changed = wanted.filter((one) => !sameValue(known.get(backendIdentity(one)), one));
  const after = distinctBackends([
    ...old.filter(({ address }) => kept.has(addressKey(address))),
    ...changed,
  ]);
  const whole: ConfigCommand = { kind: 'SetBackends', cluster, backends: wanted };
  if (old.length === 0 || !sameValue(after, wanted)) return [whole];
  const single: ConfigCommand[] = [
    ...[...lost.values()].map((address) => ({ kind: 'RemoveBackend', cluster, address }) as const),
    ...changed.map((backend) => ({ kind: 'AddBackend', cluster, backend }) as const),
  ];
  return single.length > BACKEND_COMMANDS_MAX ? [whole] : single;
}

function listenerCommands(
  old: ListenerConfig | undefined,
  wanted: ListenerConfig,
): ConfigCommand[] {
  const { address, cluster } = wanted;
  if (old === undefined) {
    return [
      { kind: 'AddListener', config: wanted },
      { kind: 'ActivateListener', address },
    ];
  }
  const patch = patchBetween(old, wanted);
  return [
    ...(patch === undefined ? [] : [{ kind: 'UpdateListener', address, patch } as const]),
    ...(cluster === old.cluster ? [] : [frontendCommand(old, wanted)]),
  ];
}

/** Every field but the two that have commands of their own, also those that `wanted` leaves out. */
function patchBetween(old: ListenerConfig, wanted: ListenerConfig): ListenerPatch | undefined {
  const { address: _, cluster: __, ...before } = old;
  const { address: ___, cluster: ____, ...fields } = wanted;
  if (sameValue(before, fields)) return undefined;
  return { ...Object.fromEntries(Object.keys(before).map((key) => [key, undefined])), ...fields };
}

function frontendCommand(old: ListenerConfig, { address, cluster }: ListenerConfig): ConfigCommand {
  if (cluster !== undefined) return { kind: 'AddFrontend', cluster, address };
  return { kind: 'RemoveFrontend', cluster: old.cluster ?? '', address };
}
