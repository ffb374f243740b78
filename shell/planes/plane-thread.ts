/**
 * One worker, as the main thread sees it: what is said to it and what it answers. Everything crosses as a message; a write to
 * its eventfd ends a wait in which it would not look for any.
 */
import { writeSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { AssertionError, type GeneratedDirective, type Report } from '../../core/index.ts';
import type { DumpReason } from '../flight-recorder.ts';
import type { PlaneHooks } from './host.ts';
import type { FromWorker, ToWorker, WorkerFigures, WorkerSetup, WorkerSocket } from './messages.ts';

/** What an eventfd takes. */
const ONE = new Uint8Array(new BigUint64Array([1n]).buffer);

export interface ThreadHooks extends Pick<PlaneHooks, 'recordingStopped' | 'failing'> {
  readonly heard: (report: Report) => void;
  /** It has done another turn of control, or nothing more will come. */
  readonly done: () => void;
}

/** An error in it is one of this thread: it ends the process as any bug does. */
export class PlaneThread {
  /** As last read. */
  figures: WorkerFigures;
  sockets: readonly WorkerSocket[] = [];
  /** Turns of control that it was told, and that it has done. */
  directed = 0;
  done = 0;
  /** Settles when the thread is no more. */
  readonly ended: Promise<void>;
  private readonly worker: Worker;
  private readonly hooks: ThreadHooks;
  private directives: GeneratedDirective[] = [];
  private wakeFd: number | undefined;
  private requests = 0;
  private readonly reading = new Map<number, () => void>();
  private readonly traces = new Map<number, Trace>();
  private isOver = false;

  constructor(setup: WorkerSetup, idle: WorkerFigures, hooks: ThreadHooks) {
    this.figures = idle;
    this.hooks = hooks;
    this.worker = new Worker(new URL('worker.js', import.meta.url), { workerData: setup });
    this.worker.on('message', (message: FromWorker) => this.hear(message));
    this.worker.on('error', (error) => {
      throw error;
    });
    this.ended = new Promise((resolve) => {
      this.worker.once('exit', () => resolve());
    });
  }

  direct(message: GeneratedDirective): void {
    this.directives.push(message);
  }

  endTurn(): void {
    // Once it is over nothing is done, and nobody is to wait for it.
    if (this.directives.length === 0 || this.isOver) return;
    this.directed += 1;
    this.say({ kind: 'Direct', turn: this.directed, messages: this.directives });
    this.directives = [];
  }

  refresh(): Promise<void> {
    if (this.isOver) return Promise.resolve();
    this.requests += 1;
    const request = this.requests;
    return new Promise((resolve) => {
      this.reading.set(request, resolve);
      this.say({ kind: 'Read', request });
    });
  }

  /** The blocks of what it recorded. Rejects when it is over: that is gone with it. */
  trace(reason: DumpReason, configuration: string): Promise<readonly Uint8Array[]> {
    if (this.isOver) return Promise.reject(gone());
    this.requests += 1;
    const request = this.requests;
    return new Promise((whole, fail) => {
      this.traces.set(request, { blocks: [], whole, fail });
      this.say({ kind: 'Dump', request, reason, configuration });
    });
  }

  private say(message: ToWorker): void {
    if (this.isOver) return;
    // oxlint-disable-next-line require-post-message-target-origin -- a thread has no origin
    this.worker.postMessage(message);
    this.wake();
  }

  /** Before it is ready it will look by itself; once it was dismissed, its descriptor may be another's. */
  private wake(): void {
    if (this.wakeFd !== undefined) writeSync(this.wakeFd, ONE);
  }

  private hear(message: FromWorker): void {
    switch (message.kind) {
      case 'Ready':
        this.wakeFd = message.wakeFd;
        // What was said since it last looked.
        return this.wake();
      case 'Heard':
        this.sockets = message.sockets ?? this.sockets;
        return message.reports.forEach((report) => this.hooks.heard(report));
      case 'Done':
        this.done = message.turn;
        return this.hooks.done();
      case 'Figures':
        this.figures = message.figures;
        return this.endReading(message.request);
      case 'Trace':
        return this.hearTrace(message.request, message.block);
      case 'RecordingStopped':
        return this.hooks.recordingStopped(message.error);
      case 'Failing':
        return this.fail(message);
      case 'Ended':
        return this.over(message.figures);
    }
  }

  /** An error loses its class on its way, by which the exit code is chosen. */
  private fail(failing: Extract<FromWorker, { kind: 'Failing' }>): never {
    const { message, stack, trace, isAssertion } = failing;
    if (trace !== undefined) this.hooks.failing(message, trace);
    const error = isAssertion ? new AssertionError(message) : new Error(message);
    if (stack !== undefined) error.stack = stack;
    throw error;
  }

  private endReading(request: number): void {
    this.reading.get(request)?.();
    this.reading.delete(request);
  }

  private hearTrace(request: number, block: Uint8Array | undefined): void {
    if (block === undefined) return this.endTrace(request);
    this.traces.get(request)?.blocks.push(block);
    return undefined;
  }

  private endTrace(request: number): void {
    const trace = this.traces.get(request);
    this.traces.delete(request);
    trace?.whole(trace.blocks);
  }

  /** Nothing is answered any more: what it did last is what there is. */
  private over(figures: WorkerFigures): void {
    this.say({ kind: 'Dismiss' });
    this.isOver = true;
    this.figures = figures;
    this.done = this.directed;
    for (const answered of this.reading.values()) answered();
    this.reading.clear();
    for (const { fail } of this.traces.values()) fail(gone());
    this.traces.clear();
    this.hooks.done();
  }
}

/** One that is being told, block by block. */
interface Trace {
  readonly blocks: Uint8Array[];
  readonly whole: (blocks: readonly Uint8Array[]) => void;
  readonly fail: (error: Error) => void;
}

function gone(): Error {
  return new Error('the worker has ended, and what it recorded with it');
}
