/**
 * Records what every process of a world hears, as production does, and holds the trace against the machines: encoded, decoded
 * and replayed, each input must bring what it brought. With small segments the trace begins with a snapshot that was taken
 * somewhere on the way, so restoring is tried too.
 */
import { present } from '../../core/assert.ts';
import type { ControlMachine } from '../../core/control-contract.ts';
import { ControlPlane, type ControlOptions } from '../../core/control-plane.ts';
import { DataPlane } from '../../core/data-plane.ts';
import type { DataMachine, PlaneOptions } from '../../core/plane-contract.ts';
import { restoreProxy, snapshotProxy } from '../../core/proxy-snapshot.ts';
import { decodeTrace, encodeTrace } from '../../core/trace.ts';
import { Recorder } from '../../core/trace-recorder.ts';
import { replayTrace, type Difference } from '../../core/trace-replay.ts';
import { always, type Observer, type Property } from '../properties.ts';

const READS: Property<'always'> = always('a trace of a process reads back');
const REPLAYS: Property<'always'> = always('a trace of a process replays to what was recorded');
const MISSES_NOTHING: Property<'always'> = always('a recorder misses no input');

/** A process as whoever stands between its machines and its pumps sees it. */
export interface Tappable {
  readonly number: number;
  readonly dataOptions: PlaneOptions;
  readonly controlOptions: ControlOptions;
  /** What the pumps would drive, and the machine in it, which may be exchanged. */
  readonly data: DataMachine & { readonly machine: DataPlane };
  readonly control: ControlMachine & { readonly machine: ControlPlane };
}

export interface Tapped {
  readonly data: DataMachine;
  readonly control: ControlMachine;
}

/** Puts something between machines and pumps of each process that is made. */
export interface Taps {
  tap(process: Tappable): Tapped;
}

interface Recorded {
  readonly process: Tappable;
  readonly recorder: Recorder;
}

export class OwnTraces implements Taps {
  readonly #segmentBytes: number;
  readonly #recorded: Recorded[] = [];

  constructor(segmentBytes: number) {
    this.#segmentBytes = segmentBytes;
  }

  tap(process: Tappable): Tapped {
    const { data, control } = process;
    const recorder = new Recorder({
      segmentBytes: this.#segmentBytes,
      snapshot: () => snapshotProxy({ data: data.machine, control: control.machine }),
    });
    this.#recorded.push({ process, recorder });
    return { data: recorder.tapData(data), control: recorder.tapControl(control) };
  }

  /** Replays all of them. What is wrong with the first that does not do as it did, after the observer was told. */
  judge(observer: Observer): string | undefined {
    for (const recorded of this.#recorded) {
      const problem = judgeOne(recorded, observer);
      if (problem !== undefined) return `process ${recorded.process.number}: ${problem}`;
    }
    return undefined;
  }
}

function judgeOne({ process, recorder }: Recorded, observer: Observer): string | undefined {
  const { missed } = recorder;
  if (!observer.check(MISSES_NOTHING, missed === 0)) return `${missed} inputs were missed`;
  const { dataOptions, controlOptions } = process;
  const decoded = decodeTrace(traceOf(recorder, dataOptions, controlOptions));
  const reads = decoded.ok && !decoded.trace.truncated;
  if (!observer.check(READS, reads)) return decoded.ok ? 'it is cut off' : decoded.problem;
  if (!decoded.ok) return undefined;
  const { difference, failure, inputs } = replayTrace(decoded.trace, restoring());
  const wrong = difference ?? failure;
  if (observer.check(REPLAYS, wrong === undefined)) return undefined;
  return `of ${inputs} inputs, ${told(present(wrong, 'something is wrong'))}`;
}

/** What a recorder kept, as the file that production would write. */
export function traceOf(
  recorder: Recorder,
  plane: PlaneOptions,
  control: ControlOptions,
): Uint8Array<ArrayBuffer> {
  const texts = { build: 'world', runtime: '', writtenAt: '', reason: '', configuration: '' };
  const header = { ...texts, plane, control };
  const blocks = [...encodeTrace(header, recorder.take().segments)];
  const bytes = new Uint8Array(blocks.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const block of blocks) {
    bytes.set(block, at);
    at += block.length;
  }
  return bytes;
}

/** How a replay makes machines, and brings them to where a snapshot was taken. */
function restoring(): Parameters<typeof replayTrace>[1] {
  let data: DataPlane | undefined;
  let control: ControlPlane | undefined;
  return {
    data: (options) => (data = new DataPlane(options)),
    control: (options) => (control = new ControlPlane(options)),
    restore: (_, snapshot) =>
      restoreProxy(
        {
          data: present(data, 'the machines were made'),
          control: present(control, 'the machines were made'),
        },
        snapshot,
      ),
  };
}

function told({ entry, kind, thrown, outputs }: Difference): string {
  const { number, step } = entry;
  const what = `${step.machine} ${step.input.kind}`;
  const now = thrown instanceof Error ? thrown.message : outputs.map((one) => one.kind).join(', ');
  return `number ${number} (${what}) goes otherwise: ${kind}, ${now}`;
}
