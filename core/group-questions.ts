/**
 * What operators ask of live flows, where several data planes have some: each question goes to those that can know, and their
 * answers become one. The number of a flow tells its plane too, and so does a place in a list.
 */
import { formatAddress } from './address.ts';
import { assertNever, present } from './assert.ts';
import { LISTENERS_MAX, type RequestId } from './brand.ts';
import type { Directive, Report } from './directives.ts';
import {
  FLOWS_LISTED_MAX,
  type FlowAnswer,
  type FlowCount,
  type FlowCursor,
  type FlowLine,
  type FlowQuery,
  type WhyAnswer,
} from './flow-commands.ts';
import { flowName, flowNumbers, noSuchFlow } from './flow-names.ts';

type ListFlows = Extract<FlowQuery, { kind: 'ListFlows' }>;

/** One plane, and what it is asked. */
export interface Asking {
  readonly plane: number;
  readonly query: FlowQuery;
}

interface Answered {
  readonly plane: number;
  readonly answer: FlowAnswer;
}

interface Question {
  readonly query: FlowQuery;
  /** How many planes were asked. */
  readonly asked: number;
  readonly answers: Answered[];
}

export class SharedQuestions {
  private readonly count: number;
  private readonly open = new Map<RequestId, Question>();

  constructor(count: number) {
    this.count = count;
  }

  /** Whom to ask, and what. */
  ask({ request, query }: Extract<Directive, { kind: 'Query' }>): readonly Asking[] {
    const askings = this.askingsOf(query);
    this.open.set(request, { query, asked: askings.length, answers: [] });
    return askings;
  }

  /** The answer of all, once the last has come. */
  answered(
    plane: number,
    { request, answer }: Extract<Report, { kind: 'Answered' }>,
  ): FlowAnswer | undefined {
    const question = present(this.open.get(request), 'a plane answers what it was asked');
    const { query, asked, answers } = question;
    answers.push({ plane, answer });
    if (answers.length < asked) return undefined;
    this.open.delete(request);
    answers.sort((one, other) => one.plane - other.plane);
    return this.merge(query, answers);
  }

  /** The name of a flow of one plane among those of all. */
  nameOf(plane: number, name: string): string {
    const [listener, serial] = present(flowNumbers(name), 'a data plane names flows by numbers');
    return flowName(listener, serial * this.count + plane);
  }

  private askingsOf(query: FlowQuery): readonly Asking[] {
    switch (query.kind) {
      case 'ListFlows':
        return this.askForList(query);
      case 'ShowFlow':
      case 'KillFlow':
        return [this.askForOne(query)];
      case 'Why':
      case 'CountFlows':
        return this.planesFrom(0).map((plane) => ({ plane, query }));
      default:
        return assertNever(query);
    }
  }

  /** One plane after the other: a part of a list is a part of one of them. */
  private askForList(query: ListFlows): readonly Asking[] {
    const { from = { listener: 0, slot: 0 }, slots } = query;
    const first = Math.min(Math.floor(from.listener / LISTENERS_MAX), this.count - 1);
    const start = { listener: from.listener - first * LISTENERS_MAX, slot: from.slot };
    const rest = slots === undefined ? this.planesFrom(first + 1) : [];
    return [
      { plane: first, query: { ...query, from: start } },
      ...rest.map((plane) => ({ plane, query: { ...query, from: undefined } })),
    ];
  }

  /** What is no name is nobody's, whoever is asked. */
  private askForOne(query: Extract<FlowQuery, { kind: 'ShowFlow' | 'KillFlow' }>): Asking {
    const [listener, number] = flowNumbers(query.flow) ?? [];
    if (listener === undefined || number === undefined) return { plane: 0, query };
    const flow = flowName(listener, Math.floor(number / this.count));
    return { plane: number % this.count, query: { ...query, flow } };
  }

  private planesFrom(first: number): number[] {
    return Array.from({ length: Math.max(0, this.count - first) }, (_, nth) => first + nth);
  }

  private merge(query: FlowQuery, answers: readonly Answered[]): FlowAnswer {
    switch (query.kind) {
      case 'ListFlows':
        return this.mergeLists(query, answers);
      case 'ShowFlow':
      case 'KillFlow':
        return this.mergeOne(query.flow, answers);
      case 'Why':
        return this.mergeReasons(answers);
      case 'CountFlows':
        return { kind: 'FlowCounts', counts: sumsOf(answers) };
      default:
        return assertNever(query);
    }
  }

  private mergeLists(query: ListFlows, answers: readonly Answered[]): FlowAnswer {
    const limit = Math.min(query.limit, FLOWS_LISTED_MAX);
    const flows: FlowLine[] = [];
    let matched = 0;
    let next: FlowCursor | undefined;
    for (const { plane, answer } of answers) {
      if (answer.kind !== 'Flows') continue;
      matched += answer.matched;
      for (const line of answer.flows.slice(0, limit - flows.length)) {
        flows.push(this.named(plane, line));
      }
      next = this.placeAfter(plane, answer.next);
    }
    return next === undefined
      ? { kind: 'Flows', flows, matched }
      : { kind: 'Flows', flows, matched, next };
  }

  /** Where a list goes on that has come so far in this plane; undefined when nothing is left of it. */
  private placeAfter(plane: number, next: FlowCursor | undefined): FlowCursor | undefined {
    if (next !== undefined)
      return { listener: plane * LISTENERS_MAX + next.listener, slot: next.slot };
    return plane + 1 < this.count ? { listener: (plane + 1) * LISTENERS_MAX, slot: 0 } : undefined;
  }

  private mergeOne(name: string, [answered]: readonly Answered[]): FlowAnswer {
    const { plane, answer } = present(answered, 'one plane was asked');
    return answer.kind === 'Flow' || answer.kind === 'Killed'
      ? { kind: answer.kind, flow: this.named(plane, answer.flow) }
      : noSuchFlow(name);
  }

  /** All select alike; the client's flow, if it has one, is in one of them, and that is where it is served. */
  private mergeReasons(answers: readonly Answered[]): FlowAnswer {
    let found: WhyAnswer | undefined;
    for (const { plane, answer } of answers) {
      if (answer.kind !== 'Why') continue;
      if (answer.pinned !== undefined) {
        const { flow, fate } = answer.pinned;
        return { ...answer, pinned: { flow: this.named(plane, flow), fate } };
      }
      found ??= answer;
    }
    return found ?? present(answers[0], 'every plane was asked').answer;
  }

  private named(plane: number, line: FlowLine): FlowLine {
    return { ...line, name: this.nameOf(plane, line.name) };
  }
}

/** What planes count of the same listener, cluster and backend is one count. */
function sumsOf(answers: readonly Answered[]): FlowCount[] {
  const sums = new Map<string, FlowCount>();
  for (const { answer } of answers) {
    if (answer.kind !== 'FlowCounts') continue;
    for (const count of answer.counts) {
      const { listener, cluster, backend } = count;
      const key = `${formatAddress(listener)} ${formatAddress(backend)} ${cluster}`;
      const flows = count.flows + (sums.get(key)?.flows ?? 0);
      sums.set(key, { ...count, flows });
    }
  }
  return [...sums.values()];
}
