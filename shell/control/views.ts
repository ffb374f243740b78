/**
 * What the core answers, as JSON for programs and people: addresses as text, times with their unit in the name, tables flat.
 * Keys are those of the configuration file where it has them. A reader must expect keys that it does not know.
 */
import {
  assertNever,
  formatAddress,
  type Address,
  type Backend,
  type ConfigCommand,
  type ControlEvent,
  type Duration,
  type Explanation,
  type FlowLine,
  type Instant,
  type Preview,
  type Reason,
  type PlaneFigures,
  type Status,
  type WhyAnswer,
} from '../../core/index.ts';
import type { Problem } from '../config/problem.ts';
import type { ProxyEvent } from '../event-hub.ts';
import type { ReloadRecord } from '../reloader.ts';

/** A JSON object; keys without a value are left out. */
export type View = Readonly<Record<string, unknown>>;

/** What the shell knows of a proxy beside its status. */
export interface Facts {
  flowsOfListener(listener: Status['listeners'][number]['listener']): number | undefined;
  flowsAt(cluster: string, backend: Address): number;
}

/** One of several that share the listeners. */
export function workerView({ flows, totals }: PlaneFigures): View {
  return { flows, received: totals.clientReceived + totals.backendReceived };
}

export function listenerViews({ listeners }: Status, facts: Facts): View[] {
  return listeners.map(({ config, active, listener, failure }) => ({
    address: formatAddress(config.address),
    active,
    cluster: config.cluster,
    flows: facts.flowsOfListener(listener),
    max_flows: config.maxFlows,
    max_rx_datagram_size: config.maxRxDatagramSize,
    front_timeout: config.frontTimeout && toSeconds(config.frontTimeout),
    back_timeout: config.backTimeout && toSeconds(config.backTimeout),
    failure,
  }));
}

export function clusterViews({ clusters }: Status): View[] {
  return clusters.map(({ settings, backends }) => ({
    cluster: settings.cluster,
    load_balancing: settings.loadBalancing,
    backends: backends.length,
    available: backends.filter(
      ({ health, ejected, state }) => health === 'up' && !ejected && state === 'active',
    ).length,
  }));
}

export function backendViews({ clusters }: Status, facts: Facts): View[] {
  return clusters.flatMap(({ settings: { cluster }, backends }) =>
    backends.map(({ backend, health, ejected, state }) => ({
      cluster,
      ...backendView(backend),
      state,
      health,
      ejected,
      flows: facts.flowsAt(cluster, backend.address),
    })),
  );
}

/** Of a file that is wrong in each of its lines; whoever asked for the reload is told of all. */
const ERRORS_TOLD_MAX = 20;
const ERROR_CHARACTERS_MAX = 500;

/** When and how the file was last read; of problems only errors, and of many the first, so that it stays small. */
export function reloadView({ at, cause, file, outcome }: ReloadRecord): View {
  const record = { at: new Date(at).toISOString(), cause, file, ok: outcome.ok };
  if (!outcome.ok) {
    const errors = outcome.problems.filter(({ severity }) => severity === 'error');
    const untold = errors.length - ERRORS_TOLD_MAX;
    return {
      ...record,
      error: outcome.error.message,
      problems: errors.slice(0, ERRORS_TOLD_MAX).map(shortened),
      ...(untold > 0 && { problems_untold: untold }),
    };
  }
  const { commands, failures } = outcome;
  const failed = failures.map(({ address, errno }) => `${formatAddress(address)}: ${errno}`);
  return { ...record, commands, ...(failed.length > 0 && { not_listening: failed }) };
}

function shortened({ path, problem, fix, ...rest }: Problem): Problem {
  const short = (text: string): string => text.slice(0, ERROR_CHARACTERS_MAX);
  return { ...rest, path: short(path), problem: short(problem), fix: fix && short(fix) };
}

export function flowView(line: FlowLine): View {
  return {
    flow: line.name,
    client: formatAddress(line.client),
    listener: formatAddress(line.listener),
    local: line.local && formatAddress(line.local),
    cluster: line.cluster,
    backend: formatAddress(line.backend.address),
    backend_id: line.backend.id,
    phase: line.phase,
    requests: line.requests,
    responses: line.responses,
    age_ms: toMilliseconds(line.age),
    idle_in_ms: toMilliseconds(line.idleIn),
  };
}

export function whyView(client: Address, listener: Address, answer: WhyAnswer): View {
  const { cluster, policy, key, selection, pinned, dropped } = answer;
  const chosen = selection.choice?.chosen;
  return {
    client: formatAddress(client),
    listener: formatAddress(listener),
    cluster,
    load_balancing: policy,
    key,
    flow: pinned && flowView(pinned.flow),
    fate: pinned?.fate,
    dropped,
    tier: selection.tier,
    chosen: dropped === undefined ? chosen && formatAddress(chosen.address) : undefined,
    reason: selection.choice && reasonView(selection.choice.reason),
    backends: explainedViews(selection),
  };
}

/** One row for each backend, with its score or its slots where the policy has such. */
function explainedViews({ backends, candidates, choice }: Explanation): View[] {
  const reason = choice?.reason;
  return backends.map(({ backend, healthy, state, flows, load }) => {
    const place = candidates.indexOf(backend);
    return {
      ...backendView(backend),
      candidate: place >= 0,
      healthy,
      state,
      flows,
      load,
      score: reason?.kind === 'Score' ? reason.scores[place] : undefined,
      slots: reason?.kind === 'Slot' ? reason.held[place] : undefined,
    };
  });
}

function reasonView(reason: Reason): View {
  switch (reason.kind) {
    case 'Turn':
      return { kind: 'turn', place: reason.place };
    case 'Draw':
      return { kind: 'draw', drawn: reason.drawn.map(({ address }) => formatAddress(address)) };
    case 'Load':
      return { kind: 'lightest' };
    case 'Score':
      return { kind: 'highest score' };
    case 'Slot':
      return { kind: 'slot', slot: reason.slot, size: reason.size };
    default:
      return assertNever(reason);
  }
}

/** One row for each listener of either configuration. `moved_percent` is of new flows, by their keys. */
export function previewViews({ keys, listeners }: Preview): View[] {
  return listeners.map(({ listener, before, after, moved, flows }) => ({
    listener: formatAddress(listener),
    before,
    after,
    moved_percent: moved && Math.round((moved.length / keys) * 1_000) / 10,
    flows_keep: flows.keep,
    flows_rebind: flows.rebind,
    flows_close: flows.close,
  }));
}

/** What a command is about, for a list of them. */
export function commandView(command: ConfigCommand): View {
  switch (command.kind) {
    case 'AddListener':
      return { kind: command.kind, address: formatAddress(command.config.address) };
    case 'UpdateListener':
      return {
        kind: command.kind,
        address: formatAddress(command.address),
        fields: Object.keys(command.patch).join(' '),
      };
    case 'AddCluster':
      return { kind: command.kind, cluster: command.settings.cluster };
    case 'AddBackend':
      return { kind: command.kind, cluster: command.cluster, ...backendView(command.backend) };
    case 'SetBackends':
      return { kind: command.kind, cluster: command.cluster, backends: command.backends.length };
    case 'SetGrace':
      return { kind: command.kind, grace: toSeconds(command.grace) };
    case 'SetAccessLog': {
      const { oneIn, linesPerSecond } = command.settings ?? {};
      return { kind: command.kind, one_in: oneIn, lines_per_second: linesPerSecond };
    }
    case 'RemoveCluster':
      return command;
    default: {
      const { address, ...rest } = command;
      return { ...rest, address: formatAddress(address) };
    }
  }
}

/** `now`: of the same clock as the event's own times. */
export function eventView(event: ProxyEvent, now: Instant): View {
  switch (event.kind) {
    case 'Reload':
      return { kind: event.kind, ...reloadView(event.reload) };
    case 'ListenerOpened':
      return { kind: event.kind, address: formatAddress(event.address) };
    case 'ListenerFailed':
      return { kind: event.kind, address: formatAddress(event.address), errno: event.errno };
    case 'ListenerClosed': {
      const { kind, address, flowsClosed } = event;
      return { kind, address: formatAddress(address), flows_closed: flowsClosed };
    }
    default:
      return controlEventView(event, now);
  }
}

function controlEventView(event: ControlEvent, now: Instant): View {
  switch (event.kind) {
    case 'HealthChanged': {
      const { kind, cluster, address, from, to, evidence } = event;
      return { kind, cluster, address: formatAddress(address), from, to, evidence };
    }
    case 'BackendEjected': {
      const { kind, cluster, address, until: end, evidence } = event;
      const ends = Math.max(0, Math.round((end - now) / 1_000));
      return { kind, cluster, address: formatAddress(address), for_ms: ends, evidence };
    }
    case 'BackendReturned': {
      const { kind, cluster, address, reason } = event;
      return { kind, cluster, address: formatAddress(address), reason };
    }
    case 'BackendDraining':
    case 'BackendDrained': {
      const { address, flowsLeft, ...rest } = event;
      return { ...rest, address: formatAddress(address), flows_left: flowsLeft };
    }
    case 'NoAvailableBackends': {
      const { failOpen, ...rest } = event;
      return { ...rest, fail_open: failOpen };
    }
    case 'Availability':
    case 'ClusterRecovered':
      return event;
    default:
      return assertNever(event);
  }
}

function backendView({ id, address, weight, backup }: Backend): View {
  return { address: formatAddress(address), backend_id: id, weight, backup };
}

function toSeconds(duration: Duration): number {
  return duration / 1_000_000;
}

function toMilliseconds(duration: Duration): number {
  return Math.round(duration / 1_000);
}
