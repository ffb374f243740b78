/**
 * The joint between one control plane and several data planes (law 9): every plane hears what the control plane directs, with
 * its share of what is granted to all; what they report becomes the words of one. Nothing passes before the last of them has
 * spoken where only all of them know, and nothing is told twice. One plane alone has nothing to share.
 */
import { assert } from './assert.ts';
import type { ListenerConfig } from './config.ts';
import type { Directed } from './control-pump.ts';
import type { Directive, GeneratedDirective, Report } from './directives.ts';
import { SharedDrains } from './group-drains.ts';
import { SharedListeners } from './group-listeners.ts';
import { SharedQuestions } from './group-questions.ts';

/** What the outside supplies. Planes are numbered from 0, and hear what they are told in the order in which they are told. */
export interface GroupPorts {
  direct(plane: number, message: GeneratedDirective): void;
  /** For the control plane, as if there were one data plane. */
  report(report: Report): void;
  endTurn(plane: number): void;
}

export class PlaneGroup implements Directed {
  private readonly count: number;
  private readonly ports: GroupPorts;
  private readonly listeners: SharedListeners;
  private readonly drains: SharedDrains;
  private readonly questions: SharedQuestions;
  /** Planes without a flow that wait for the others. */
  private readonly drained = new Set<number>();
  private generation = 0;
  private stopped = 0;
  private flowsClosed = 0;

  constructor(count: number, ports: GroupPorts) {
    assert(Number.isSafeInteger(count) && count >= 1, 'a group has a data plane');
    this.count = count;
    this.ports = ports;
    const report = (one: Report): void => ports.report(one);
    this.listeners = new SharedListeners(count, report);
    this.drains = new SharedDrains(count, report);
    this.questions = new SharedQuestions(count);
  }

  direct(message: GeneratedDirective): void {
    const { count, ports } = this;
    if (count === 1) return ports.direct(0, message);
    const { generation, directive } = message;
    this.generation = generation;
    if (directive.kind === 'Query') {
      const { request } = directive;
      for (const { plane, query } of this.questions.ask(directive)) {
        ports.direct(plane, { generation, directive: { kind: 'Query', request, query } });
      }
      return undefined;
    }
    this.listeners.directed(message);
    this.drains.directed(directive);
    for (let plane = 0; plane < count; plane += 1) {
      ports.direct(plane, { generation, directive: shareOf(directive, plane, count) });
    }
    return undefined;
  }

  endTurn(): void {
    for (let plane = 0; plane < this.count; plane += 1) this.ports.endTurn(plane);
  }

  /** A plane reports; its reports come in the order in which it made them. */
  heard(plane: number, report: Report): void {
    const { count, ports } = this;
    if (count === 1) return ports.report(report);
    switch (report.kind) {
      case 'ListenerOpened':
      case 'ListenerFailed':
      case 'ListenerClosed':
        return this.listeners.heard(plane, report);
      case 'BackendFlows':
        return this.drains.heard(plane, report);
      case 'BackendRefused':
        return ports.report({ ...report, flow: report.flow * count + plane });
      case 'FlowEnded':
        return ports.report({ ...report, flow: this.questions.nameOf(plane, report.flow) });
      case 'Answered': {
        const { request } = report;
        const answer = this.questions.answered(plane, report);
        return answer && ports.report({ kind: 'Answered', request, answer });
      }
      case 'Drained':
        return this.onDrained(plane);
      case 'Stopped':
        return this.onStopped(report);
      default:
        return ports.report(report);
    }
  }

  /** All leave together: a group of sockets that shrinks sends the clients of the others elsewhere. */
  private onDrained(plane: number): void {
    this.drained.add(plane);
    if (this.drained.size < this.count) return;
    this.direct({ generation: this.generation, directive: { kind: 'Stop' } });
    this.endTurn();
  }

  private onStopped(report: Extract<Report, { kind: 'Stopped' }>): void {
    this.stopped += 1;
    this.flowsClosed += report.flowsClosed;
    if (this.stopped < this.count) return;
    this.ports.report({ ...report, flowsClosed: this.flowsClosed });
  }
}

/** What one plane is told. Limits on sources stay whole: a source may be known to one plane only. */
function shareOf(directive: Directive, plane: number, count: number): Directive {
  switch (directive.kind) {
    case 'AddListener':
    case 'UpdateListener':
      return { ...directive, config: listenerShare(directive.config, plane, count) };
    case 'SetAccessLog': {
      const { settings } = directive;
      if (settings === undefined) return directive;
      const linesPerSecond = share(settings.linesPerSecond, plane, count);
      return { kind: 'SetAccessLog', settings: { ...settings, linesPerSecond } };
    }
    case 'Drain':
      return { ...directive, together: true };
    default:
      return directive;
  }
}

function listenerShare(config: ListenerConfig, plane: number, count: number): ListenerConfig {
  return { ...config, maxFlows: share(config.maxFlows, plane, count) };
}

/** Over all planes they add up to the whole, and no two differ by more than one. */
function share(whole: number, plane: number, count: number): number {
  return Math.floor(whole / count) + (plane < whole % count ? 1 : 0);
}
