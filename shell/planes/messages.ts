/** What the main thread and a worker say to each other: directives and reports (law 9), and what readers want to know. */
import type {
  GeneratedDirective,
  ListenerId,
  PlaneFigures,
  PlaneOptions,
  Report,
} from '../../core/index.ts';
import type { DumpReason, RecorderSettings } from '../flight-recorder.ts';
import type { TrainFigures } from '../drivers/outbox.ts';
import type { Sharing } from '../drivers/sockets.ts';
import type { ListenerSocketName } from '../metrics/kernel-drops.ts';

/** What a worker is made with. */
export interface WorkerSetup {
  readonly options: PlaneOptions;
  readonly sharing: Sharing;
  /** See timer.ts: one clock for all threads. */
  readonly clockStart: number;
  /** Undefined: nothing is recorded. */
  readonly recorder: RecorderSettings | undefined;
}

export type ToWorker =
  /** A turn of control; `Done` with the same number says that it is over. */
  | {
      readonly kind: 'Direct';
      readonly turn: number;
      readonly messages: readonly GeneratedDirective[];
    }
  | { readonly kind: 'Read'; readonly request: number }
  /** What was heard last, block by block. */
  | {
      readonly kind: 'Dump';
      readonly request: number;
      readonly reason: DumpReason;
      readonly configuration: string;
    }
  /** After `Ended`: nobody writes to the descriptor any more, and it may be closed. */
  | { readonly kind: 'Dismiss' };

export type FromWorker =
  /** Eight bytes to this descriptor, the number 1, end a wait. */
  | { readonly kind: 'Ready'; readonly wakeFd: number }
  /** The reports of a turn; where listeners opened or closed, those that are open now. */
  | {
      readonly kind: 'Heard';
      readonly reports: readonly Report[];
      readonly sockets: readonly WorkerSocket[] | undefined;
    }
  | { readonly kind: 'Done'; readonly turn: number }
  | { readonly kind: 'Figures'; readonly request: number; readonly figures: WorkerFigures }
  /** The next block of a trace; undefined: that was the last one. */
  | { readonly kind: 'Trace'; readonly request: number; readonly block: Uint8Array | undefined }
  | { readonly kind: 'RecordingStopped'; readonly error: string }
  /** A bug, and the thread ends. `trace` is the file that tells what led to it; undefined: nothing was recorded. */
  | {
      readonly kind: 'Failing';
      readonly trace: string | undefined;
      readonly message: string;
      readonly stack: string | undefined;
      readonly isAssertion: boolean;
    }
  /** Everything is closed, and the thread waits to be dismissed. */
  | { readonly kind: 'Ended'; readonly figures: WorkerFigures };

export interface WorkerFigures {
  readonly plane: PlaneFigures;
  readonly trains: TrainFigures;
}

export interface WorkerSocket extends ListenerSocketName {
  readonly listener: ListenerId;
}
