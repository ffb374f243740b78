/**
 * Whoever has nothing to do sleeps: a wake-up that was asked for and is not early has something to do, work that goes on by
 * itself comes to an end, and a timer that fired is not asked for again at the same instant without an end.
 */
import type { Wake } from '../../../core/plane-contract.ts';
import type { Instant } from '../../../core/time.ts';
import { always, alwaysAtMost, type NumericProperty, type Property } from '../../properties.ts';
import type { ProcessSample } from '../facts.ts';
import type { OracleKind } from '../oracle.ts';
import { PerPlane } from '../per-plane.ts';

const NEEDED: Property<'always'> = always('a wake-up that is due has something to do');
const SLICES: NumericProperty = alwaysAtMost('work in slices comes to an end');
const CONTROL: NumericProperty = alwaysAtMost('a control plane is not woken over and over');

/** Slices in a row that show nothing: a dozen fill a Maglev table of 65,537 places, for each of some clusters. */
const SLICES_MAX = 256;

/** Timers may fire early, and then again: each time half of what is left is left. */
const WAKES_AT_ONCE_MAX = 64;

interface Sleeper {
  /** What its data plane asked for last. */
  wake: Wake | undefined;
  /** What was heard and said in this turn. */
  fired: Instant | undefined;
  busy: boolean;
  fruitless: number;
  controlAt: Instant | undefined;
  controlWakes: number;
}

export const IDLE_SPIN: OracleKind = {
  name: 'idle-spin',
  begin: (verdicts) => {
    const planes = new PerPlane(newSleeper);
    const turnEnded = (sleeper: Sleeper, { process, now, wake }: ProcessSample): void => {
      const { fired, busy, wake: before } = sleeper;
      sleeper.fired = undefined;
      sleeper.busy = false;
      sleeper.wake = wake;
      if (fired === undefined || busy || before === undefined || fired < before.at) {
        sleeper.fruitless = 0;
        return;
      }
      sleeper.fruitless += 1;
      const inSlices = before.reason === 'sweep' || before.reason === 'maglev-build';
      verdicts.check(NEEDED, inSlices, () => {
        return `process ${process} asked for ${before.at} (${before.reason}), was woken at ${fired} and did nothing; it is ${now}`;
      });
      verdicts.measure(SLICES, sleeper.fruitless, SLICES_MAX, () => `process ${process}`);
    };
    return {
      hearings: {
        DataInput: ({ process, plane, input }) => {
          if (input.kind !== 'Flushed') planes.of(process, plane).busy = true;
        },
        DataTimeout: ({ process, plane, now }) => void (planes.of(process, plane).fired = now),
        DataOutput: ({ process, plane }) => void (planes.of(process, plane).busy = true),
        TurnEnded: (sample) => turnEnded(planes.of(sample.process, sample.plane), sample),
        ControlInput: ({ process }) => void (planes.of(process, 0).controlWakes = 0),
        ControlOutput: ({ process }) => void (planes.of(process, 0).controlWakes = 0),
        ControlTimeout: ({ process, now }) => {
          const sleeper = planes.of(process, 0);
          sleeper.controlWakes = sleeper.controlAt === now ? sleeper.controlWakes + 1 : 1;
          sleeper.controlAt = now;
          const { controlWakes: wakes } = sleeper;
          verdicts.measure(CONTROL, wakes, WAKES_AT_ONCE_MAX, () => `process ${process} at ${now}`);
        },
        Crashed: ({ process }) => planes.delete(process),
        Exited: ({ process }) => planes.delete(process),
      },
    };
  },
};

function newSleeper(): Sleeper {
  return {
    wake: undefined,
    fired: undefined,
    busy: false,
    fruitless: 0,
    controlAt: undefined,
    controlWakes: 0,
  };
}
