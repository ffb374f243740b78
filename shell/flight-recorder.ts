/**
 * Keeps the last inputs of a proxy in memory, and writes them to a file when something went wrong or somebody asks. A file
 * holds addresses of clients and the secret seeds: nobody but the owner may read it (doc/TRACES.md).
 */
import {
  draftProxy,
  encodeTrace,
  Recorder,
  type ControlOptions,
  type PlaneOptions,
  type ProxyMachines,
  type RecorderOptions,
  type SnapshotMemory,
  type TraceHeader,
} from '../core/index.ts';
import { writeTrace, writeTraceNow } from './trace-files.ts';
import { buildName } from './version.ts';

export interface RecorderSettings {
  /** Size of each of the two segments, bytes. */
  readonly segmentBytes: number;
  /** Where traces go. */
  readonly folder: string;
}

/** Why a trace is written. */
export type DumpReason = 'request' | 'assertion' | 'exception';

/** What a snapshot takes for each live flow, about, bytes; and for all that is no flow. */
const SNAPSHOT_BYTES_PER_FLOW = 400;
const SNAPSHOT_BYTES = 131_072;

export interface TraceBlocks {
  readonly blocks: Iterable<Uint8Array>;
  release(): void;
}

export interface FlightOptions {
  readonly plane: PlaneOptions;
  readonly control: ControlOptions;
  readonly snapshot: RecorderOptions['snapshot'];
  /** Live flows of all listeners. */
  readonly flows: () => number;
  /** Called once, when recording stops because there is no memory for a snapshot. */
  readonly stopped: (error: RangeError) => void;
}

/** A recorder of two machines that have heard nothing yet. */
export function recorderOf(
  settings: RecorderSettings,
  machines: ProxyMachines,
  options: Pick<FlightOptions, 'plane' | 'control' | 'stopped'>,
): FlightRecorder {
  // While nobody is served: the first draft looks into all classes, which takes longer than the copy.
  draftProxy(machines);
  return new FlightRecorder(settings, {
    ...options,
    snapshot: (memory) => draftProxy(machines, { payloads: 'lengths', memory }),
    flows: () => machines.data.flowCount,
  });
}

export class FlightRecorder {
  readonly recorder: Recorder;
  /** The text of the configuration as it is now. */
  configuration: () => string = () => '';
  private readonly settings: RecorderSettings;
  private readonly options: FlightOptions;
  private readonly build = buildName();
  /** One at a time; who asks meanwhile gets the one that is being written. */
  private dumping: Promise<string> | undefined;
  private hasStopped = false;

  constructor(settings: RecorderSettings, options: FlightOptions) {
    this.settings = settings;
    this.options = options;
    const { segmentBytes } = settings;
    this.recorder = new Recorder({
      segmentBytes,
      snapshot: (memory) => this.snapshot(memory),
      expectedBytes: () => SNAPSHOT_BYTES + SNAPSHOT_BYTES_PER_FLOW * options.flows(),
    });
  }

  /**
   * Writes what was recorded up to now, in slices of 64 KiB between which datagrams go on; the path. Rejects when the file
   * cannot be written, or the folder has as many traces as it may.
   */
  dump(reason: DumpReason): Promise<string> {
    this.dumping ??= this.write(reason).finally(() => {
      this.dumping = undefined;
    });
    return this.dumping;
  }

  /** The same at once, for a process that is about to end. Throws where `dump` rejects. */
  dumpNow(reason: DumpReason): string {
    return writeTraceNow(this.settings.folder, this.take(reason).blocks);
  }

  /** What was recorded up to now, as the blocks of a file. It stays as it is until it is released. */
  take(reason: DumpReason): TraceBlocks {
    const recording = this.recorder.take();
    const blocks = encodeTrace(this.header(reason), recording.segments);
    return { blocks, release: () => recording.release() };
  }

  /** Traffic goes on where a recording cannot. */
  private snapshot(memory: SnapshotMemory): ReturnType<RecorderOptions['snapshot']> {
    try {
      return this.options.snapshot(memory);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      if (!this.hasStopped) this.options.stopped(error);
      this.hasStopped = true;
      return undefined;
    }
  }

  private async write(reason: DumpReason): Promise<string> {
    const taken = this.take(reason);
    try {
      return await writeTrace(this.settings.folder, taken.blocks);
    } finally {
      taken.release();
    }
  }

  private header(reason: DumpReason): TraceHeader {
    const { plane, control } = this.options;
    return {
      build: this.build,
      runtime: process.version,
      writtenAt: new Date().toISOString(),
      reason,
      configuration: this.configuration(),
      plane,
      control,
    };
  }
}
