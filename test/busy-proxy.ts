/** A proxy in which everything that can be going on is: each step is drawn, and the next seed does something else. */
import type { Command } from '../core/commands.ts';
import {
  LOAD_BALANCINGS,
  type AccessLogSettings,
  type ClusterSettings,
  type Config,
  type ListenerConfig,
} from '../core/config.ts';
import { listenerId, type SocketId } from '../core/brand.ts';
import { parseCidr, type Cidr } from '../core/cidr.ts';
import { healthSettings } from '../core/health/settings.ts';
import type { SendFailed } from '../core/ports.ts';
import { createRandom, type Random } from '../core/random.ts';
import { after, microseconds, milliseconds, seconds } from '../core/time.ts';
import type { ControlBench } from './control-bench.ts';
import { addressOf, backendsOf, clusterSettings, listenerConfig } from './plane-bench.ts';

const CLUSTERS = ['c', 'd', 'e'];

const SAMPLED: AccessLogSettings = { oneIn: 2, linesPerSecond: 3 };

export class BusyProxy {
  readonly #bench: ControlBench;
  readonly #random: Random;
  readonly #accessLog: AccessLogSettings | undefined;
  #steps = 0;

  constructor(
    bench: ControlBench,
    seed: number,
    accessLog: AccessLogSettings | undefined = seed % 2 === 0 ? undefined : SAMPLED,
  ) {
    this.#bench = bench;
    this.#accessLog = accessLog;
    this.#random = createRandom({ high: seed, low: 1 });
    bench.ports.listenerResult = this.#chance(2) ? 'EADDRINUSE' : undefined;
    this.#command({ kind: 'Reload', config: this.#config() });
  }

  /** Something happens, often several things within one turn. */
  step(): void {
    const { ports, pump } = this.#bench;
    this.#steps += 1;
    this.#pass();
    ports.openResults = this.#some(3, () => this.#of([undefined, 'EMFILE', 'EADDRINUSE', 'EPERM']));
    ports.listenerResult = this.#chance(4) ? 'EADDRINUSE' : undefined;
    ports.errno = this.#of(['EPERM', 'EHOSTUNREACH', 'ENETUNREACH', 'EMSGSIZE']);
    const fates: (SendFailed['cause'] | undefined)[] = this.#some(6, () =>
      this.#of([undefined, undefined, 'blocked', 'error', 'refused']),
    );
    ports.fate = (number) => fates[number];
    for (let events = this.#below(6); events > 0; events -= 1) this.#event();
    pump.endTurn();
  }

  #event(): void {
    const { pump, ports } = this.#bench;
    const socket = ports.opened.at(-1 - this.#below(12));
    const choice = this.#below(20);
    if (choice < 8) return this.#clients();
    if (choice < 12 && socket !== undefined) return pump.backendDatagram(socket, this.#payload());
    if (choice < 13 && socket !== undefined) return this.#refuse(socket);
    if (choice < 14) return pump.lateSendFailure(listenerId(this.#below(3)));
    if (choice < 16) return this.#writable();
    if (choice < 17) return this.#answerProbe();
    if (choice < 18) return this.#command(this.#operator());
    if (choice < 19 && this.#chance(4)) return this.#command(this.#change());
    return undefined;
  }

  /** Now and then every flow hears it, twice: enough to eject a backend. */
  #refuse(socket: SocketId): void {
    const { pump, ports } = this.#bench;
    const heard = this.#chance(4) ? [...ports.open, ...ports.open] : [socket];
    for (const one of heard) pump.refused(one);
  }

  #clients(): void {
    for (let count = this.#below(6); count >= 0; count -= 1) this.#client();
  }

  #client(): void {
    const client = this.#chance(3)
      ? `10.1.0.${1 + this.#below(4)}:${1_000 + this.#below(40)}`
      : `[2001:db8::${1 + this.#below(9)}]:${1_000 + this.#below(4)}`;
    const from = this.#chance(30) ? '10.0.0.1:53' : client;
    const local = this.#chance(2) ? addressOf(`10.0.1.${1 + this.#below(2)}:53`) : undefined;
    const { pump, ports } = this.#bench;
    const listener = this.#of([...ports.listening, undefined]);
    if (listener === undefined) return;
    pump.clientDatagram(listener, addressOf(from), local, this.#payload());
  }

  #writable(): void {
    const { pump, ports } = this.#bench;
    const watched = new Set(ports.watched);
    ports.watched.clear();
    for (const at of watched) {
      const listener = [...ports.listening].find((one) => Object.is(one, at));
      const socket = ports.opened.find((one) => Object.is(one, at));
      if (socket !== undefined) pump.upstreamWritable(socket);
      else if (listener !== undefined) pump.listenerWritable(listener);
    }
  }

  #answerProbe(): void {
    const [probe] = this.#bench.flying.keys();
    if (probe !== undefined) this.#bench.answer(probe, this.#of(['ok', 'refused', 'not-tried']));
  }

  /** Time goes on, and whoever is due is woken. */
  #pass(): void {
    const { ports, pump } = this.#bench;
    const passes = this.#of([0, 1_000, 30_000, 400_000, 3_000_000]);
    ports.clock = after(ports.clock, microseconds(passes));
    if (this.#bench.wake !== undefined && this.#bench.wake <= ports.clock) this.#bench.fire();
    if (ports.wake === undefined || ports.wake > ports.clock) return;
    ports.wake = undefined;
    pump.timer();
    pump.endTurn();
  }

  #operator(): Command {
    const cluster = this.#of(CLUSTERS);
    const address = addressOf(`10.0.0.${1 + this.#below(4)}:53`);
    const flow = `${this.#below(2)}.${1 + this.#below(20)}`;
    switch (this.#below(9)) {
      case 0:
        return { kind: 'DrainBackend', cluster, address, deadline: seconds(20) };
      case 1:
        return { kind: 'DrainBackend', cluster, address, deadline: undefined };
      case 2:
        return { kind: 'UndrainBackend', cluster, address };
      case 3:
        return { kind: 'DisableBackend', cluster, address };
      case 4:
        return { kind: 'ListFlows', filter: {}, limit: 3 };
      case 5:
        return { kind: 'KillFlow', flow };
      case 6:
        // It costs as much as a thousand steps.
        if (this.#chance(2)) return { kind: 'Status' };
        return { kind: 'Preview', config: this.#config() };
      case 7:
        return { kind: 'SetWeight', cluster, address, weight: this.#below(200) };
      default:
        return { kind: 'Status' };
    }
  }

  #change(): Command {
    const cluster = this.#of(CLUSTERS);
    const [backend] = backendsOf(1 + this.#below(6));
    if (backend !== undefined && this.#chance(3)) return { kind: 'AddBackend', cluster, backend };
    // Nothing much happens after it.
    if (this.#steps > 170 && this.#chance(2)) return { kind: 'SoftStop' };
    return { kind: 'Reload', config: this.#config() };
  }

  #config(): Config {
    const clusters = CLUSTERS.filter(() => !this.#chance(6)).map((name) => this.#cluster(name));
    const numbers = [1, 2, 3].filter(() => !this.#chance(6));
    const listeners = numbers.map((number) => this.#listener(number));
    const grace = seconds(1 + this.#below(3));
    return { listeners, clusters, grace, accessLog: this.#accessLog };
  }

  #listener(number: number): ListenerConfig {
    return listenerConfig({
      address: addressOf(number === 1 ? '0.0.0.0:53' : `10.0.1.${number}:5${number}`),
      cluster: this.#of([...CLUSTERS, undefined]),
      maxFlows: this.#of([3, 20, 40]),
      maxRxDatagramSize: this.#of([40, 1_500]),
      frontTimeout: this.#of([undefined, seconds(1), seconds(30)]),
      bindRetry: this.#of([undefined, seconds(1), seconds(30)]),
    });
  }

  #cluster(cluster: string): ClusterSettings {
    const numbers = [1, 2, 3, 4].filter(() => !this.#chance(3));
    const [sendProxyProtocol, isProbed] = [this.#chance(2), this.#chance(2)];
    return clusterSettings({
      cluster,
      backends: backendsOf(...numbers),
      loadBalancing: this.#of(LOAD_BALANCINGS),
      loadMetric: this.#of(['CONNECTIONS', 'REQUESTS', 'CONNECTION_TIME']),
      sendProxyProtocol,
      proxyProtocolEveryDatagram: this.#chance(4),
      affinityWithPort: this.#chance(2),
      requests: this.#of([0, 0, 1, 3]),
      responses: this.#of([0, 0, 0, 1]),
      responsesPerRequest: this.#chance(2),
      requestsLinger: this.#chance(2),
      lateReplyGrace: this.#of([milliseconds(0), seconds(1)]),
      forwardEmptyDatagrams: this.#chance(2),
      amplification: { factor: this.#of([0, 3]), floor: 20 },
      maxFlowsPerIp: this.#of([0, 5]),
      maxFlowsPerSubnet: this.#of([0, 9]),
      exchange: this.#of([undefined, 'request-response', 'one-way']),
      onBackendDown: this.#of(['pin', 'rebind', 'close']),
      onBackendRemoved: this.#of(['pin', 'rebind', 'close']),
      upstreamSources: this.#some(3, () => addressOf(`10.9.0.${1 + this.#below(3)}:0`)),
      health: isProbed ? this.#health() : undefined,
      rates: {
        newFlowsPerSecond: this.#of([0, 0, 20]),
        newFlowsBurst: 9,
        datagramsPerSecond: this.#of([0, 0, 50]),
        datagramsBurst: 8,
        columns: 64,
        allow: this.#of([[], [], [block('10.1.0.0/16'), block('2001:db8::/29')]]),
        deny: this.#of([[], [block('10.1.0.4')], [block('2001:db8::8/125')]]),
      },
    });
  }

  #health(): ClusterSettings['health'] {
    return healthSettings({
      mode: this.#of(['TCP_PROBE', 'UDP_PROBE', 'HEALTH_OFF']),
      udpProbePayload: Uint8Array.of(1, 2, 3),
      expectReply: this.#chance(2),
      failOpen: this.#chance(2),
      rise: 1,
      fall: 1,
      probeInterval: seconds(1 + this.#below(2)),
    });
  }

  #payload(): Uint8Array {
    return new Uint8Array(this.#of([0, 1, 20, 60])).fill(this.#below(256));
  }

  #command(command: Command): void {
    this.#bench.controlPump.command(command);
  }

  #some<T>(most: number, make: () => T): T[] {
    return Array.from({ length: this.#below(most) }, make);
  }

  #of<const T>(list: readonly T[]): T {
    return list[this.#below(list.length)]!;
  }

  #chance(oneIn: number): boolean {
    return this.#below(oneIn) === 0;
  }

  #below(bound: number): number {
    return this.#random.below(bound);
  }
}

function block(words: string): Cidr {
  const parsed = parseCidr(words);
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.cidr;
}
