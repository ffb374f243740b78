/** Takes those out of a world whom a script does without, and renumbers the others. */
import { sameAddress, type Address } from '../../core/address.ts';
import type { Command } from '../../core/commands.ts';
import type { Config } from '../../core/config.ts';
import type { HostName, Script, ScriptEntry, WorldAction } from './actions.ts';
import type { WorldSpec } from './spec.ts';

export interface Staged {
  readonly spec: WorldSpec;
  readonly script: Script;
}

/** Worlds with fewer in them than this one: without idle clients, without all but one proxy, without one of the backends. */
export function* smallerWorlds(given: () => Staged): Generator<Staged> {
  const [first] = given().spec.proxies;
  if (given().spec.proxies.length > 1 && first !== undefined)
    yield { ...given(), spec: { ...given().spec, proxies: [first] } };
  yield withoutIdleClients(given());
  yield withoutIdleHosts(given());
  for (let number = given().spec.backends.length - 1; number >= 0; number -= 1) {
    if (given().spec.backends.length > 1) yield withoutBackend(given(), number);
  }
}

function withoutIdleClients({ spec, script }: Staged): Staged {
  const count = spec.clients.length;
  const used = new Set(
    script.flatMap(({ action }) => ('client' in action ? [action.client % count] : [])),
  );
  const kept = keptOf(count, used);
  const clients = spec.clients.filter((_, number) => kept.has(number));
  const moved = mapped(script, (action) =>
    'client' in action ? { ...action, client: kept.get(action.client % count) ?? 0 } : action,
  );
  return { spec: { ...spec, clients }, script: moved };
}

function withoutIdleHosts({ spec, script }: Staged): Staged {
  const count = spec.clientHosts.length;
  const used = new Set(spec.clients.map(({ host }) => host % count));
  for (const { action } of script) {
    if (action.kind === 'Spoof') used.add(action.host % count);
    for (const { role, number } of namesIn(action)) if (role === 'client') used.add(number % count);
  }
  const kept = keptOf(count, used);
  const move = (number: number): number => kept.get(number % count) ?? 0;
  const clientHosts = spec.clientHosts.filter((_, number) => kept.has(number));
  const clients = spec.clients.map((client) => ({ ...client, host: move(client.host) }));
  const moved = mapped(script, (action) =>
    action.kind === 'Spoof'
      ? { ...action, host: move(action.host) }
      : renamed(action, 'client', move),
  );
  return { spec: { ...spec, clientHosts, clients }, script: moved };
}

function withoutBackend({ spec, script }: Staged, gone: number): Staged {
  const count = spec.backends.length;
  const address = spec.backends[gone]?.address;
  if (address === undefined) return { spec, script };
  const move = (number: number): number => {
    const one = number % count;
    return one > gone ? one - 1 : one;
  };
  const isAbout = (action: WorldAction): boolean =>
    action.kind === 'Behave'
      ? action.backend % count === gone
      : namesIn(action).some(({ role, number }) => role === 'backend' && number % count === gone);
  return {
    spec: {
      ...spec,
      backends: spec.backends.toSpliced(gone, 1),
      proxies: spec.proxies.map((proxy) => ({ ...proxy, config: without(proxy.config, address) })),
    },
    script: mapped(
      script.filter(({ action }) => !isAbout(action)),
      (action) => {
        if (action.kind === 'Behave') return { ...action, backend: move(action.backend) };
        if (action.kind === 'Start') return { ...action, config: without(action.config, address) };
        if (action.kind === 'Order')
          return { ...action, command: unmentioned(action.command, address) };
        return renamed(action, 'backend', move);
      },
    ),
  };
}

function unmentioned(command: Command, address: Address): Command {
  switch (command.kind) {
    case 'Reload':
    case 'Preview':
      return { ...command, config: without(command.config, address) };
    case 'SetBackends':
      return {
        ...command,
        backends: command.backends.filter((backend) => !sameAddress(backend.address, address)),
      };
    default:
      return command;
  }
}

function without(config: Config, address: Address): Config {
  const clusters = config.clusters.map((cluster) => ({
    ...cluster,
    backends: cluster.backends.filter((backend) => !sameAddress(backend.address, address)),
  }));
  return { ...config, clusters };
}

/** New numbers of those who are used; the first one stays in any case, because a population is not empty. */
function keptOf(count: number, used: ReadonlySet<number>): ReadonlyMap<number, number> {
  const numbers = Array.from({ length: count }, (_, number) => number);
  const kept = numbers.filter((number) => used.has(number));
  return new Map((kept.length === 0 ? [0] : kept).map((number, place) => [number, place]));
}

function namesIn(action: WorldAction): HostName[] {
  if (action.kind === 'Cut') return [action.from, action.to];
  return action.kind === 'Power' || action.kind === 'LinkFault' ? [action.host] : [];
}

function renamed(
  action: WorldAction,
  role: HostName['role'],
  move: (number: number) => number,
): WorldAction {
  const name = (host: HostName): HostName =>
    host.role === role ? { ...host, number: move(host.number) } : host;
  if (action.kind === 'Cut') return { ...action, from: name(action.from), to: name(action.to) };
  if (action.kind === 'Power' || action.kind === 'LinkFault')
    return { ...action, host: name(action.host) };
  return action;
}

function mapped(script: Script, change: (action: WorldAction) => WorldAction): ScriptEntry[] {
  return script.map(({ at, action }) => ({ at, action: change(action) }));
}
