/** One build swept in a thread of its own, so that one that never ends can be ended. */
import { parentPort, workerData } from 'node:worker_threads';
import { present } from '../../core/assert.ts';
import { loadBuild, sweep, type Begun, type SweepLimits, type SweepResult } from './sweep.ts';
import { loadWorlds, sweepWorlds, type WorldLimits } from './sweep-worlds.ts';

export interface Job {
  /** A build, as `buildSources` leaves it. */
  readonly directory: string;
  /** With `worlds` it is swept in worlds, else by the core harness. */
  readonly limits: SweepLimits;
  readonly worlds?: WorldLimits | undefined;
}

export type Message =
  | { readonly kind: 'begun'; readonly run: Begun }
  | { readonly kind: 'done'; readonly result: SweepResult; readonly marks: Marks };

/** What the marks in a build left behind. */
export interface Marks {
  readonly reached: boolean;
  readonly functions: readonly string[];
}

declare global {
  var mutantReached: boolean | undefined;
  var functionsRun: Set<string> | undefined;
}

const port = present(parentPort ?? undefined, 'a worker has a parent');
const job: Job = workerData;
const begun = (run: Begun): void => port.postMessage({ kind: 'begun', run } satisfies Message);
const { directory, limits, worlds } = job;
const result =
  worlds === undefined
    ? sweep(await loadBuild(directory), limits, begun)
    : await sweepWorlds(await loadWorlds(directory), worlds, begun);
const marks = {
  reached: globalThis.mutantReached === true,
  functions: [...(globalThis.functionsRun ?? [])],
};
port.postMessage({ kind: 'done', result, marks } satisfies Message);
