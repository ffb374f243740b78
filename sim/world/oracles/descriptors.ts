/**
 * A process holds what it needs and nothing else: a descriptor for each listener, each live flow and each probe in flight, on
 * top of what its host had open when it started; and none when it has ended, by itself or not.
 */
import { always, type Property } from '../../properties.ts';
import type { ProcessNumber } from '../facts.ts';
import type { OracleKind } from '../oracle.ts';

const HOLDS: Property<'always'> = always('descriptors are listeners, flows and probes');
const LEAVES: Property<'always'> = always('a process that has ended holds no descriptor');

export const DESCRIPTORS: OracleKind = {
  name: 'descriptors',
  begin: (verdicts) => {
    /** What was open before, by process. One whose start nobody told of has a host of its own. */
    const before = new Map<ProcessNumber, number>();
    const beforeOf = (process: ProcessNumber): number => before.get(process) ?? 0;
    const ended = (process: ProcessNumber, left: number): void => {
      verdicts.check(LEAVES, left === beforeOf(process), () => {
        return `process ${process} began with ${beforeOf(process)} and left ${left}`;
      });
      before.delete(process);
    };
    return {
      hearings: {
        Started: ({ process, descriptors }) => void before.set(process, descriptors),
        TurnEnded: ({ process, descriptors, listeners, flows, probes }) => {
          const held = descriptors - beforeOf(process);
          verdicts.check(HOLDS, held === listeners + flows + probes, () => {
            return `process ${process} holds ${held} for ${listeners} listeners, ${flows} flows and ${probes} probes`;
          });
        },
        Crashed: ({ process, descriptors }) => ended(process, descriptors),
        // Where the planes are apart, the word that all is closed may still be on its way to whoever probes.
        Exited: ({ process, descriptors, probes }) => ended(process, descriptors - probes),
      },
    };
  },
};
