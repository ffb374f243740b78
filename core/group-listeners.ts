/**
 * Listeners that several data planes open each for itself, with one address: told of as if there were one socket. Reports of
 * one plane keep their order, those of two do not, so that a number may be on its second listener here and its first there;
 * generations tell them apart.
 */
import { assertNever, present } from './assert.ts';
import type { ListenerId } from './brand.ts';
import type { GeneratedDirective, Report } from './directives.ts';

export type ListenerReport = Extract<
  Report,
  { kind: 'ListenerOpened' | 'ListenerFailed' | 'ListenerClosed' }
>;

type Opening = Exclude<ListenerReport, { kind: 'ListenerClosed' }>;

/** From the directive that adds a listener until the last plane has closed it. */
interface Shared {
  readonly listener: ListenerId;
  /** The generations of the directives that add and remove it. */
  readonly added: number;
  removed: number | undefined;
  /** The planes that have it open. */
  readonly open: Set<number>;
  /** What was said last of opening it. After `gone` nothing is: one plane has given up, and the control plane removes it. */
  told: 'nothing' | 'open' | 'failing' | 'gone';
  closed: number;
  flowsClosed: number;
}

export class SharedListeners {
  private readonly count: number;
  private readonly report: (report: Report) => void;
  /** In the order of the directives. */
  private readonly all: Shared[] = [];

  constructor(count: number, report: (report: Report) => void) {
    this.count = count;
    this.report = report;
  }

  /** What all planes are told. */
  directed({ generation, directive }: GeneratedDirective): void {
    if (directive.kind === 'AddListener') this.all.push(newShared(directive.listener, generation));
    else if (directive.kind === 'RemoveListener') {
      const one = this.all.find(
        ({ listener, removed }) => listener === directive.listener && removed === undefined,
      );
      if (one !== undefined) one.removed = generation;
    }
  }

  heard(plane: number, report: ListenerReport): void {
    switch (report.kind) {
      case 'ListenerOpened':
        return this.opened(plane, report);
      case 'ListenerFailed':
        return this.failed(plane, report);
      case 'ListenerClosed':
        return this.closed(report);
      default:
        return assertNever(report);
    }
  }

  /** Open is what all have open. */
  private opened(plane: number, report: Opening): void {
    const one = this.added(report);
    one.open.add(plane);
    if (one.told === 'gone' || one.open.size < this.count) return;
    one.told = 'open';
    this.report(report);
  }

  /** The first to fail says so for all that do before it is open; whoever gives up does so for all. */
  private failed(plane: number, report: Extract<Opening, { kind: 'ListenerFailed' }>): void {
    const one = this.added(report);
    one.open.delete(plane);
    const news = report.retry === undefined ? 'gone' : 'failing';
    if (one.told === 'gone' || one.told === news) return;
    one.told = news;
    this.report(report);
  }

  private closed(report: Extract<ListenerReport, { kind: 'ListenerClosed' }>): void {
    const { listener, generation } = report;
    const found = this.all.findIndex(
      (one) => one.listener === listener && one.removed === generation,
    );
    const one = present(this.all[found], 'a listener that closes was to be removed');
    one.closed += 1;
    one.flowsClosed += report.flowsClosed;
    if (one.closed < this.count) return;
    this.all.splice(found, 1);
    this.report({ ...report, flowsClosed: one.flowsClosed });
  }

  private added({ listener, generation }: Opening): Shared {
    const found = this.all.find((one) => one.listener === listener && one.added === generation);
    return present(found, 'a listener that opens was added');
  }
}

function newShared(listener: ListenerId, added: number): Shared {
  return {
    listener,
    added,
    removed: undefined,
    open: new Set(),
    told: 'nothing',
    closed: 0,
    flowsClosed: 0,
  };
}
