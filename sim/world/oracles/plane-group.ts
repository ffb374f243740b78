/**
 * What a control plane hears of its data planes is what all of them say: a listener is open when each has opened it, closed
 * when each has closed it; a drain has the flows left that they have together; a stop is over when it is everywhere, and
 * counts what each cut short; a question is answered once. And what they are granted together is never more than the cap.
 */
import { formatAddress } from '../../../core/address.ts';
import type { RequestId } from '../../../core/brand.ts';
import type { Directive, GeneratedDirective, Report } from '../../../core/directives.ts';
import type { FlowAnswer, FlowQuery } from '../../../core/flow-commands.ts';
import type { PlaneInput } from '../../../core/plane-contract.ts';
import { always, sometimes, type Property } from '../../properties.ts';
import type { ProcessNumber } from '../facts.ts';
import type { OracleKind } from '../oracle.ts';
import { planesOf } from '../per-plane.ts';
import type { Verdicts } from '../verdicts.ts';

const GRANTED: Property<'always'> = always('planes are granted no more flows than their listener');
const AGREED: Property<'always'> = always('a control plane hears what all of its planes say');
const ONCE: Property<'always'> = always('a control plane hears everything once');
const NAMED: Property<'always'> = always('who asks for a flow by name is told of that flow');
const EXACT: Property<'always'> = always('planes share the whole cap of their listener');
const TOGETHER: Property<'always'> = always('a plane that drained stays while others have flows');
const SHARED: Property<'sometimes'> = sometimes('several planes serve one listener');

export const PLANE_GROUP: OracleKind = {
  name: 'plane-group',
  begin: (verdicts, spec) => {
    const groups = new Map<ProcessNumber, Group>();
    return {
      hearings: {
        Started: ({ process, proxy }) => {
          const count = planesOf(spec, proxy);
          if (count > 1) groups.set(process, new Group(count, verdicts));
        },
        ControlOutput: ({ process, output }) => {
          if (output.kind === 'Direct') groups.get(process)?.directed(output.message);
        },
        DataInput: ({ process, plane, input }) => {
          const group = groups.get(process);
          if (input.kind === 'Directed') group?.arrived(plane, input.message);
          group?.inputs.set(plane, input.kind);
        },
        DataTimeout: ({ process, plane }) => void groups.get(process)?.inputs.delete(plane),
        DataOutput: ({ process, plane, output }) => {
          if (output.kind === 'Report') groups.get(process)?.said(plane, output.report);
          else if (output.kind === 'CloseListener') groups.get(process)?.closes(plane);
        },
        ControlInput: ({ process, input }) => {
          if (input.kind === 'Reported') groups.get(process)?.heard(input.report);
        },
        TurnEnded: ({ process, plane, flows }) => groups.get(process)?.serves(plane, flows),
        Crashed: ({ process }) => void groups.delete(process),
        Exited: ({ process }) => void groups.delete(process),
      },
    };
  },
};

/** What planes said of one thing: a plane says it in order, and the last figure of each counts. */
interface Said {
  readonly figures: Map<number, number>;
  /** How often the control plane heard of it. */
  heard: number;
}

class Group {
  /** What each plane heard last, if that was not its timer. */
  readonly inputs = new Map<number, PlaneInput['kind']>();
  readonly #count: number;
  readonly #verdicts: Verdicts;
  readonly #said = new Map<string, Said>();
  readonly #asked = new Map<RequestId, FlowQuery>();
  readonly #caps = new Map<number, Caps>();
  /** Of each plane, when its turn ended last. */
  readonly #flows = new Map<number, number>();

  constructor(count: number, verdicts: Verdicts) {
    this.#count = count;
    this.#verdicts = verdicts;
  }

  directed({ generation, directive }: GeneratedDirective): void {
    if (directive.kind === 'Query') this.#asked.set(directive.request, directive.query);
    if (directive.kind === 'AddListener' || directive.kind === 'UpdateListener')
      this.#capsOf(directive.listener).directed.set(generation, directive.config.maxFlows);
  }

  arrived(plane: number, { generation, directive }: GeneratedDirective): void {
    if (directive.kind === 'RemoveListener') this.#capsOf(directive.listener).granted.delete(plane);
    if (directive.kind === 'AddListener' || directive.kind === 'UpdateListener')
      this.#grant({ plane, generation }, directive);
  }

  /** Before it is on its way to the control plane. */
  said(plane: number, report: Report): void {
    const about = aboutOf(report);
    if (about === undefined) return;
    const said = this.#said.get(about.key) ?? { figures: new Map(), heard: 0 };
    this.#said.set(about.key, said);
    said.figures.set(plane, about.figure);
  }

  heard(report: Report): void {
    const about = aboutOf(report);
    if (about === undefined) return;
    const said = this.#said.get(about.key);
    const figures = [...(said?.figures.values() ?? [])];
    const asked = report.kind === 'Answered' ? this.#asked.get(report.request) : undefined;
    const wanted = asked === undefined || asksAll(asked) ? this.#count : 1;
    if (report.kind === 'Answered') this.#checkName(asked, report.answer);
    const sum = figures.reduce((all, one) => all + one, 0);
    const isSo = about.isExact ? sum === about.figure : sum <= about.figure;
    this.#verdicts.check(AGREED, figures.length >= wanted && isSo, () => {
      return `${about.key} is heard with ${about.figure}; ${figures.length} of ${this.#count} planes say ${figures.join(', ')}`;
    });
    if (said === undefined) return;
    said.heard += 1;
    this.#verdicts.check(
      ONCE,
      !about.isOnce || said.heard === 1,
      () => `${about.key} is heard again`,
    );
  }

  serves(plane: number, flows: number): void {
    this.#flows.set(plane, flows);
    if (this.#serving.length > 1) this.#verdicts.see(SHARED);
  }

  /**
   * At the end of a turn, and for no other reason than that it has no flow left. Whoever leaves a group of sockets changes
   * where the datagrams of others go.
   */
  closes(plane: number): void {
    const isDrained = this.inputs.get(plane) === 'Flushed';
    this.#verdicts.check(TOGETHER, !isDrained || this.#serving.length === 0, () => {
      return `plane ${plane} leaves ${this.#serving.join(', ')}`;
    });
  }

  /** Whoever asks for one flow by its name hears of that flow. */
  #checkName(query: FlowQuery | undefined, answer: FlowAnswer): void {
    if (query?.kind !== 'ShowFlow' && query?.kind !== 'KillFlow') return;
    if (answer.kind !== 'Flow' && answer.kind !== 'Killed') return;
    this.#verdicts.check(NAMED, answer.flow.name === query.flow, () => {
      return `${query.kind} of ${query.flow} is answered with ${answer.flow.name}`;
    });
  }

  /** Planes with flows. */
  get #serving(): readonly number[] {
    return [...this.#flows].filter(([, flows]) => flows > 0).map(([plane]) => plane);
  }

  /** A plane that has not heard of another cap works by the old one. */
  #grant(
    { plane, generation }: Pick<Grant, 'generation'> & { readonly plane: number },
    { listener, config }: Extract<Directive, { kind: 'AddListener' | 'UpdateListener' }>,
  ): void {
    const { granted, directed } = this.#capsOf(listener);
    granted.set(plane, { generation, flows: config.maxFlows });
    const grants = [...granted.values()];
    const caps = grants.map((one) => directed.get(one.generation) ?? 0);
    const sum = grants.reduce((all, { flows }) => all + flows, 0);
    const print = (): string => {
      const shares = grants.map(({ flows }) => flows).join(' + ');
      return `listener ${listener}: ${shares} of ${caps.join(', ')}`;
    };
    this.#verdicts.check(GRANTED, sum <= Math.max(...caps), print);
    if (grants.length < this.#count || grants.some((one) => one.generation !== generation)) return;
    this.#verdicts.check(EXACT, sum === caps[0], print);
    for (const old of directed.keys()) if (old < generation) directed.delete(old);
  }

  #capsOf(listener: number): Caps {
    const known = this.#caps.get(listener) ?? { directed: new Map(), granted: new Map() };
    this.#caps.set(listener, known);
    return known;
  }
}

/** What a listener may have by each generation that is not everywhere yet, and what each plane has been given of it. */
interface Caps {
  readonly directed: Map<number, number>;
  readonly granted: Map<number, Grant>;
}

interface Grant {
  readonly generation: number;
  readonly flows: number;
}

/** One flow is in one plane, and a part of a list is of one. */
function asksAll(query: FlowQuery): boolean {
  if (query.kind === 'ListFlows') return query.slots === undefined && query.from === undefined;
  return query.kind === 'Why' || query.kind === 'CountFlows';
}

/** How many flows an answer speaks of. */
function flowsIn(answer: FlowAnswer): number {
  if (answer.kind === 'Flows') return answer.matched;
  if (answer.kind !== 'FlowCounts') return 0;
  return answer.counts.reduce((sum, { flows }) => sum + flows, 0);
}

interface About {
  readonly key: string;
  readonly figure: number;
  /** Whether the control plane must hear the very sum; else planes may say less by then. */
  readonly isExact: boolean;
  readonly isOnce: boolean;
}

/** What is the same thing for all planes. */
function aboutOf(report: Report): About | undefined {
  switch (report.kind) {
    case 'ListenerOpened': {
      const key = `open ${report.listener} of ${report.generation}`;
      return { key, figure: 0, isExact: true, isOnce: false };
    }
    case 'ListenerClosed': {
      const key = `closed ${report.listener} of ${report.generation}`;
      return { key, figure: report.flowsClosed, isExact: true, isOnce: true };
    }
    case 'BackendFlows': {
      const key = `drain ${report.change} of ${formatAddress(report.address)} ${report.cluster}`;
      return { key, figure: report.flows, isExact: false, isOnce: false };
    }
    case 'Answered':
      return {
        key: `answer ${report.request}`,
        figure: flowsIn(report.answer),
        isExact: true,
        isOnce: true,
      };
    case 'Stopped':
      return { key: 'stop', figure: report.flowsClosed, isExact: true, isOnce: true };
    default:
      return undefined;
  }
}
