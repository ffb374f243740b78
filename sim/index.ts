/** The simulator's public door. */
export { buggifyPoint } from './buggify.ts';
export type { BuggifyPoint } from './buggify.ts';
export { VirtualClock } from './clock.ts';
export { Digest } from './digest.ts';
export { EventQueue } from './event-queue.ts';
export type { QueuedEvent } from './event-queue.ts';
export { RunFailure, runTasks } from './executor.ts';
export type { Context, RunFailureKind, RunOptions, TaskBody } from './executor.ts';
export {
  always,
  alwaysAtLeast,
  alwaysAtMost,
  declaredProperties,
  mergeCounts,
  missedProperties,
  Observer,
  reachable,
  sometimes,
  sometimesAtLeast,
  sometimesAtMost,
  unreachable,
} from './properties.ts';
export type {
  CatalogueEntry,
  ConditionProperty,
  NumericProperty,
  PlaceProperty,
  Property,
  PropertyCounts,
  PropertyKind,
  Sighting,
  Violation,
} from './properties.ts';
export { Random, seededStreams, tapedStreams } from './random.ts';
export type { Streams } from './random.ts';
export { compareSeeds, hashSeed, parseSeed, printSeed, seedFromNumber, seedPlus } from './seed.ts';
export type { Seed, SeedParse } from './seed.ts';
export { STREAM_NAMES, tapeDecisions, tapeFrom, TapePlayer, TapeRecorder } from './tape.ts';
export type { Decision, DecisionSite, StreamName, Tape } from './tape.ts';
export type { Channel, Gate, Task } from './task.ts';
export { ACTION_KINDS } from './core-harness/actions.ts';
export type { Action, ActionKind, InitialState } from './core-harness/actions.ts';
export type { Grammar } from './core-harness/grammar.ts';
export type { Guise, Trace } from './core-harness/guise.ts';
export { PLAIN_GUISE, runActions, runSeed } from './core-harness/run.ts';
export type { RunOptions as HarnessOptions, RunResult } from './core-harness/run.ts';
export type { ActionWatch, Scenario } from './core-harness/scenario.ts';
export { decodeReplay } from './core-harness/replay-decode.ts';
export type { ReplayDecoding } from './core-harness/replay-decode.ts';
export { encodeReplay, makeReplay, REPLAY_SCHEMA, verifyReplay } from './core-harness/replay.ts';
export type { Outcome, Replay, Verdict } from './core-harness/replay.ts';
export { recordSeed, shrink, shrinkSeed, SHRINK_LIMITS } from './core-harness/shrink.ts';
export type { Attempt, Recording, ShrinkLimits, Shrunk } from './core-harness/shrink.ts';
export type { Actor, ActorBody, Cast } from './world/actor.ts';
export { WORLD_ACTION_KINDS } from './world/actions.ts';
export type { WorldAction } from './world/actions.ts';
export * from './world/actors/clients.ts';
export * from './world/actors/operators.ts';
export { rest, span, throughChaos } from './world/actors/phases.ts';
export * from './world/builders.ts';
export * from './world/chaos-families.ts';
export { chaos } from './world/chaos.ts';
export * from './world/knobs.ts';
export { runScript, runWorldSeed } from './world/run-world.ts';
export type { ProxySpec, WorldSpec } from './world/spec.ts';
export type { WorldPlan, WorldScenario } from './world/world-scenario.ts';
