/**
 * What a process heard, written as a trace, encoded, decoded and replayed, brings what it brought: nothing that decides is
 * left out of a trace, and no decision depends on anything else. It keeps whole traces, so only one run in some is asked.
 */
import { present } from '../../../core/assert.ts';
import { decodeTrace } from '../../../core/trace.ts';
import { Recorder } from '../../../core/trace-recorder.ts';
import { reportOf } from '../../../core/trace-report.ts';
import { replayTrace } from '../../../core/trace-replay.ts';
import { always, type Property } from '../../properties.ts';
import type { ProcessNumber } from '../facts.ts';
import type { OracleKind } from '../oracle.ts';
import { traceOf } from '../own-trace.ts';
import { controlOptionsOf, planeOptionsOf } from '../proxy-process.ts';
import type { ProxySpec } from '../spec.ts';

const REPLAYS: Property<'always'> = always('a trace replays to the recorded outputs');

/** A longer trace is replayed as far as it was kept. */
const TRACE_BYTES = 1 << 20;

const ONE_IN = 16;

interface Recorded {
  readonly recorder: Recorder;
  readonly spec: ProxySpec;
}

/** Asks one run in `oneIn`, by its seed. */
export function replays(oneIn: number): OracleKind {
  return {
    name: 'replays',
    begin: (verdicts, spec) => {
      const [first] = spec.proxies;
      if (first !== undefined && first.randomSeed.low % oneIn !== 0) return { hearings: {} };
      const processes = new Map<ProcessNumber, Recorded>();
      const of = (process: ProcessNumber): Recorder =>
        present(processes.get(process), 'a process is started before it hears anything').recorder;
      return {
        hearings: {
          Started: ({ process, proxy }) => {
            const snapshot = (): undefined => undefined;
            const recorder = new Recorder({ segmentBytes: TRACE_BYTES, snapshot });
            const started = present(spec.proxies[proxy], 'a proxy of the world');
            processes.set(process, { recorder, spec: started });
          },
          DataInput: ({ process, input, now }) => {
            of(process).dataOutput(undefined);
            of(process).dataInput(input, now);
          },
          DataTimeout: ({ process, now }) => {
            of(process).dataOutput(undefined);
            of(process).dataInput({ kind: 'Timeout' }, now);
          },
          DataOutput: ({ process, output }) => of(process).dataOutput(output),
          ControlInput: ({ process, input, now }) => {
            of(process).controlOutput(undefined);
            of(process).controlInput(input, now);
          },
          ControlTimeout: ({ process, now }) => {
            of(process).controlOutput(undefined);
            of(process).controlInput({ kind: 'Timeout' }, now);
          },
          ControlOutput: ({ process, output }) => of(process).controlOutput(output),
          TurnEnded: ({ process, wake }) => {
            of(process).dataOutput(undefined);
            of(process).dataWake(wake?.at);
          },
        },
        finish: () => {
          for (const [process, recorded] of processes) {
            const objection = objectionTo(recorded);
            verdicts.check(REPLAYS, objection === undefined, () => {
              return `process ${process}: ${objection ?? ''}`;
            });
          }
        },
      };
    },
  };
}

export const TRACES_REPLAY: OracleKind = replays(ONE_IN);

function objectionTo({ recorder, spec }: Recorded): string | undefined {
  recorder.dataOutput(undefined);
  recorder.controlOutput(undefined);
  const decoded = decodeTrace(traceOf(recorder, planeOptionsOf(spec), controlOptionsOf(spec)));
  if (!decoded.ok) return `${decoded.problem} at byte ${decoded.offset}`;
  const replayed = replayTrace(decoded.trace);
  const { verdict, lines } = reportOf(decoded.trace, replayed);
  return verdict === 'same' ? undefined : lines.join('\n');
}
