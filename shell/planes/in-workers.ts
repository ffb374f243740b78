/**
 * Data planes in threads of their own, each with a driver that waits in the kernel, and the group that makes one of them in
 * the eyes of the control plane. What is directed is done a moment later; `settle` says when.
 */
import {
  DataPlane,
  figuresOf,
  PlaneGroup,
  sumFigures,
  type GeneratedDirective,
  type Instant,
  type ListenerId,
  type PlaneFigures,
  type PlaneOptions,
} from '../../core/index.ts';
import { clockStart, monotonicNow } from '../drivers/timer.ts';
import type { Sharing } from '../drivers/sockets.ts';
import type { DumpReason, RecorderSettings } from '../flight-recorder.ts';
import { writeTrace } from '../trace-files.ts';
import { NO_TRAINS, type PlaneHooks, type PlaneHost } from './host.ts';
import type { WorkerSocket } from './messages.ts';
import { PlaneThread } from './plane-thread.ts';

export class PlanesInWorkers implements PlaneHost {
  readonly plane: DataPlane;
  readonly options: PlaneOptions;
  private readonly threads: readonly PlaneThread[];
  private readonly group: PlaneGroup;
  private readonly settling: Settling[] = [];
  private readonly recorder: RecorderSettings | undefined;
  private hooks: PlaneHooks | undefined;

  /** `optionsOf` gives each plane its own secrets. */
  constructor(
    optionsOf: readonly PlaneOptions[],
    sharing: Sharing,
    recorder: RecorderSettings | undefined,
  ) {
    const [first] = optionsOf;
    if (first === undefined) throw new Error('there is at least one worker');
    this.options = first;
    this.plane = new DataPlane(first);
    this.recorder = recorder;
    const idle = { plane: figuresOf(this.plane), trains: NO_TRAINS };
    this.threads = optionsOf.map((options, at) => {
      const setup = { options, sharing, clockStart: clockStart(), recorder };
      return new PlaneThread(setup, idle, {
        heard: (report) => this.group.heard(at, report),
        done: () => this.checkSettled(),
        recordingStopped: (error) => this.hooks?.recordingStopped(error),
        failing: (error, trace) => this.hooks?.failing(error, trace),
      });
    });
    this.group = new PlaneGroup(optionsOf.length, {
      direct: (plane, message) => this.threads[plane]?.direct(message),
      endTurn: (plane) => this.threads[plane]?.endTurn(),
      report: (report) => this.hooks?.report(report),
    });
  }

  begin(hooks: PlaneHooks): void {
    this.hooks = hooks;
  }

  get about(): PlaneHost['about'] {
    return { driver: 'mmsg', workers: this.threads.length };
  }

  get figures(): PlaneFigures {
    return sumFigures(this.each);
  }

  get each(): readonly PlaneFigures[] {
    return this.threads.map(({ figures }) => figures.plane);
  }

  get trains(): PlaneHost['trains'] {
    const each = this.threads.map(({ figures }) => figures.trains);
    return {
      trains: each.reduce((sum, one) => sum + one.trains, 0),
      datagramsInTrains: each.reduce((sum, one) => sum + one.datagramsInTrains, 0),
      trainsRefused: each.reduce((sum, one) => sum + one.trainsRefused, 0),
    };
  }

  get sockets(): readonly WorkerSocket[] {
    return this.threads.flatMap(({ sockets }) => sockets);
  }

  direct(message: GeneratedDirective): void {
    this.group.direct(message);
  }

  endTurn(): void {
    this.group.endTurn();
  }

  now(): Instant {
    return monotonicNow();
  }

  async refresh(): Promise<PlaneFigures> {
    await Promise.all(this.threads.map((thread) => thread.refresh()));
    return this.figures;
  }

  /** What is directed within the present call counts too: the turn ends with it. */
  settle(done: () => void): void {
    queueMicrotask(() => {
      this.settling.push({ turns: this.threads.map(({ directed }) => directed), done });
      this.checkSettled();
    });
  }

  portOf(listener: ListenerId): number | undefined {
    return this.sockets.find((socket) => socket.listener === listener)?.port;
  }

  async dump(reason: DumpReason, configuration: string): Promise<readonly string[]> {
    const { recorder } = this;
    if (recorder === undefined) return [];
    return Promise.all(
      this.threads.map(async (thread) => {
        return writeTrace(recorder.folder, await thread.trace(reason, configuration));
      }),
    );
  }

  async end(): Promise<void> {
    await Promise.all(this.threads.map(({ ended }) => ended));
  }

  private checkSettled(): void {
    for (;;) {
      const [next] = this.settling;
      if (next === undefined) return;
      if (this.threads.some((thread, at) => thread.done < (next.turns[at] ?? 0))) return;
      this.settling.shift();
      next.done();
    }
  }
}

/** Whoever waits until each thread has done so many turns of control. */
interface Settling {
  readonly turns: readonly number[];
  readonly done: () => void;
}
