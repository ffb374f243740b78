/**
 * One control plane and several data planes, each on ports of its own that only take notes, with mail between them that the
 * test delivers: in order for each plane and each direction, and otherwise as it likes.
 */
import { present } from '../core/assert.ts';
import { listenerId } from '../core/brand.ts';
import type { Command, Reply } from '../core/commands.ts';
import type { Config } from '../core/config.ts';
import type { ControlEvent } from '../core/control-contract.ts';
import { ControlPlane } from '../core/control-plane.ts';
import { ControlPump } from '../core/control-pump.ts';
import { DataPlane } from '../core/data-plane.ts';
import type { GeneratedDirective, Report } from '../core/directives.ts';
import { PlaneGroup } from '../core/plane-group.ts';
import { Pump } from '../core/pump.ts';
import type { Status } from '../core/status.ts';
import { after, seconds, type Instant } from '../core/time.ts';
import { controlOptions, planeOptions } from './control-bench.ts';
import { addressOf, RecordingPorts } from './plane-bench.ts';
import { untilOver } from './until-over.ts';

/** One data plane with its mail. */
export interface Member {
  readonly ports: RecordingPorts;
  readonly plane: DataPlane;
  readonly pump: Pump;
  /** Under way. */
  readonly directives: GeneratedDirective[];
  readonly reports: Report[];
  /** All that ever arrived, and all that was ever sent. */
  readonly received: GeneratedDirective[];
  readonly made: Report[];
}

export class GroupBench {
  readonly members: readonly Member[];
  readonly control: ControlPlane = new ControlPlane(controlOptions());
  readonly controlPump: ControlPump;
  readonly group: PlaneGroup;
  /** What the control plane directed, and what it was told. */
  readonly directed: GeneratedDirective[] = [];
  readonly told: Report[] = [];
  readonly events: ControlEvent[] = [];
  wake: Instant | undefined;

  constructor(count: number) {
    this.members = Array.from({ length: count }, () => this.newMember());
    this.group = new PlaneGroup(count, {
      direct: (plane, message) => void this.at(plane).directives.push(message),
      report: (report) => {
        this.told.push(report);
        this.controlPump.report(report);
      },
      endTurn: () => undefined,
    });
    const { group } = this;
    this.controlPump = new ControlPump(
      this.control,
      {
        now: () => this.at(0).ports.clock,
        probe: () => undefined,
        cancelProbe: () => undefined,
        wakeAt: (at) => {
          this.wake = at;
        },
        event: (event) => void this.events.push(event),
      },
      {
        direct: (message) => {
          this.directed.push(message);
          group.direct(message);
        },
        endTurn: () => group.endTurn(),
      },
    );
  }

  at(plane: number): Member {
    return present(this.members[plane % this.members.length], 'a group has a data plane');
  }

  configure(config: Config): void {
    this.controlPump.configure(config);
  }

  /** The reply, once it has come. */
  command(command: Command): { reply: Reply | undefined } {
    const heard: { reply: Reply | undefined } = { reply: undefined };
    this.controlPump.command(command, (reply) => {
      heard.reply = reply;
    });
    return heard;
  }

  /** The answer, with all mail delivered. */
  ask(command: Command): Reply {
    const heard = this.command(command);
    this.settle();
    return present(heard.reply, 'a command is answered');
  }

  status(): Status {
    const { reply } = this.command({ kind: 'Status' });
    if (reply?.ok !== true || reply.answer?.kind !== 'Status')
      throw new Error('Status is always granted');
    return reply.answer.status;
  }

  /** The next of what is under way to a plane arrives, a turn of its own. Whether there was any. */
  deliverDirective(plane: number): boolean {
    const { directives, received, pump } = this.at(plane);
    const message = directives.shift();
    if (message === undefined) return false;
    received.push(message);
    pump.direct(message);
    pump.endTurn();
    return true;
  }

  deliverReport(plane: number): boolean {
    const number = plane % this.members.length;
    const report = this.at(number).reports.shift();
    if (report === undefined) return false;
    this.group.heard(number, report);
    return true;
  }

  deliverDirectives(): void {
    for (const plane of this.members.keys()) untilOver(() => this.deliverDirective(plane));
  }

  /** Everything arrives, and what that leads to. */
  settle(): void {
    untilOver(() => {
      this.deliverDirectives();
      return this.members.some((_, plane) => this.deliverReport(plane));
    });
  }

  /** A datagram of client number `client`, which its plane is fixed by, to a listener by number. */
  send(client: number, listener = 0): void {
    const { plane, pump } = this.at(client);
    const one = plane.listeners.all.find(({ id }) => id === listener);
    if (one === undefined) return;
    const src = addressOf(`10.9.0.1:${1_000 + client}`);
    pump.clientDatagram(listenerId(listener), src, undefined, Uint8Array.of(1));
    pump.endTurn();
  }

  /** Time passes, and every timer that is due fires. Mail stays where it is. */
  pass(count: number): void {
    for (const { ports, pump } of this.members) {
      ports.clock = after(ports.clock, seconds(count));
      if (ports.wake === undefined || ports.wake > ports.clock) continue;
      ports.wake = undefined;
      pump.timer();
      pump.endTurn();
    }
    if (this.wake === undefined || this.wake > this.at(0).ports.clock) return;
    this.wake = undefined;
    this.controlPump.timer();
  }

  get flowCount(): number {
    return this.members.reduce((sum, { plane }) => sum + plane.flowCount, 0);
  }

  private newMember(): Member {
    const ports = new RecordingPorts();
    const machine = new DataPlane(planeOptions());
    const reports: Report[] = [];
    const made: Report[] = [];
    const pump = new Pump(machine, ports, (report) => {
      reports.push(report);
      made.push(report);
    });
    return { ports, plane: machine, pump, directives: [], reports, received: [], made };
  }
}
