/**
 * What came out of some seeds of one scenario. Plain data that crosses threads, and joins: results of chunks into a leg's,
 * legs of shards into those of the whole sweep, in any order.
 */
import type { CloseReason, DropReason } from '../../core/contract.ts';
import { CATALOGUE } from '../../core/metrics.ts';
import { worldNamed } from '../../scenarios/index.ts';
import {
  ACTION_KINDS,
  compareSeeds,
  Digest,
  mergeCounts,
  type PropertyCounts,
  type Seed,
  WORLD_ACTION_KINDS,
} from '../index.ts';

export type Counts = Readonly<Record<string, number>>;

/** Reasons of drops and closes, in the order of the contract. */
const DROP_REASONS: readonly DropReason[] = [
  'Truncated',
  'NoBackend',
  'Invalid',
  'Shed',
  'UnknownFlow',
  'Denied',
  'NewFlowRate',
  'DatagramRate',
  'Amplification',
  'PortExhausted',
];
const CLOSE_REASONS: readonly CloseReason[] = [
  'Idle',
  'ResponsesReached',
  'RequestsReached',
  'Drain',
  'Aborted',
  'BackendLost',
  'Killed',
];

/** What a scenario raises: the flow machine alone, or a world around the whole proxy. */
export const LEG_KINDS = ['core', 'world'] as const;
export type LegKind = (typeof LEG_KINDS)[number];

/** What is counted of the runs of a kind: a world's drops and closes are those that its proxies counted. */
export const COUNTED: Readonly<
  Record<LegKind, Readonly<Record<'actions' | 'drops' | 'closes', readonly string[]>>>
> = {
  core: { actions: ACTION_KINDS, drops: DROP_REASONS, closes: CLOSE_REASONS },
  world: {
    actions: WORLD_ACTION_KINDS,
    drops: Object.keys(CATALOGUE).filter((name) => name.startsWith('dropped')),
    closes: Object.keys(CATALOGUE).filter((name) => name.startsWith('closed')),
  },
};

/** Failures that no property of the catalogue stands for. */
export const SIMULATOR_THREW = 'the simulator itself does not throw';
export const WORKER_DIED = 'the worker outlives its seeds';
export const REPEATS_ITSELF = 'a repeated seed does the same';

export interface Failure {
  readonly property: string;
  readonly scenario: string;
  readonly seed: Seed;
  /** Of a world: the number of the action. */
  readonly step: number;
  readonly detail: string;
  /** The last ones, for reading. */
  readonly actions: readonly string[];
}

export interface LegResult {
  readonly scenario: string;
  readonly kind: LegKind;
  readonly seeds: number;
  /** Of worlds: their events. */
  readonly steps: number;
  /** Virtual time that passed in worlds, microseconds. */
  readonly simulated: number;
  /** Sum modulo 2^64 of the digests of (scenario, seed, digest of the run). */
  readonly sum: bigint;
  readonly actions: Counts;
  readonly drops: Counts;
  readonly closes: Counts;
  /** Properties that the whole sweep of the scenario must see. */
  readonly reaches: readonly string[];
  readonly properties: readonly PropertyCounts[];
  /** How many seeds failed; `failures` holds the lowest of them only. */
  readonly failed: number;
  readonly failures: readonly Failure[];
  /** Seeds that were run more than once to compare, and how many of these in a fresh process too. */
  readonly repeated: number;
  readonly fresh: number;
}

/** Kept of each leg: a sweep in which everything fails must not fill the memory. */
const FAILURES_KEPT = 100;

export function emptyLeg(scenario: string): LegResult {
  const world = worldNamed(scenario);
  const kind = world === undefined ? 'core' : 'world';
  const { actions, drops, closes } = COUNTED[kind];
  return {
    scenario,
    kind,
    seeds: 0,
    steps: 0,
    simulated: 0,
    sum: 0n,
    actions: zeros(actions),
    drops: zeros(drops),
    closes: zeros(closes),
    reaches: world?.reaches ?? [],
    properties: [],
    failed: 0,
    failures: [],
    repeated: 0,
    fresh: 0,
  };
}

/** Joins results over disjoint seeds of one scenario. The order does not matter. */
export function mergeLegs(one: LegResult, other: LegResult): LegResult {
  return {
    scenario: one.scenario,
    kind: one.kind,
    seeds: one.seeds + other.seeds,
    steps: one.steps + other.steps,
    simulated: one.simulated + other.simulated,
    sum: BigInt.asUintN(64, one.sum + other.sum),
    actions: addCounts(one.actions, other.actions),
    drops: addCounts(one.drops, other.drops),
    closes: addCounts(one.closes, other.closes),
    reaches: one.reaches,
    properties: mergeCounts(one.properties, other.properties),
    failed: one.failed + other.failed,
    failures: mergeFailures(one.failures, other.failures),
    repeated: one.repeated + other.repeated,
    fresh: one.fresh + other.fresh,
  };
}

/**
 * What one run adds to the digest of its sweep. Sums do not know an order: no digest of a sweep can depend on which worker
 * was first, and shards join without a list of every seed.
 */
export function runSum(scenario: string, seed: Seed, digest: string): bigint {
  const sum = new Digest().string(scenario).number(seed.high).number(seed.low).string(digest);
  return (BigInt(sum.high) << 32n) | BigInt(sum.low);
}

export function printSum(sum: bigint): string {
  return sum.toString(16).padStart(16, '0');
}

/** The digest of a sweep: of its scenarios in their order, with their seeds and the sums of their runs. */
export function sweepDigest(legs: readonly LegResult[]): string {
  const digest = new Digest();
  for (const { scenario, seeds, sum } of legs) {
    digest.string(scenario).number(seeds).string(printSum(sum));
  }
  return digest.print();
}

function mergeFailures(one: readonly Failure[], other: readonly Failure[]): readonly Failure[] {
  if (other.length === 0) return one;
  return [...one, ...other]
    .sort((left, right) => compareSeeds(left.seed, right.seed))
    .slice(0, FAILURES_KEPT);
}

function addCounts(one: Counts, other: Counts): Counts {
  return Object.fromEntries(
    Object.entries(one).map(([name, count]) => [name, count + (other[name] ?? 0)]),
  );
}

function zeros(names: readonly string[]): Record<string, number> {
  return Object.fromEntries(names.map((name) => [name, 0]));
}
