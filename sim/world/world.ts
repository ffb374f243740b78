/**
 * A simulated world: hosts on a network, proxies with their processes, clients and backends, and virtual time. Actions come
 * from outside; whatever follows from them happens by itself, event by event.
 */
import { isUnspecified, sameIp, type Address } from '../../core/address.ts';
import { assert, assertNever, present } from '../../core/assert.ts';
import { after, milliseconds, type Duration, type Instant } from '../../core/time.ts';
import { VirtualClock } from '../clock.ts';
import { EventQueue, type QueuedEvent } from '../event-queue.ts';
import type { Surroundings } from '../executor.ts';
import { seededStreams, type Streams } from '../random.ts';
import type { Seed } from '../seed.ts';
import type { HostName, WorldAction } from './actions.ts';
import type { FactHub } from './facts.ts';
import { Network } from './network.ts';
import type { TcpManner, TcpNetwork } from './os-control.ts';
import { FAULTLESS_OS, HOST_DEFAULTS, type OsFaults } from './os-faults.ts';
import { Host, type WorldTime } from './os-host.ts';
import { Kernel } from './os-kernel.ts';
import type { Taps } from './own-trace.ts';
import { BackendServer, Client } from './parties.ts';
import { ProxyProcess } from './proxy-process.ts';
import type { ProxySpec, WorldSpec } from './spec.ts';

/** A proxy's machine, and the process on it. */
export interface ProxySite {
  readonly number: number;
  readonly spec: ProxySpec;
  readonly kernel: Kernel;
  /** The latest one: it may be over. */
  process: ProxyProcess;
}

/** A fault with an end. */
interface Running {
  readonly action: WorldAction;
  readonly end: QueuedEvent<() => void>;
  readonly undo: () => void;
}

export class World implements Surroundings {
  readonly spec: WorldSpec;
  readonly clock: VirtualClock = new VirtualClock();
  readonly hub: FactHub;
  readonly network: Network;
  readonly clients: readonly Client[];
  readonly backends: readonly BackendServer[];
  readonly proxies: readonly ProxySite[];
  /** Events that have happened. */
  steps = 0;
  readonly #time: WorldTime;
  readonly #running = new Set<Running>();
  #processes = 0;
  #lastStep: Instant | undefined;
  readonly #taps: Taps | undefined;

  /**
   * Oracles join `hub` first: the proxies start at once. Chance comes from the streams of `seed` that no actor draws from.
   * `taps`: what stands between the machines of its processes and their pumps.
   */
  constructor(spec: WorldSpec, seed: Seed, hub: FactHub, taps?: Taps) {
    this.#taps = taps;
    const streams = worldStreams(seed);
    this.spec = spec;
    this.hub = hub;
    const { clock } = this;
    const events = new EventQueue<() => void>(streams.sched);
    this.#time = { clock, events, streams };
    this.network = new Network({
      clock,
      events,
      random: streams.net,
      tell: (fate) => hub.tell('Packet', fate, clock.now()),
    });
    this.#joinNetwork();
    this.clients = spec.clients.map(
      (client, number) => new Client(number, client, this.#time, this.network, hub),
    );
    this.backends = spec.backends.map(
      (backend, number) => new BackendServer(number, backend, this.#time, this.network, hub),
    );
    this.proxies = spec.proxies.map((proxy, number) => this.#site(proxy, number));
    for (const { process, spec: proxy } of this.proxies) process.start(proxy.config);
  }

  nextAt(): Instant | undefined {
    return this.#time.events.nextAt();
  }

  step(): void {
    const event = present(this.#time.events.pop(), 'there is an event');
    this.clock.advanceTo(event.at);
    this.#lastStep = event.at;
    this.steps += 1;
    event.value();
  }

  /** Has everything happen that is due before `end`, and moves the clock there. */
  runTo(end: Instant): void {
    for (let at = this.nextAt(); at !== undefined && at < end; at = this.nextAt()) this.step();
    this.clock.advanceTo(end);
  }

  /** Does what an actor wants, before anything else of this instant. */
  perform(action: WorldAction): void {
    assert(this.#lastStep !== this.clock.now(), 'actors act before the events of an instant');
    this.hub.tell('Acted', { action }, this.clock.now());
    this.#act(action);
  }

  /** Ends every fault, and has every backend behave as in the beginning. */
  heal(): void {
    for (const running of this.#running) this.#end(running);
    this.network.heal();
    for (const backend of this.backends) backend.heal();
    for (const { role, number } of this.#hosts()) this.network.setRunning(`${role}${number}`, true);
  }

  /** Every running process tells what it counted. */
  count(): void {
    for (const { process } of this.proxies) process.count();
  }

  /**
   * Where `asker` may ask a listener of the proxy's first configuration. A wildcard is asked at an address of its host, in
   * the asker's family where it serves that; which of several it is follows from the asker's port.
   */
  frontOf(proxy: number, listener: number, asker: Address): Address {
    const { config, shape } = pick(this.spec.proxies, proxy);
    const { address, ipv6Only } = pick(config.listeners, listener);
    if (!isUnspecified(address)) return address;
    const { family, port } = address;
    const isServed = asker.family === family || (family === 6 && !ipv6Only);
    const wanted = isServed ? asker.family : family;
    const hosts = shape.addresses.filter((one) => one.family === wanted);
    return { ...pick(hosts, asker.port), port };
  }

  #act(action: WorldAction): void {
    switch (action.kind) {
      case 'Send':
        return this.#send(pick(this.clients, action.client), action);
      case 'Reopen':
        return pick(this.clients, action.client).reopen();
      case 'Spoof':
        return this.network.sendRaw(this.#nameOf({ role: 'client', number: action.host }), {
          src: action.src,
          dst: this.frontOf(action.proxy, action.listener, action.src),
          payload: new Uint8Array(action.bytes),
        });
      case 'Remap':
        return this.#remap(pick(this.clients, action.client));
      case 'LinkFault':
      case 'Cut':
      case 'HostFault':
        return this.#fault(action);
      case 'Begin':
        return this.#begin(action.phase);
      default:
        return this.#actOnParty(action);
    }
  }

  #actOnParty(
    action: Extract<WorldAction, { kind: 'Behave' | 'Power' | 'Order' | 'Crash' | 'Start' }>,
  ): void {
    switch (action.kind) {
      case 'Behave':
        return pick(this.backends, action.backend).behave(action.manner);
      case 'Power':
        return this.network.setRunning(this.#nameOf(action.host), action.on);
      case 'Order':
        return pick(this.proxies, action.proxy).process.command(action.command);
      case 'Crash':
        return pick(this.proxies, action.proxy).process.crash();
      case 'Start':
        return this.#restart(action.proxy, action.config);
      default:
        return assertNever(action);
    }
  }

  #send(client: Client, { proxy, listener, bytes }: Extract<WorldAction, { kind: 'Send' }>): void {
    client.send(this.frontOf(proxy, listener, client.local), bytes);
  }

  #begin(phase: Extract<WorldAction, { kind: 'Begin' }>['phase']): void {
    this.count();
    if (phase === 'heal') this.heal();
    this.hub.tell('PhaseBegan', { phase }, this.clock.now());
    if (phase !== 'drain') return;
    for (const { process } of this.proxies) process.command({ kind: 'SoftStop' });
  }

  #restart(number: number, config: ProxySpec['config']): void {
    const site = pick(this.proxies, number);
    if (site.process.isRunning) return;
    site.process = this.#process(site.spec, site.number, site.kernel);
    site.process.start(config);
  }

  #remap({ spec, local }: Client): void {
    const { nat } = pick(this.spec.clientHosts, spec.host);
    if (nat !== undefined) this.network.nat(`nat${nat}`).rebind(local);
  }

  #fault(action: Extract<WorldAction, { kind: 'LinkFault' | 'Cut' | 'HostFault' }>): void {
    const undo = this.#beginFault(action);
    const until = after(this.clock.now(), atLeast(action.lasts, milliseconds(1)));
    const end = this.#time.events.push(until, () => this.#end(running));
    const running: Running = { action, end, undo };
    this.#running.add(running);
  }

  #beginFault(
    action: Extract<WorldAction, { kind: 'LinkFault' | 'Cut' | 'HostFault' }>,
  ): () => void {
    switch (action.kind) {
      case 'LinkFault': {
        const { faults, lasts } = action;
        const from = this.clock.now();
        const until = after(from, atLeast(lasts, milliseconds(1)));
        this.network
          .link(this.#nameOf(action.host), action.place)
          .addEpisode({ from, until, faults });
        return () => undefined;
      }
      case 'Cut': {
        const [from, to] = [this.#nameOf(action.from), this.#nameOf(action.to)];
        this.network.cut(from, to);
        return () => {
          if (!this.#isCut(from, to)) this.network.mend(from, to);
        };
      }
      case 'HostFault': {
        const { number, kernel } = pick(this.proxies, action.proxy);
        this.#applyFaults(number, kernel, action.faults);
        return () => this.#applyFaults(number, kernel);
      }
      default:
        return assertNever(action);
    }
  }

  /** By another cut than the one that has just ended. */
  #isCut(from: string, to: string): boolean {
    return [...this.#running].some(
      ({ action }) =>
        action.kind === 'Cut' &&
        this.#nameOf(action.from) === from &&
        this.#nameOf(action.to) === to,
    );
  }

  /** Where two faults of a host are the same, the later one counts. */
  #applyFaults(number: number, kernel: Kernel, next: Partial<OsFaults> = {}): void {
    let faults = FAULTLESS_OS;
    for (const { action } of this.#running) {
      if (action.kind !== 'HostFault' || pick(this.proxies, action.proxy).number !== number)
        continue;
      faults = { ...faults, ...action.faults };
    }
    kernel.host.setFaults({ ...faults, ...next });
  }

  #end(running: Running): void {
    this.#time.events.cancel(running.end);
    this.#running.delete(running);
    running.undo();
    this.hub.tell('FaultEnded', { action: running.action }, this.clock.now());
  }

  #joinNetwork(): void {
    const { spec, network } = this;
    const link = { up: spec.link, down: spec.link };
    for (const [number, nat] of spec.nats.entries()) network.addNat(`nat${number}`, nat);
    for (const [number, { ips, nat }] of spec.clientHosts.entries()) {
      const behind = nat === undefined ? {} : { nat: `nat${nat}` };
      network.addHost(`client${number}`, { ips, ...link, ...behind });
    }
    for (const [number, { address }] of spec.backends.entries()) {
      network.addHost(`backend${number}`, { ips: [address], ...link });
    }
    for (const [number, { shape }] of spec.proxies.entries()) {
      network.addHost(`proxy${number}`, { ips: shape.addresses, ...link });
    }
  }

  #site(spec: ProxySpec, number: number): ProxySite {
    const host = new Host({ ...HOST_DEFAULTS, ...spec.shape }, this.#time);
    const kernel = new Kernel(host, this.network);
    return { number, spec, kernel, process: this.#process(spec, number, kernel) };
  }

  #process(spec: ProxySpec, proxy: number, kernel: Kernel): ProxyProcess {
    const { hub, clock } = this;
    this.#processes += 1;
    const tcp: TcpNetwork = { connect: (target) => this.#connect(proxy, target) };
    const taps = this.#taps;
    return new ProxyProcess({
      number: this.#processes,
      proxy,
      spec,
      kernel,
      tcp,
      hub,
      clock,
      taps,
    });
  }

  /** A handshake takes a moment, and nothing of it is lost: TCP asks again. */
  #connect(proxy: number, target: Address): { manner: TcpManner; time: Duration } {
    const backend = this.backends.find(({ address }) => sameIp(address, target));
    const time = milliseconds(1);
    if (backend === undefined) return { manner: 'swallow', time };
    const reached = this.network.connects(`proxy${proxy}`, `backend${backend.number}`);
    if (!reached) return { manner: 'swallow', time };
    const { tcp, open } = backend.manner;
    return { manner: tcp ?? (open ? 'accept' : 'refuse'), time };
  }

  #nameOf({ role, number }: HostName): string {
    const { clientHosts, backends, proxies } = this.spec;
    const count = { client: clientHosts, backend: backends, proxy: proxies }[role].length;
    return `${role}${number % count}`;
  }

  *#hosts(): Iterable<HostName> {
    for (const role of ['client', 'backend', 'proxy'] as const) {
      const { clientHosts, backends, proxies } = this.spec;
      const count = { client: clientHosts, backend: backends, proxy: proxies }[role].length;
      for (let number = 0; number < count; number++) yield { role, number };
    }
  }
}

/** Whom a number means in a population. */
export function pick<One>(population: readonly One[], number: number): One {
  return present(population[number % population.length], 'the population is not empty');
}

/** Streams that no actor draws from: what actors draw must not shift what happens in the world. */
function worldStreams(seed: Seed): Streams {
  const { config, workload, net, sched, buggify, values } = seededStreams(seed);
  const name = 'world';
  return {
    config: config.fork(name),
    workload: workload.fork(name),
    net: net.fork(name),
    sched: sched.fork(name),
    buggify: buggify.fork(name),
    values: values.fork(name),
  };
}

function atLeast(duration: Duration, least: Duration): Duration {
  return duration < least ? least : duration;
}
