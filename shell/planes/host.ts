/**
 * Where the data planes of a proxy live, as the rest of the shell sees it: in this thread, or in workers of their own. What it
 * is told are directives, what it tells are reports, as between the two machines (law 9).
 */
import type {
  DataMachine,
  DataPlane,
  Directed,
  Instant,
  ListenerId,
  PlaneFigures,
  PlaneOptions,
  Report,
} from '../../core/index.ts';
import type { TrainFigures } from '../drivers/outbox.ts';
import type { DumpReason } from '../flight-recorder.ts';
import type { ListenerSocketName } from '../metrics/kernel-drops.ts';

export interface PlaneHost extends Directed {
  /** The plane in this thread; where all are in workers, one that never hears anything. */
  readonly plane: DataPlane;
  /** What that plane was made with. */
  readonly options: PlaneOptions;
  /** What moves the datagrams, and how many threads, for the log. */
  readonly about: { readonly driver: string; readonly workers: number };
  /** As they are in this thread; of workers, as last read. */
  readonly figures: PlaneFigures;
  /** The same of each plane by itself. */
  readonly each: readonly PlaneFigures[];
  /** What segmentation offload did, in all. */
  readonly trains: Readonly<TrainFigures>;
  /** Open listeners as the kernel knows them, where it tells. */
  readonly sockets: readonly ListenerSocketName[];
  /** Nothing is directed before. */
  begin(hooks: PlaneHooks): void;
  now(): Instant;
  /** Reads the figures anew. */
  refresh(): Promise<PlaneFigures>;
  /** `done` is called when all that was directed has been done and its reports were heard: at once in this thread. */
  settle(done: () => void): void;
  /** The port a listener is bound to. */
  portOf(listener: ListenerId): number | undefined;
  /** Writes a trace of what each plane heard that is not in this thread; the paths. */
  dump(reason: DumpReason, configuration: string): Promise<readonly string[]>;
  /** After everything was closed. */
  end(): Promise<void>;
}

/** Of a driver without offload. */
export const NO_TRAINS: Readonly<TrainFigures> = {
  trains: 0,
  datagramsInTrains: 0,
  trainsRefused: 0,
};

export interface PlaneHooks {
  /** Stands between a plane in this thread and its pump. */
  readonly tap: (machine: DataPlane) => DataMachine;
  readonly report: (report: Report) => void;
  /** Recording in another thread has stopped. */
  readonly recordingStopped: (error: string) => void;
  /** A bug that was recorded ends another thread, and the process with it. `trace` is the file that tells what led to it. */
  readonly failing: (error: string, trace: string) => void;
}
