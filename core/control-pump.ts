/**
 * The loop over the control plane, and its joint with a data plane: directives go to the data plane's pump, reports come
 * back. Production and simulator run this very file. With one worker both machines share a thread, so a directive is an
 * input of the data plane at once, in a turn of its own.
 */
import { assert, assertNever, present } from './assert.ts';
import { requestId, type RequestId } from './brand.ts';
import type { Command, Reply } from './commands.ts';
import type { Config } from './config.ts';
import type {
  ControlEvent,
  ControlInput,
  ControlMachine,
  ControlOutput,
  Probe,
} from './control-contract.ts';
import type { GeneratedDirective, Report } from './directives.ts';
import type { ProbeAnswer, ProbeId } from './health/probe-contract.ts';
import type { Instant } from './time.ts';

/** What the outside supplies. A call may be answered at once: the answer is heard when the present input is done with. */
export interface ControlPorts {
  /** Monotonic, and the clock of the data plane's ports. */
  now(): Instant;
  /** Performs a probe and answers it by `probeAnswered`, once and at any time. */
  probe(probe: Probe): void;
  /** Ends a probe without an answer. One that has ended is nobody's. */
  cancelProbe(probe: ProbeId): void;
  /** One timer; undefined disarms it. It may fire early. */
  wakeAt(at: Instant | undefined): void;
  /** For logs. */
  event(event: ControlEvent): void;
}

/** The pump of a data plane, as far as control goes. */
export interface Directed {
  direct(message: GeneratedDirective): void;
  endTurn(): void;
}

export class ControlPump {
  private readonly control: ControlMachine;
  private readonly ports: ControlPorts;
  private readonly plane: Directed;
  private readonly inbox: (ControlInput | 'timer')[] = [];
  private isRunning = false;
  private armed: Instant | undefined;
  private requests = 0;
  /** Who waits for a reply. */
  private readonly waiting = new Map<RequestId, (reply: Reply) => void>();

  constructor(control: ControlMachine, ports: ControlPorts, plane: Directed) {
    this.control = control;
    this.ports = ports;
    this.plane = plane;
  }

  /** `answered` hears the reply once, when what the command directed has been done. */
  command(command: Command, answered: (reply: Reply) => void = () => undefined): void {
    this.requests += 1;
    const request = requestId(this.requests);
    this.waiting.set(request, answered);
    this.feed({ kind: 'Command', request, command });
  }

  /** The configuration from now on; one that was checked is never refused. */
  configure(config: Config): void {
    this.command({ kind: 'Reload', config }, (reply) => {
      assert(reply.ok, reply.ok ? '' : reply.error.message);
    });
  }

  drain(): void {
    this.command({ kind: 'SoftStop' });
  }

  stop(): void {
    this.command({ kind: 'HardStop' });
  }

  probeAnswered(probe: ProbeId, answer: ProbeAnswer): void {
    this.feed({ kind: 'ProbeAnswered', probe, answer });
  }

  report(report: Report): void {
    this.feed({ kind: 'Reported', report });
  }

  timer(): void {
    // The timer that fired is gone: whatever is armed next is armed anew, even for the same instant.
    this.armed = undefined;
    this.feed('timer');
  }

  /** One input after the other, each drained before the next; those that come meanwhile wait their turn. */
  private feed(input: ControlInput | 'timer'): void {
    this.inbox.push(input);
    if (this.isRunning) return;
    this.isRunning = true;
    for (let next = this.inbox.shift(); next !== undefined; next = this.inbox.shift()) {
      const now = this.ports.now();
      if (next === 'timer') this.control.handleTimeout(now);
      else this.control.handleInput(next, now);
      this.performAll();
    }
    this.isRunning = false;
    const at = this.control.pollTimeout()?.at;
    if (at === this.armed) return;
    this.armed = at;
    this.ports.wakeAt(at);
  }

  /** The data plane's turn ends last: what it reports then is the next input. */
  private performAll(): void {
    const { control } = this;
    const replies: Extract<ControlOutput, { kind: 'Reply' }>[] = [];
    let directed = false;
    for (let output = control.pollOutput(); output !== undefined; output = control.pollOutput()) {
      directed ||= output.kind === 'Direct';
      if (output.kind === 'Reply') replies.push(output);
      else this.perform(output);
    }
    if (directed) this.plane.endTurn();
    for (const { request, reply } of replies) this.answer(request, reply);
  }

  private answer(request: RequestId, reply: Reply): void {
    const answered = present(this.waiting.get(request), 'a command is answered once');
    this.waiting.delete(request);
    answered(reply);
  }

  private perform(output: Exclude<ControlOutput, { kind: 'Reply' }>): void {
    switch (output.kind) {
      case 'Direct':
        return this.plane.direct(output.message);
      case 'StartProbe':
        return this.ports.probe(output);
      case 'CancelProbe':
        return this.ports.cancelProbe(output.probe);
      case 'Event':
        return this.ports.event(output.event);
      default:
        return assertNever(output);
    }
  }
}
