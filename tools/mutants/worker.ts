/** One build swept in a thread of its own, so that one that never ends can be ended. */
import { parentPort, workerData } from 'node:worker_threads';
import { present } from '../../core/assert.ts';
import { loadBuild, sweep, type SweepLimits, type SweepResult } from './sweep.ts';

export interface Job {
  /** A build, as `buildSources` leaves it. */
  readonly directory: string;
  readonly limits: SweepLimits;
}

export type Message =
  | { readonly kind: 'begun'; readonly seeds: number }
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
const result = sweep(await loadBuild(job.directory), job.limits, (seeds) => {
  port.postMessage({ kind: 'begun', seeds } satisfies Message);
});
const marks = {
  reached: globalThis.mutantReached === true,
  functions: [...(globalThis.functionsRun ?? [])],
};
port.postMessage({ kind: 'done', result, marks } satisfies Message);
