/**
 * What data planes are told of a change: the difference of two states, and nothing else. Listeners that go are closed first,
 * because their addresses and numbers may be wanted again; clusters come before the listeners that lead there, and go after.
 */
import { assert } from './assert.ts';
import { listenerId, LISTENERS_MAX, type ListenerId } from './brand.ts';
import type { ClusterSettings, ListenerConfig } from './config.ts';
import type { ControlState, ListenerState } from './control-state.ts';
import { accessLogDirectives, type Directive } from './directives.ts';
import { sameValue } from './same-value.ts';

/** The numbers of active listeners. Handed out in turn, so that one that was just free is not another's at once. */
export class ListenerNumbers {
  private readonly byKey = new Map<string, ListenerId>();
  private readonly used = new Set<ListenerId>();
  private next = 0;

  /** Of the listener at this address, while it is active. */
  of(key: string): ListenerId | undefined {
    return this.byKey.get(key);
  }

  take(key: string): ListenerId {
    assert(this.used.size < LISTENERS_MAX, 'there is a bound on listeners');
    let id = listenerId(this.next);
    while (this.used.has(id)) id = listenerId((id + 1) % LISTENERS_MAX);
    this.next = (id + 1) % LISTENERS_MAX;
    this.used.add(id);
    this.byKey.set(key, id);
    return id;
  }

  release(key: string): void {
    const id = this.byKey.get(key);
    if (id === undefined) return;
    this.used.delete(id);
    this.byKey.delete(key);
  }
}

/** From `old` to `wanted`, in the order in which to tell it. Takes and releases the numbers that it names. */
export function directivesBetween(
  old: ControlState,
  wanted: ControlState,
  numbers: ListenerNumbers,
): Directive[] {
  const removed: Directive[] = [];
  const updated: Directive[] = [];
  const added: [string, ListenerConfig][] = [];
  for (const [key, before] of old.listeners) {
    const listener = numbers.of(key);
    if (listener === undefined || survives(before, wanted.listeners.get(key))) continue;
    numbers.release(key);
    removed.push({ kind: 'RemoveListener', listener });
  }
  for (const [key, { active, config }] of wanted.listeners) {
    if (!active) continue;
    const listener = numbers.of(key);
    if (listener === undefined) added.push([key, config]);
    else if (!sameValue(config, old.listeners.get(key)?.config)) {
      updated.push({ kind: 'UpdateListener', listener, config });
    }
  }
  return [
    ...accessLogDirectives(old.accessLog, wanted.accessLog),
    ...removed,
    ...changedClusters(old, wanted).map((settings): Directive => ({
      kind: 'SetCluster',
      settings,
    })),
    ...updated,
    ...added.map(([key, config]): Directive => {
      return { kind: 'AddListener', listener: numbers.take(key), config };
    }),
    ...removedClusters(old, wanted).map((cluster): Directive => ({
      kind: 'RemoveCluster',
      cluster,
    })),
  ];
}

/** Those that are new or different. States share what did not change. */
export function changedClusters(old: ControlState, wanted: ControlState): ClusterSettings[] {
  return [...wanted.clusters.values()].filter((one) => one !== old.clusters.get(one.cluster));
}

export function removedClusters(old: ControlState, wanted: ControlState): string[] {
  return [...old.clusters.keys()].filter((name) => !wanted.clusters.has(name));
}

/** Whether a listener keeps its socket: what was asked of the kernel for it is still what is wanted. */
function survives(before: ListenerState, wanted: ListenerState | undefined): boolean {
  return wanted?.active === true && sameValue(socketOf(before.config), socketOf(wanted.config));
}

function socketOf({ ipv6Only, receiveBuffer, sendBuffer }: ListenerConfig): unknown {
  return { ipv6Only, receiveBuffer, sendBuffer };
}
