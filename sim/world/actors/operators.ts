/**
 * Operators: people and programs that change a proxy while it works. Each job draws what it is about from the configuration
 * that the proxy began with; what has become wrong meanwhile is refused, as it would be.
 */
import { assert } from '../../../core/assert.ts';
import type { Address } from '../../../core/address.ts';
import type { Command } from '../../../core/commands.ts';
import type { ClusterSettings, Config, ListenerConfig } from '../../../core/config.ts';
import type { Backend } from '../../../core/contract.ts';
import { microseconds, milliseconds } from '../../../core/time.ts';
import type { Actor, ActorBody } from '../actor.ts';
import type { Span } from '../faults.ts';
import type { HostName } from '../actions.ts';
import { pick } from '../world.ts';
import { chaosBegins, chaosLeft, rest, throughChaos } from './phases.ts';

/** What an operator does once, to the proxy of this number. */
export type Job = (actor: Actor, proxy: number) => Promise<void>;

export interface Shift {
  readonly proxy?: number;
  /** Each as likely as another: named twice it is done twice as often. */
  readonly jobs: readonly Job[];
  readonly every: Span;
}

/**
 * Does one drawn job after another while there is chaos; when it ends, everything is as it was: the process runs, with its
 * first configuration, and with every backend active.
 */
export function operator({ proxy = 0, jobs, every }: Shift): ActorBody {
  const busy = throughChaos(every, (actor) => actor.random.pick('job', jobs)(actor, proxy));
  return async (actor) => {
    await busy(actor);
    await actor.sleep(microseconds(chaosLeft(actor) + 1));
    restore(actor, proxy);
  };
}

/** A job of one command. */
export function order(command: (actor: Actor, proxy: number) => Command): Job {
  return (actor, proxy) => {
    actor.act({ kind: 'Order', proxy, command: command(actor, proxy) });
    return Promise.resolve();
  };
}

/** Keeps new flows from a backend; live ones have until the deadline. */
export function drains(deadline: Span, force = false): Job {
  return order((actor, proxy) => ({
    kind: 'DrainBackend',
    ...drawBackend(actor, proxy),
    deadline: draw(actor, 'deadline', deadline),
    force,
  }));
}

export const undrains: Job = order((actor, proxy) => ({
  kind: 'UndrainBackend',
  ...drawBackend(actor, proxy),
}));

export const disables: Job = order((actor, proxy) => ({
  kind: 'DisableBackend',
  ...drawBackend(actor, proxy),
  force: actor.random.chance('force', 1, 4),
}));

export const reweighs: Job = order((actor, proxy) => ({
  kind: 'SetWeight',
  ...drawBackend(actor, proxy),
  weight: actor.random.pick('weight', [0, 1, 50, 100, 255, 256]),
}));

/** Takes a backend out of the list, or puts it back. */
export const edits: Job = order((actor, proxy) => {
  const { cluster, address } = drawBackend(actor, proxy);
  const backend = backendsOf(actor, proxy, cluster).find((one) => one.address === address);
  assert(backend !== undefined, 'the backend was drawn from there');
  if (actor.random.chance('remove', 1, 2)) return { kind: 'RemoveBackend', cluster, address };
  return { kind: 'AddBackend', cluster, backend };
});

/** Listeners change while they are open. */
export function patches(draws: (actor: Actor) => Partial<Omit<ListenerConfig, 'address'>>): Job {
  return order((actor, proxy) => {
    const { address } = actor.random.pick('listener', configOf(actor, proxy).listeners);
    const { cluster: _, ...patch } = draws(actor);
    return { kind: 'UpdateListener', address, patch };
  });
}

/** Adds a listener that was there from the beginning: where it still is, that is refused. */
export const adds: Job = order((actor, proxy) => ({
  kind: 'AddListener',
  config: actor.random.pick('listener', configOf(actor, proxy).listeners),
}));

/** Closes a listener, and opens it again a moment later. */
export const cycles: Job = async (actor, proxy) => {
  const { address } = actor.random.pick('listener', configOf(actor, proxy).listeners);
  actor.act({ kind: 'Order', proxy, command: { kind: 'DeactivateListener', address } });
  await actor.pause('closed', milliseconds(0.1), milliseconds(15));
  actor.act({ kind: 'Order', proxy, command: { kind: 'ActivateListener', address } });
};

/** A whole configuration at once: the first one, or a variant of it. */
export function reloads(variant: (config: Config, actor: Actor) => Config): Job {
  return order((actor, proxy) => ({
    kind: 'Reload',
    config: variant(configOf(actor, proxy), actor),
  }));
}

/** Asks what would be, and changes nothing. */
export function previews(variant: (config: Config, actor: Actor) => Config): Job {
  return order((actor, proxy) => ({
    kind: 'Preview',
    config: variant(configOf(actor, proxy), actor),
  }));
}

/** Looks at what there is: the state, flows, one flow, and why a client goes where it goes. */
export const looks: Job = order((actor, proxy) => {
  const { address: listener } = actor.random.pick('listener', configOf(actor, proxy).listeners);
  const client = pick(actor.spec.clients, actor.random.choose('client', 64)).address;
  return actor.random.pick<Command>('question', [
    { kind: 'Status' },
    { kind: 'ListFlows', filter: {}, limit: 10 },
    { kind: 'ListFlows', filter: { listener }, limit: 100, slots: 16 },
    { kind: 'ShowFlow', flow: drawFlow(actor) },
    { kind: 'Why', listener, client },
  ]);
});

export const kills: Job = order((actor) => ({ kind: 'KillFlow', flow: drawFlow(actor) }));

/** The process dies, and another is started a moment later, before chaos ends. */
export const crashes: Job = async (actor, proxy) => {
  actor.act({ kind: 'Crash', proxy });
  await startSoon(actor, proxy);
};

/** Asks the process to stop, waits until it may have, and starts another. */
export function restarts(kind: 'SoftStop' | 'HardStop', patience: Span): Job {
  return async (actor, proxy) => {
    actor.act({ kind: 'Order', proxy, command: { kind } });
    await rest(actor, 'patience', patience);
    await startSoon(actor, proxy);
  };
}

/** From one backend to the next: drained, then off, then on again, and active. `rush` does not wait for the flows. */
export function deploys(backends: number, deadline: Span, proxy = 0): ActorBody {
  return async (actor) => {
    await chaosBegins(actor);
    for (let number = 0; number < backends && chaosLeft(actor) > milliseconds(200); number++) {
      const host: HostName = { role: 'backend', number };
      const { cluster, address } = backendAt(actor, proxy, number);
      const time = draw(actor, 'deadline', deadline);
      const where = { cluster, address };
      actor.act({
        kind: 'Order',
        proxy,
        command: { kind: 'DrainBackend', ...where, deadline: time },
      });
      await actor.sleep(microseconds(time + 5_000));
      actor.act({ kind: 'Power', host, on: false });
      await actor.pause('installs', milliseconds(5), milliseconds(60));
      actor.act({ kind: 'Power', host, on: true });
      actor.act({ kind: 'Order', proxy, command: { kind: 'UndrainBackend', ...where } });
      await actor.pause('next', milliseconds(5), milliseconds(40));
    }
    await actor.sleep(microseconds(chaosLeft(actor) + 1));
    restore(actor, proxy);
  };
}

function restore(actor: Actor, proxy: number): void {
  const config = configOf(actor, proxy);
  actor.act({ kind: 'Start', proxy, config });
  actor.act({ kind: 'Order', proxy, command: { kind: 'Reload', config } });
  for (const { cluster, backends } of config.clusters) {
    for (const { address } of backends) {
      actor.act({ kind: 'Order', proxy, command: { kind: 'UndrainBackend', cluster, address } });
    }
  }
}

async function startSoon(actor: Actor, proxy: number): Promise<void> {
  await actor.pause('down', milliseconds(1), milliseconds(60));
  actor.act({ kind: 'Start', proxy, config: configOf(actor, proxy) });
}

function configOf({ spec }: Actor, proxy: number): Config {
  return pick(spec.proxies, proxy).config;
}

function backendsOf(actor: Actor, proxy: number, cluster: string): readonly Backend[] {
  return configOf(actor, proxy).clusters.find((one) => one.cluster === cluster)?.backends ?? [];
}

function drawBackend(
  actor: Actor,
  proxy: number,
): { readonly cluster: string; readonly address: Address } {
  const { clusters } = configOf(actor, proxy);
  const { cluster, backends } = actor.random.pick('cluster', clusters.filter(hasBackends));
  return { cluster, address: actor.random.pick('backend', backends).address };
}

function hasBackends({ backends }: ClusterSettings): boolean {
  return backends.length > 0;
}

function backendAt(
  actor: Actor,
  proxy: number,
  number: number,
): { readonly cluster: string; readonly address: Address } {
  const { cluster, backends } = pick(configOf(actor, proxy).clusters, 0);
  return { cluster, address: pick(backends, number).address };
}

/** Names count up from 0 for each listener. */
function drawFlow({ random }: Actor): string {
  return `${random.choose('listener', 2)}.${random.choose('flow', 60)}`;
}

function draw(
  { random }: Actor,
  site: string,
  { low, high }: Span,
): ReturnType<typeof microseconds> {
  return microseconds(random.between(site, low, high));
}
