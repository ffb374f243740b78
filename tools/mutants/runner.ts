/** Runs jobs over worker threads, and ends the ones that do not end. */
import { Worker } from 'node:worker_threads';
import type { Job, Marks, Message } from './worker.ts';
import { CRASH, type Begun, type SweepResult } from './sweep.ts';

export type JobResult =
  | { readonly kind: 'done'; readonly result: SweepResult; readonly marks: Marks }
  /** The build could not even be loaded. */
  | { readonly kind: 'unloadable'; readonly problem: string };

/** A run that took so long, or so much, that it was ended. */
export const HANG = '(a run never ends)';

/** Far more than any seed takes on any machine; a seed that is shrunk is run over and over. */
const PATIENCE_MS = 10_000;
const SHRINKING_MS = 60_000;
const HEAP_MB = 512;

/** Runs one job in a thread of its own. Never throws: what a mutant does is a result. */
export function runJob(job: Job): Promise<JobResult> {
  return new Promise((resolve) => {
    const url = new URL('worker.js', import.meta.url);
    const worker = new Worker(url, {
      workerData: job,
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
    });
    let begun: Begun | undefined;
    const finish = (result: JobResult): void => {
      clearTimeout(patience);
      resolve(result);
      void worker.terminate();
    };
    const hang = (): void => {
      finish(begun === undefined ? { kind: 'unloadable', problem: HANG } : ended(HANG, begun));
    };
    const limit = job.limits.shrink ? SHRINKING_MS : PATIENCE_MS;
    let patience = setTimeout(hang, limit);
    worker.on('message', (message: Message) => {
      if (message.kind === 'done') return finish(message);
      clearTimeout(patience);
      begun = message.run;
      patience = setTimeout(hang, limit);
    });
    worker.on('error', (error) => {
      const { name, message } = error;
      if (begun === undefined) finish({ kind: 'unloadable', problem: `${name}: ${message}` });
      else finish(ended(CRASH, begun));
    });
  });
}

/** The result of a job that was ended, or that ended itself, from outside. */
function ended(property: string, begun: Begun): JobResult {
  const detection = { ...begun, property, step: 0 };
  const marks = { reached: true, functions: [] };
  return { kind: 'done', result: { detection, violated: [property], shrunk: undefined }, marks };
}

/** Applies `work` to all items, `jobs` at a time; results in the order of the items. */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  jobs: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const queue = items.entries();
  const drain = async (): Promise<void> => {
    for (const [index, item] of queue) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: jobs }, drain));
  return results;
}
