/**
 * A process holds what it needs and nothing else: a descriptor for each listener, each live flow and each probe in flight, on
 * top of what its host had open when it started; and none when it has ended, by itself or not. A probe that was ended is not
 * in flight, whatever its host says.
 */
import { always, type Property } from '../../properties.ts';
import type { ProcessNumber, ProcessSample } from '../facts.ts';
import type { ProbeId } from '../../../core/health/probe-contract.ts';
import type { OracleKind } from '../oracle.ts';

const HOLDS: Property<'always'> = always('descriptors are listeners, flows and probes');
const ENDS: Property<'always'> = always('a probe that was ended holds no descriptor');
const LEAVES: Property<'always'> = always('a process that has ended holds no descriptor');

export const DESCRIPTORS: OracleKind = {
  name: 'descriptors',
  begin: (verdicts) => {
    /** What was open before, by process. One whose start nobody told of has a host of its own. */
    const before = new Map<ProcessNumber, number>();
    const asked = new Map<ProcessNumber, Set<ProbeId>>();
    /** Of each plane the latest one. */
    const samples = new Map<ProcessNumber, Map<number, ProcessSample>>();
    const samplesOf = (sample: ProcessSample): Iterable<ProcessSample> => {
      const { process, plane } = sample;
      const known = samples.get(process) ?? new Map<number, ProcessSample>();
      samples.set(process, known.set(plane, sample));
      return known.values();
    };
    const askedBy = (process: ProcessNumber): Set<ProbeId> => {
      const known = asked.get(process) ?? new Set();
      asked.set(process, known);
      return known;
    };
    const beforeOf = (process: ProcessNumber): number => before.get(process) ?? 0;
    const ended = (process: ProcessNumber, left: number): void => {
      verdicts.check(LEAVES, left === beforeOf(process), () => {
        return `process ${process} began with ${beforeOf(process)} and left ${left}`;
      });
      before.delete(process);
      asked.delete(process);
      samples.delete(process);
    };
    return {
      hearings: {
        Started: ({ process, descriptors }) => void before.set(process, descriptors),
        TurnEnded: (sample) => {
          const { process, descriptors, probes } = sample;
          let [listeners, flows] = [0, 0];
          for (const one of samplesOf(sample)) {
            listeners += one.listeners;
            flows += one.flows;
          }
          const held = descriptors - beforeOf(process);
          verdicts.check(HOLDS, held === listeners + flows + probes, () => {
            return `process ${process} holds ${held} for ${listeners} listeners, ${flows} flows and ${probes} probes`;
          });
          const { size } = askedBy(process);
          verdicts.check(ENDS, probes <= size, () => {
            return `process ${process} holds ${probes} probes, of which ${size} go on`;
          });
        },
        ControlOutput: ({ process, output }) => {
          if (output.kind === 'StartProbe') askedBy(process).add(output.probe);
          else if (output.kind === 'CancelProbe') askedBy(process).delete(output.probe);
        },
        ControlInput: ({ process, input }) => {
          if (input.kind === 'ProbeAnswered') askedBy(process).delete(input.probe);
        },
        Crashed: ({ process, descriptors }) => ended(process, descriptors),
        // Where the planes are apart, the word that all is closed may still be on its way to whoever probes.
        Exited: ({ process, descriptors, probes }) => ended(process, descriptors - probes),
      },
    };
  },
};
