/** Both planes of one process, joined by their pumps, on ports that only take notes; the test answers the probes. */
import { formatAddress, type Address } from '../core/address.ts';
import { present } from '../core/assert.ts';
import { listenerId, type SocketId } from '../core/brand.ts';
import type { Command, Reply } from '../core/commands.ts';
import type { Config } from '../core/config.ts';
import type { ControlEvent, ControlMachine, Probe } from '../core/control-contract.ts';
import { ControlPlane, type ControlOptions } from '../core/control-plane.ts';
import { ControlPump } from '../core/control-pump.ts';
import { DataPlane } from '../core/data-plane.ts';
import type { GeneratedDirective, Report } from '../core/directives.ts';
import { PLACEMENT_SEED } from '../core/hash.ts';
import type { ProbeAnswer, ProbeId } from '../core/health/probe-contract.ts';
import type { DataMachine, PlaneOptions } from '../core/plane-contract.ts';
import { Pump } from '../core/pump.ts';
import type { Status } from '../core/status.ts';
import { instant, type Instant } from '../core/time.ts';
import { addressOf, RecordingPorts } from './plane-bench.ts';

/** Made anew each time: no two planes share them. */
export function planeOptions(): PlaneOptions {
  return {
    placementSeed: PLACEMENT_SEED,
    tableSeed: { first: 1, second: 2 },
    randomSeed: { high: 3, low: 4 },
  };
}

export function controlOptions(probesInFlightMax?: number): ControlOptions {
  return { randomSeed: { high: 5, low: 6 }, probesInFlightMax };
}

/** What a backend does to a probe; `silent`: it runs out of time. */
export type Manner = ProbeAnswer | 'silent';

/** Stands between the machines and their pumps. */
export interface Between {
  readonly data: (plane: DataPlane) => DataMachine;
  readonly control: (control: ControlPlane) => ControlMachine;
}

export class ControlBench {
  readonly ports: RecordingPorts = new RecordingPorts();
  readonly plane: DataPlane = new DataPlane(planeOptions());
  readonly control: ControlPlane;
  readonly controlPump: ControlPump;
  readonly pump: Pump;
  readonly events: ControlEvent[] = [];
  readonly directives: GeneratedDirective[] = [];
  readonly reports: Report[] = [];
  /** Started, and neither answered nor cancelled. */
  readonly flying: Map<ProbeId, Probe> = new Map();
  readonly probes: Probe[] = [];
  wake: Instant | undefined;
  /** How a probe is answered inside the call that starts it, by target; `silent` unless said. */
  readonly manners: Map<string, Manner> = new Map();
  /** When a backend was last ejected. */
  ejectedAt: Instant | undefined;
  private clients = 0;
  /** Where each opened socket leads, in the order of opening. */
  private readonly leads: string[] = [];

  constructor(probesInFlightMax?: number, between?: Between) {
    this.control = new ControlPlane(controlOptions(probesInFlightMax));
    this.pump = new Pump(between?.data(this.plane) ?? this.plane, this.ports, (report) => {
      this.reports.push(report);
      this.controlPump.report(report);
    });
    const direct = (message: GeneratedDirective): void => {
      this.directives.push(message);
      this.pump.direct(message);
    };
    const plane = { direct, endTurn: () => this.pump.endTurn() };
    this.controlPump = new ControlPump(
      between?.control(this.control) ?? this.control,
      {
        now: () => this.ports.now(),
        probe: (probe) => this.start(probe),
        cancelProbe: (probe) => void this.flying.delete(probe),
        wakeAt: (at) => {
          this.wake = at;
        },
        event: (event) => {
          this.events.push(event);
          if (event.kind === 'BackendEjected') this.ejectedAt = this.ports.clock;
        },
      },
      plane,
    );
  }

  configure(config: Config): void {
    this.controlPump.configure(config);
  }

  /** The reply to a command; every command is answered at once. */
  command(command: Command): Reply {
    let heard: Reply | undefined;
    this.controlPump.command(command, (reply) => {
      heard = reply;
    });
    return present(heard, 'a command is answered');
  }

  /** The snapshot that Status gives. */
  status(): Status {
    const reply = this.command({ kind: 'Status' });
    if (!reply.ok || reply.answer?.kind !== 'Status') throw new Error('Status is always granted');
    return reply.answer.status;
  }

  answer(probe: ProbeId, answer: ProbeAnswer): void {
    this.flying.delete(probe);
    this.controlPump.probeAnswered(probe, answer);
  }

  /** Passes the time up to `seconds` after the origin, and fires the timer whenever it is due. */
  runUntil(seconds: number): void {
    const end = instant(Math.round(seconds * 1_000_000));
    for (let at = this.wake; at !== undefined && at <= end; at = this.wake) {
      this.ports.clock = at;
      this.fire();
    }
    this.ports.clock = end;
  }

  fire(): void {
    this.wake = undefined;
    this.controlPump.timer();
  }

  /** How the backend at `address` answers from now on, `10.0.0.1:53` and so on. */
  behave(address: string, manner: Manner): void {
    this.manners.set(address, manner);
  }

  /** Where a new client's first datagram goes; undefined when it is dropped. */
  askAnew(): string | undefined {
    this.clients += 1;
    return this.ask(`10.9.0.1:${1_000 + this.clients}`);
  }

  /** Where a datagram of this client opens a flow to; undefined when it opens none. */
  ask(client: string): string | undefined {
    this.ports.calls = [];
    this.pump.clientDatagram(listenerId(0), addressOf(client), undefined, Uint8Array.of(1));
    this.pump.endTurn();
    const opened = this.ports.calls.find((call) => call.startsWith('open'));
    const place = opened?.split(' ').at(-1);
    if (place !== undefined) this.leads.push(place);
    return place;
  }

  /** The sockets that were ever opened to `address`. */
  opened(address: string): SocketId[] {
    return this.ports.opened.filter((_, nth) => this.leads[nth] === address);
  }

  /** The sockets that lead where this one does, itself included. */
  neighbours(socket: SocketId): SocketId[] {
    return this.opened(this.leads[this.ports.opened.indexOf(socket)] ?? '');
  }

  /** Where so many new clients go, each place once. */
  places(count: number): string[] {
    const found = new Set<string>();
    for (let n = 0; n < count; n += 1) found.add(this.askAnew() ?? 'nowhere');
    return [...found].sort();
  }

  /** Lets the probes go round until nothing new would be learnt: rise and fall of 3 at most, intervals of 8 s at most. */
  settle(): void {
    this.runUntil(this.ports.clock / 1_000_000 + 100);
  }

  availability(cluster = 'c'): unknown {
    return present(this.plane.clusters.backendsOf(cluster), 'the cluster exists').availability();
  }

  kinds(): string[] {
    return this.events.map(({ kind }) => kind).filter((kind) => kind !== 'Availability');
  }

  healthOf(address: Address | string, cluster = 'c'): string {
    const at = typeof address === 'string' ? addressOf(address) : address;
    return this.control.healthOf(cluster, at);
  }

  private start(probe: Probe): void {
    this.probes.push(probe);
    this.flying.set(probe.probe, probe);
    const manner = this.manners.get(formatAddress(probe.target)) ?? 'silent';
    if (manner !== 'silent') this.answer(probe.probe, manner);
  }
}
