/** What is printed: a line for each mutant, the score of each origin, and which property finds what alone. */
import { CRASH } from './sweep.ts';
import { HANG } from './runner.ts';
import type { Reason } from './survivors.ts';
import type { Origin, Trial } from './trial.ts';

export function trialLine({ mutant, verdict, detection, shrunk, problem }: Trial): string {
  const name = `${verdict.padEnd(18)} ${mutant.id.padEnd(36)}`;
  if (problem !== undefined) return `${name} ${problem}`;
  if (detection === undefined) return `${name} ${mutant.announces}`;
  const { seeds, scenario, step, property } = detection;
  const small =
    shrunk === undefined ? '' : `, ${shrunk.actions} actions in ${shrunk.seconds.toFixed(1)} s`;
  return `${name} ${String(seeds).padStart(2)} seeds, ${scenario} step ${step}${small}: ${property}`;
}

export interface Score {
  readonly origin: Origin;
  readonly tried: number;
  readonly killed: number;
  readonly equivalent: number;
  /** Killed, of those not shown equivalent. */
  readonly share: number;
}

export function scoreOf(
  origin: Origin,
  trials: readonly Trial[],
  reasons: ReadonlyMap<string, Reason>,
): Score {
  const own = trials.filter((trial) => trial.origin === origin);
  const killed = own.filter(({ verdict }) => verdict === 'killed').length;
  const equivalent = own.filter(
    ({ verdict, mutant }) => verdict !== 'killed' && reasons.get(mutant.id) === 'equivalent',
  ).length;
  const tried = own.length;
  return { origin, tried, killed, equivalent, share: killed / Math.max(1, tried - equivalent) };
}

export function scoreLine({ origin, tried, killed, equivalent, share }: Score): string {
  const percent = (100 * share).toFixed(1);
  return `${origin}: ${killed} of ${tried} killed, ${equivalent} equivalent: ${percent} %`;
}

/** The mutants that each property finds with all others off, the fewest first. */
export function propertyMatrix(
  properties: readonly string[],
  trials: readonly Trial[],
): ReadonlyMap<string, readonly string[]> {
  const rows = properties.map((name): [string, string[]] => [
    name,
    trials.filter(({ violated }) => violated.includes(name)).map(({ mutant }) => mutant.id),
  ]);
  rows.sort(([, one], [, other]) => one.length - other.length);
  return new Map(rows);
}

export function matrixLines(matrix: ReadonlyMap<string, readonly string[]>): string[] {
  return [...matrix].map(([property, ids]) => {
    const few = ids.slice(0, 3).join(', ');
    return `${String(ids.length).padStart(4)}  ${property}: ${few}${ids.length > 3 ? ', …' : ''}`;
  });
}

/** Median seeds to detection, and how many were found by no property. */
export function detectionLine(trials: readonly Trial[]): string {
  const detections = trials.flatMap(({ detection }) => detection ?? []);
  const seeds = detections.map((detection) => detection.seeds).sort((one, other) => one - other);
  const outside = detections.filter(({ property }) => property === CRASH || property === HANG);
  const median = seeds[seeds.length >> 1] ?? 0;
  const most = seeds.at(-1) ?? 0;
  return `seeds to detection: median ${median}, at most ${most}; ${outside.length} broke off or hung`;
}

/** Median length of the smallest runs, and the longest time that it took to find one. */
export function shrinkingOf(trials: readonly Trial[]): Shrinkings {
  const all = trials.flatMap(({ shrunk }) => shrunk ?? []);
  const lengths = all.map(({ actions }) => actions).sort((one, other) => one - other);
  return {
    count: all.length,
    medianActions: lengths[lengths.length >> 1] ?? 0,
    mostActions: lengths.at(-1) ?? 0,
    notMinimal: all.filter(({ isMinimal }) => !isMinimal).length,
    mostSeconds: Math.max(0, ...all.map(({ seconds }) => seconds)),
  };
}

export interface Shrinkings {
  readonly count: number;
  readonly medianActions: number;
  readonly mostActions: number;
  readonly notMinimal: number;
  readonly mostSeconds: number;
}

export function shrinkingLine(shrinkings: Shrinkings): string {
  const { count, medianActions, mostActions, notMinimal, mostSeconds } = shrinkings;
  return (
    `shrunk: ${count} runs to a median of ${medianActions} actions, ${mostActions} at most, ` +
    `${notMinimal} not minimal; the longest took ${mostSeconds.toFixed(1)} s`
  );
}
