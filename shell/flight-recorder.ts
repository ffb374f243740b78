/**
 * Keeps the last inputs of a proxy in memory, and writes them to a file when something went wrong or somebody asks. A file
 * holds addresses of clients and the secret seeds: nobody but the owner may read it (doc/TRACES.md).
 */
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { open, readdir, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import {
  encodeTrace,
  Recorder,
  type ControlOptions,
  type PlaneOptions,
  type RecorderOptions,
  type SnapshotMemory,
  type TraceHeader,
} from '../core/index.ts';
import { buildName } from './version.ts';

export interface RecorderSettings {
  /** Size of each of the two segments, bytes. */
  readonly segmentBytes: number;
  /** Where traces go. */
  readonly folder: string;
}

/** Why a trace is written. */
export type DumpReason = 'request' | 'assertion' | 'exception';

/** Traces in one folder: a proxy that fails again and again must not fill the disk. */
const TRACES_MAX = 16;

/** Also of one that its writer did not come to finish, because it was killed: that takes room as well. */
const TRACE_NAME = /^sozu-udp-.*\.trace(?:\.part)?$/;

/** What a snapshot takes for each live flow, about, bytes; and for all that is no flow. */
const SNAPSHOT_BYTES_PER_FLOW = 400;
const SNAPSHOT_BYTES = 131_072;

export interface FlightOptions {
  readonly plane: PlaneOptions;
  readonly control: ControlOptions;
  readonly snapshot: RecorderOptions['snapshot'];
  /** Live flows of all listeners. */
  readonly flows: () => number;
  /** Called once, when recording stops because there is no memory for a snapshot. */
  readonly stopped: (error: RangeError) => void;
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
    const { folder } = this.settings;
    checkRoom(folder, readdirSync(folder));
    const path = this.newPath();
    const part = `${path}.part`;
    const file = openSync(part, 'wx', 0o600);
    try {
      const { segments } = this.recorder.take();
      for (const block of encodeTrace(this.header(reason), segments)) writeWhole(file, block);
      fsyncSync(file);
      renameSync(part, path);
    } catch (error) {
      unlinkSync(part);
      throw error;
    } finally {
      closeSync(file);
    }
    return path;
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
    const { folder } = this.settings;
    const recording = this.recorder.take();
    try {
      checkRoom(folder, await readdir(folder));
      const path = this.newPath();
      const part = `${path}.part`;
      const file = await open(part, 'wx', 0o600);
      try {
        for (const block of encodeTrace(this.header(reason), recording.segments)) {
          await file.writeFile(block);
        }
        await file.sync();
        await rename(part, path);
      } catch (error) {
        await unlink(part);
        throw error;
      } finally {
        await file.close();
      }
      return path;
    } finally {
      recording.release();
    }
  }

  private newPath(): string {
    const at = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
    const unique = `${process.pid}-${randomBytes(4).toString('hex')}`;
    return join(this.settings.folder, `sozu-udp-${at}-${unique}.trace`);
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

function checkRoom(folder: string, names: readonly string[]): void {
  const traces = names.filter((name) => TRACE_NAME.test(name)).length;
  if (traces < TRACES_MAX) return;
  throw new Error(`${folder} has ${traces} traces, and no more are written there: remove some`);
}

function writeWhole(file: number, block: Uint8Array): void {
  for (let at = 0; at < block.length;) at += writeSync(file, block, at);
}
