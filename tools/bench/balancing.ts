/**
 * What balancing may hold up: a Maglev table built at once and in slices, with all that a change of the list costs besides,
 * and one selection of HRW, which looks at every candidate, beside one of MAGLEV, which looks into its table.
 */
import { ipv4 } from '../../core/address.ts';
import { BackendSet } from '../../core/balancing/backend-set.ts';
import type { LoadBalancing } from '../../core/config.ts';
import type { Backend } from '../../core/contract.ts';
import { PLACEMENT_SEED, type Hash64 } from '../../core/hash.ts';
import { createRandom } from '../../core/random.ts';
import { BUILD_STEPS } from '../../core/table-builds.ts';
import { instant } from '../../core/time.ts';
import { quartiles, type Quartiles } from './statistics.ts';

/** Milliseconds, each of the best run, because the scheduler only ever makes a run worse. */
export interface MaglevBuild {
  readonly backends: number;
  readonly atOnce: number;
  readonly slices: number;
  /** The longest when each slice counts as in its best run. */
  readonly longestSlice: number;
  /** To take the new list, and to choose for the first time from the new table. */
  readonly change: number;
  readonly firstSelection: number;
}

/** Nanoseconds of processor time. */
export interface SelectionCost {
  readonly backends: number;
  readonly rendezvous: Quartiles;
  readonly maglev: Quartiles;
}

export interface BalancingResult {
  readonly builds: readonly MaglevBuild[];
  readonly selections: readonly SelectionCost[];
}

interface Run {
  readonly atOnce: number;
  readonly slices: readonly number[];
  readonly change: number;
  readonly firstSelection: number;
}

const RUNS = 8;
const BUILD_SIZES = [10, 100, 1_000, 10_000];
const SELECTION_SIZES = [10, 100, 1_000];
/** Backends that a round of selections hashes in all. */
const HASHES = 200_000;
const NOW = instant(0);

export function measureBalancing(progress: (text: string) => void): BalancingResult {
  progress('maglev build');
  const builds = BUILD_SIZES.map(measureBuild);
  progress('selection');
  return { builds, selections: SELECTION_SIZES.map(measureSelection) };
}

function measureBuild(count: number): MaglevBuild {
  // The first run only compiles the code.
  const runs = Array.from({ length: RUNS + 1 }, () => buildOnce(count)).slice(1);
  const best = (of: (run: Run) => number): number => Math.min(...runs.map(of));
  const slices = runs[0]?.slices ?? [];
  return {
    backends: count,
    atOnce: best((run) => run.atOnce),
    slices: slices.length,
    longestSlice: Math.max(...slices.map((_, at) => best((run) => run.slices[at] ?? Infinity))),
    change: best((run) => run.change),
    firstSelection: best((run) => run.firstSelection),
  };
}

/** From one backend less to `count`: all of them new objects, as a reload makes them. */
function buildOnce(count: number): Run {
  const sliced = backendSet('MAGLEV', count - 1, true);
  sliced.build(Infinity);
  const key = { high: 1, low: 2 };
  const list = backendList(count);
  const change = milliseconds(() => sliced.setBackends(list));
  const slices = timeSlices(sliced);
  const firstSelection = milliseconds(() => sliced.select(key, NOW));
  const whole = backendSet('MAGLEV', count, true);
  const atOnce = milliseconds(() => whole.build(Infinity));
  return { atOnce, slices, change, firstSelection };
}

/** Milliseconds of each slice, until nothing is left to build. */
function timeSlices(set: BackendSet): number[] {
  const slices: number[] = [];
  for (;;) {
    const before = performance.now();
    const unused = set.build(BUILD_STEPS);
    slices.push(performance.now() - before);
    if (unused > 0) return slices;
  }
}

function measureSelection(count: number): SelectionCost {
  const cost = (policy: LoadBalancing): Quartiles => {
    const set = backendSet(policy, count, false);
    const keys = fixedKeys(Math.ceil(HASHES / count));
    const samples = Array.from({ length: RUNS + 1 }, () => timeSelections(set, keys));
    return quartiles(samples.slice(1));
  };
  return { backends: count, rendezvous: cost('HRW'), maglev: cost('MAGLEV') };
}

function timeSelections(set: BackendSet, keys: readonly Hash64[]): number {
  const before = process.cpuUsage();
  const chosen = keys.filter((key) => set.select(key, NOW) !== undefined).length;
  const { user, system } = process.cpuUsage(before);
  if (chosen !== keys.length) throw new Error('every key has a backend');
  return ((user + system) * 1_000) / keys.length;
}

function backendSet(loadBalancing: LoadBalancing, count: number, inSlices: boolean): BackendSet {
  return new BackendSet({
    loadBalancing,
    loadMetric: 'CONNECTIONS',
    random: createRandom({ high: 1, low: 2 }),
    placementSeed: PLACEMENT_SEED,
    backends: backendList(count),
    inSlices,
  });
}

/** 10.0.0.1:53 and those that follow. */
function backendList(count: number): Backend[] {
  return Array.from({ length: count }, (_, at) => ({
    id: `b${at}`,
    address: ipv4(0x0a000001 + at, 53),
    weight: 100,
    backup: false,
  }));
}

function fixedKeys(count: number): Hash64[] {
  const random = createRandom({ high: 3, low: 4 });
  return Array.from({ length: count }, () => ({ high: random.next(), low: random.next() }));
}

function milliseconds(work: () => void): number {
  const before = performance.now();
  work();
  return performance.now() - before;
}
