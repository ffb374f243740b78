/**
 * The report of a sweep for programs: what --json writes, `merge` joins, and JUnit and the summary are made of. Its shape is
 * documented in doc/SIMULATION.md; a change that a reader could stumble over raises the schema.
 */
import {
  mergeCounts,
  missedProperties,
  printSeed,
  type CatalogueEntry,
  type PropertyCounts,
  type PropertyKind,
  type Sighting,
} from '../index.ts';
import { judgesMissed, type Plan } from './plan.ts';
import {
  printSum,
  type LegKind,
  REPEATS_ITSELF,
  sweepDigest,
  type Counts,
  type Failure,
  type LegResult,
} from './result.ts';
import type { Ending } from './sweep.ts';

export const REPORT_SCHEMA = 2;

/** Everything a report says, but timing. */
export interface Outcome {
  readonly plan: Plan;
  readonly ending: Ending;
  readonly catalogue: readonly CatalogueEntry[];
  /** What is wrong with the catalogue itself. */
  readonly problems: readonly string[];
  readonly legs: readonly LegResult[];
}

export interface Timing {
  readonly seconds: number;
  readonly jobs: number;
  readonly node: string;
  /** Seconds of one processor, by scenario. */
  readonly busy: Readonly<Record<string, number>>;
}

export interface SightingRow {
  readonly seed: string;
  readonly step: number;
}

export interface PropertyCountsRow extends CatalogueEntry {
  readonly evaluations: number;
  readonly hits: number;
  readonly seeds: number;
  readonly first: SightingRow | null;
}

export interface PropertyRow extends CatalogueEntry {
  readonly state: 'ok' | 'missed' | 'violated';
  readonly evaluations: number;
  readonly hits: number;
  readonly seeds: number;
  /** In the first scenario that saw it. */
  readonly first: (SightingRow & { readonly scenario: string }) | null;
}

export interface FailureRow {
  readonly property: string;
  readonly scenario: string;
  readonly seed: string;
  readonly step: number;
  readonly detail: string;
  readonly actions: readonly string[];
  /** The command that runs it again. */
  readonly replay: string;
}

/** What a scenario promises to reach, and did not. */
export interface UnreachedRow {
  readonly scenario: string;
  readonly property: string;
}

export interface ScenarioRow {
  readonly name: string;
  readonly kind: LegKind;
  readonly seeds: number;
  /** Of a world: its events. */
  readonly steps: number;
  /** Microseconds of virtual time in worlds. */
  readonly simulated: number;
  /** Sum of the digests of its runs: adds up over shards. */
  readonly digest: string;
  readonly failed: number;
  readonly repeated: number;
  readonly fresh: number;
  readonly actions: Counts;
  readonly drops: Counts;
  readonly closes: Counts;
  readonly reaches: readonly string[];
  readonly properties: readonly PropertyCountsRow[];
}

export interface Report {
  readonly schema: number;
  readonly digest: string;
  readonly seeds: number;
  readonly steps: number;
  readonly properties: readonly PropertyRow[];
  readonly unreached: readonly UnreachedRow[];
  readonly failures: readonly FailureRow[];
  readonly verdict: 'green' | 'failed' | 'interrupted';
  readonly ending: Ending;
  /** Whether a missed property makes it fail. */
  readonly judgesMissed: boolean;
  readonly plan: {
    readonly scenario: string | null;
    readonly all: boolean;
    readonly firstSeed: string;
    readonly seeds: number;
    readonly steps: number;
    readonly shard: string | null;
  };
  readonly problems: readonly string[];
  readonly scenarios: readonly ScenarioRow[];
  /** All that differs between two runs of one sweep. */
  readonly timing: Timing;
}

export const EXIT_CODES = { green: 0, failed: 1, interrupted: 130 } as const;

export function toReport(outcome: Outcome, timing: Timing): Report {
  const { plan, ending, problems, legs } = outcome;
  const judged = judgesMissed(plan) && ending === 'complete';
  const properties = propertyRows(outcome);
  const missed = judged && properties.some(({ state }) => state === 'missed');
  const unreached = unreachedRows(outcome);
  const wrong = missed || unreached.length > 0 || problems.length > 0;
  const failed = wrong || legs.some((leg) => leg.failed > 0);
  return {
    schema: REPORT_SCHEMA,
    digest: sweepDigest(legs),
    seeds: total(legs, ({ seeds }) => seeds),
    steps: total(legs, ({ steps }) => steps),
    properties,
    unreached,
    failures: legs.flatMap(({ failures, kind }) =>
      failures.map((failure) => failureRow(failure, kind, plan.steps)),
    ),
    verdict: ending === 'interrupted' ? 'interrupted' : failed ? 'failed' : 'green',
    ending,
    judgesMissed: judged,
    plan: {
      scenario: plan.scenario ?? null,
      all: plan.all,
      firstSeed: printSeed(plan.firstSeed),
      seeds: plan.seeds,
      steps: plan.steps,
      shard: plan.shard === undefined ? null : `${plan.shard.index}/${plan.shard.count}`,
    },
    problems,
    scenarios: legs.map(scenarioRow),
    timing,
  };
}

function propertyRows({ catalogue, legs }: Outcome): PropertyRow[] {
  const counts = legs.reduce<LegResult['properties']>(
    (sum, { properties }) => mergeCounts(sum, properties),
    [],
  );
  const known = new Map<string, CatalogueEntry>();
  const looked = counts.filter(({ evaluations }) => evaluations > 0);
  for (const entry of [...catalogue, ...looked]) known.set(entry.name, entry);
  const missed = new Set(missedProperties([...known.values()], counts).map(({ name }) => name));
  return [...known.keys()].sort().flatMap((name) => {
    const entry = known.get(name);
    if (entry === undefined) return [];
    const seen = counts.find((one) => one.name === name);
    return {
      kind: entry.kind,
      name,
      state: missed.has(name)
        ? 'missed'
        : seen !== undefined && isViolated(seen)
          ? 'violated'
          : 'ok',
      evaluations: seen?.evaluations ?? 0,
      hits: seen?.hits ?? 0,
      seeds: seen?.seeds ?? 0,
      first: firstSighting(legs, name),
    };
  });
}

/** Scenarios are about something: with this many seeds of one, all of it must have been seen. */
const REACHING_SEEDS = 64;

function unreachedRows({ plan, ending, legs }: Outcome): UnreachedRow[] {
  const isJudged = ending === 'complete' && plan.shard === undefined;
  if (!isJudged || plan.seeds < REACHING_SEEDS) return [];
  return legs.flatMap(({ scenario, reaches, properties }) => {
    const seen = new Set(properties.filter(({ hits }) => hits > 0).map(({ name }) => name));
    return reaches.filter((name) => !seen.has(name)).map((property) => ({ scenario, property }));
  });
}

function isViolated({ kind, evaluations, hits }: PropertyCounts): boolean {
  return kind === 'unreachable' ? hits > 0 : kind.startsWith('always') && hits < evaluations;
}

function firstSighting(legs: readonly LegResult[], name: string): PropertyRow['first'] {
  for (const { scenario, properties } of legs) {
    const first = properties.find((counts) => counts.name === name)?.first;
    if (first !== undefined) return { scenario, ...sightingRow(first) };
  }
  return null;
}

function scenarioRow(leg: LegResult): ScenarioRow {
  const { scenario, sum, properties, failures: _, ...same } = leg;
  return {
    name: scenario,
    ...same,
    digest: printSum(sum),
    properties: properties.map((counts) => ({
      ...counts,
      first: counts.first === undefined ? null : sightingRow(counts.first),
    })),
  };
}

function failureRow(failure: Failure, kind: LegKind, steps: number): FailureRow {
  const { scenario, property } = failure;
  const seed = printSeed(failure.seed);
  const flag = property === REPEATS_ITSELF ? ' --check-determinism' : '';
  const length = kind === 'world' ? '' : ` SOZU_UDP_SIM_STEPS=${steps}`;
  const environment = `SOZU_UDP_SIM_SEED=${seed}${length}`;
  const replay = `${environment} npm run sim -- --scenario ${scenario}${flag}`;
  return { ...failure, seed, replay };
}

function sightingRow({ seed, step }: Sighting): SightingRow {
  return { seed: printSeed(seed), step };
}

function total(legs: readonly LegResult[], of: (leg: LegResult) => number): number {
  return legs.reduce((sum, leg) => sum + of(leg), 0);
}

/** Kinds that a report may name, for readers. */
export const PROPERTY_KINDS: readonly PropertyKind[] = [
  'always',
  'sometimes',
  'reachable',
  'unreachable',
  'alwaysAtMost',
  'alwaysAtLeast',
  'sometimesAtMost',
  'sometimesAtLeast',
];
