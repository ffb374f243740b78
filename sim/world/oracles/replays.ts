/**
 * What a process heard, written as a trace, encoded, decoded and replayed, brings what it brought: nothing that decides is
 * left out of a trace, and no decision depends on anything else. It keeps whole traces, so only one run in some is asked. Each
 * data plane has a trace of its own, and the control plane is in that of the first.
 */
import { present } from '../../../core/assert.ts';
import { decodeTrace } from '../../../core/trace.ts';
import { Recorder } from '../../../core/trace-recorder.ts';
import { reportOf } from '../../../core/trace-report.ts';
import { replayTrace } from '../../../core/trace-replay.ts';
import { always, type Property } from '../../properties.ts';
import type { ProcessNumber } from '../facts.ts';
import type { OracleKind } from '../oracle.ts';
import { PerPlane, planesOf } from '../per-plane.ts';
import { traceOf } from '../own-trace.ts';
import { controlOptionsOf, planeOptionsOf } from '../proxy-process.ts';
import type { ProxySpec } from '../spec.ts';

const REPLAYS: Property<'always'> = always('a trace replays to the recorded outputs');

/** A longer trace is replayed as far as it was kept. */
const TRACE_BYTES = 1 << 20;

const ONE_IN = 16;

interface Recorded {
  readonly recorder: Recorder;
  readonly process: ProcessNumber;
  readonly plane: number;
  readonly spec: ProxySpec;
}

/** Asks one run in `oneIn`, by its seed. */
export function replays(oneIn: number): OracleKind {
  return {
    name: 'replays',
    begin: (verdicts, spec) => {
      const [first] = spec.proxies;
      if (first !== undefined && first.randomSeed.low % oneIn !== 0) return { hearings: {} };
      const specs = new Map<ProcessNumber, ProxySpec>();
      const planes = new PerPlane((process, plane): Recorded => {
        const snapshot = (): undefined => undefined;
        const recorder = new Recorder({ segmentBytes: TRACE_BYTES, snapshot });
        const started = present(specs.get(process), 'it is started before it hears anything');
        return { recorder, process, plane, spec: started };
      });
      const of = (process: ProcessNumber, plane: number): Recorder =>
        planes.of(process, plane).recorder;
      return {
        hearings: {
          Started: ({ process, proxy }) => {
            specs.set(process, present(spec.proxies[proxy], 'a proxy of the world'));
            planes.begin(process, planesOf(spec, proxy));
          },
          DataInput: ({ process, plane, input, now }) => {
            of(process, plane).dataOutput(undefined);
            of(process, plane).dataInput(input, now);
          },
          DataTimeout: ({ process, plane, now }) => {
            of(process, plane).dataOutput(undefined);
            of(process, plane).dataInput({ kind: 'Timeout' }, now);
          },
          DataOutput: ({ process, plane, output }) => of(process, plane).dataOutput(output),
          ControlInput: ({ process, input, now }) => {
            of(process, 0).controlOutput(undefined);
            of(process, 0).controlInput(input, now);
          },
          ControlTimeout: ({ process, now }) => {
            of(process, 0).controlOutput(undefined);
            of(process, 0).controlInput({ kind: 'Timeout' }, now);
          },
          ControlOutput: ({ process, output }) => of(process, 0).controlOutput(output),
          TurnEnded: ({ process, plane, wake }) => {
            of(process, plane).dataOutput(undefined);
            of(process, plane).dataWake(wake?.at);
          },
        },
        finish: () => {
          for (const recorded of planes.values()) {
            const objection = objectionTo(recorded);
            verdicts.check(REPLAYS, objection === undefined, () => {
              return `process ${recorded.process}: ${objection ?? ''}`;
            });
          }
        },
      };
    },
  };
}

export const TRACES_REPLAY: OracleKind = replays(ONE_IN);

function objectionTo({ recorder, plane, spec }: Recorded): string | undefined {
  recorder.dataOutput(undefined);
  recorder.controlOutput(undefined);
  const decoded = decodeTrace(
    traceOf(recorder, planeOptionsOf(spec, plane), controlOptionsOf(spec)),
  );
  if (!decoded.ok) return `${decoded.problem} at byte ${decoded.offset}`;
  const replayed = replayTrace(decoded.trace);
  const { verdict, lines } = reportOf(decoded.trace, replayed);
  return verdict === 'same' ? undefined : lines.join('\n');
}
