/**
 * What came out of some seeds of one scenario. Plain data that crosses threads, and joins: results of chunks into a leg's,
 * legs of shards into those of the whole sweep, in any order.
 */
import type { CloseReason, DropReason } from '../../core/contract.ts';
import {
  ACTION_KINDS,
  compareSeeds,
  Digest,
  mergeCounts,
  type PropertyCounts,
  type Seed,
} from '../index.ts';

export type Counts = Readonly<Record<string, number>>;

/** Reasons of drops and closes, in the order of the contract. */
export const DROP_REASONS: readonly DropReason[] = [
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
export const CLOSE_REASONS: readonly CloseReason[] = [
  'Idle',
  'ResponsesReached',
  'RequestsReached',
  'Drain',
  'Aborted',
  'BackendLost',
  'Killed',
];

/** Failures that no property of the catalogue stands for. */
export const SIMULATOR_THREW = 'the simulator itself does not throw';
export const WORKER_DIED = 'the worker outlives its seeds';
export const REPEATS_ITSELF = 'a repeated seed does the same';

export interface Failure {
  readonly property: string;
  readonly scenario: string;
  readonly seed: Seed;
  readonly step: number;
  readonly detail: string;
  /** The last ones, for reading. */
  readonly actions: readonly string[];
}

export interface LegResult {
  readonly scenario: string;
  readonly seeds: number;
  readonly steps: number;
  /** Sum modulo 2^64 of the digests of (scenario, seed, digest of the run). */
  readonly sum: bigint;
  readonly actions: Counts;
  readonly drops: Counts;
  readonly closes: Counts;
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
  return {
    scenario,
    seeds: 0,
    steps: 0,
    sum: 0n,
    actions: zeros(ACTION_KINDS),
    drops: zeros(DROP_REASONS),
    closes: zeros(CLOSE_REASONS),
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
    seeds: one.seeds + other.seeds,
    steps: one.steps + other.steps,
    sum: BigInt.asUintN(64, one.sum + other.sum),
    actions: addCounts(one.actions, other.actions),
    drops: addCounts(one.drops, other.drops),
    closes: addCounts(one.closes, other.closes),
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
