/**
 * What must hold between a run and others like it. Its script is played again with something changed that nobody should
 * notice: other clocks, other turns, machines that were put away and taken out again. Each costs a run, so a sweep asks one
 * seed in twenty.
 */
import { ControlPlane } from '../../core/control-plane.ts';
import { DataPlane } from '../../core/data-plane.ts';
import { restoreSnapshot, takeSnapshot } from '../../core/snapshot.ts';
import { after, microseconds } from '../../core/time.ts';
import { always, type Observer, type Property } from '../properties.ts';
import { seededStreams } from '../random.ts';
import type { Seed } from '../seed.ts';
import { HOST_DEFAULTS } from './os-faults.ts';
import { TURN_SIZE } from './oracles/turn-size.ts';
import type { ProxyProcess } from './proxy-process.ts';
import { runScript, type WorldRunResult } from './run-world.ts';
import type { WorldSpec } from './spec.ts';
import { Verdicts, ViolationFound } from './verdicts.ts';
import type { World } from './world.ts';

const SHIFTS: Property<'always'> = always('outputs do not depend on a constant added to time');
const RESTORES: Property<'always'> = always('restored machines go on as the first would have');

/** A run without a violation, and its seed. */
export type Original = Pick<WorldRunResult, 'spec' | 'script' | 'digest' | 'events'> & {
  readonly seed: Seed;
};

/** A relation that does not hold. */
export interface BrokenRelation {
  readonly property: string;
  readonly detail: string;
}

/** Whether a sweep asks about the relations of this seed's run. */
export function isRelated(seed: Seed): boolean {
  return seed.low % 20 === 0;
}

/** Plays the run again in some way, and says what is different that should not be. */
export type Relation = (original: Original, observer: Observer) => BrokenRelation | undefined;

/** All of them, by name. */
export const RELATIONS: ReadonlyMap<string, Relation> = new Map([
  ['shift', judging(checkShift)],
  ['restore', judging(checkRestore)],
  ['turn-size', brokenTurns],
]);

/** Plays the run again in every way; the first difference, or undefined. */
export function brokenRelation(original: Original, observer: Observer): BrokenRelation | undefined {
  for (const relation of RELATIONS.values()) {
    const broken = relation(original, observer);
    if (broken !== undefined) return broken;
  }
  return undefined;
}

function judging(
  check: (original: Original, observer: Observer, verdicts: Verdicts) => void,
): Relation {
  return (original, observer) => {
    const verdicts = new Verdicts(observer);
    try {
      check(original, observer, verdicts);
      return undefined;
    } catch (error) {
      if (!(error instanceof ViolationFound)) throw error;
      const property = observer.violations.at(-1)?.name ?? '';
      return { property, detail: verdicts.detail ?? error.message };
    }
  };
}

/**
 * Twelve hours: a whole number of every tick that timers are rounded to, up to 16 ms and some beyond. Nothing in a proxy may
 * depend on when its machine was started.
 */
const SHIFT = microseconds(720_720 * 60 * 1_000);

function checkShift(original: Original, observer: Observer, verdicts: Verdicts): void {
  const { spec, script, seed, digest } = original;
  const again = runScript(shifted(spec), script, seed, { observer, oracles: [] });
  verdicts.check(SHIFTS, again.digest === digest, () => {
    return `${digest}, and with clocks ${SHIFT} µs ahead ${again.digest}: ${again.detail ?? ''}`;
  });
}

function shifted(spec: WorldSpec): WorldSpec {
  const proxies = spec.proxies.map((proxy) => {
    const { origin = HOST_DEFAULTS.origin } = proxy.shape;
    return { ...proxy, shape: { ...proxy.shape, origin: after(origin, SHIFT) } };
  });
  return { ...spec, proxies };
}

/** Before an event that is drawn, every process gets other machines in place of its own. */
function checkRestore(original: Original, observer: Observer, verdicts: Verdicts): void {
  const { script, seed, digest, events } = original;
  const random = seededStreams(seed).values.fork('restore');
  const step = random.between('step', 1, Math.max(1, events - script.length));
  const again = restoredRun(original, observer, step, exchange);
  verdicts.check(RESTORES, again.digest === digest, () => {
    return `${digest}, and with machines restored at event ${step} ${again.digest}: ${again.detail ?? ''}`;
  });
}

/** The run with `exchange` done to all processes that run before event `step`. */
export function restoredRun(
  { spec, script, seed }: Original,
  observer: Observer,
  step: number,
  exchangeMachines: (process: ProxyProcess) => void,
): WorldRunResult {
  const prepare = (world: World): void => {
    const goOn = world.step.bind(world);
    world.step = () => {
      if (world.steps + 1 === step) {
        for (const { process } of world.proxies) if (process.isRunning) exchangeMachines(process);
      }
      goOn();
    };
  };
  return runScript(spec, script, seed, { observer, oracles: [], prepare });
}

/** Puts all machines of a process away, and takes others out that are as they were. What joins several planes stays. */
export function exchange(process: ProxyProcess): void {
  for (const [plane, data] of process.planes.entries()) {
    const dataPlane = new DataPlane(process.dataOptions(plane));
    restoreSnapshot(dataPlane, takeSnapshot(data.machine));
    data.machine = dataPlane;
  }
  const { control, controlOptions } = process;
  const controlPlane = new ControlPlane(controlOptions);
  restoreSnapshot(controlPlane, takeSnapshot(control.machine));
  control.machine = controlPlane;
}

function brokenTurns(original: Original, observer: Observer): BrokenRelation | undefined {
  const { spec, script, seed } = original;
  const again = runScript(spec, script, seed, { observer, oracles: [TURN_SIZE] });
  const { violation, detail } = again;
  return violation && { property: violation.name, detail: detail ?? '' };
}
