/** A worker of a sweep: runs the chunks it is sent, and marks in shared memory which seed it is at, in case it dies. */
import { parentPort, workerData } from 'node:worker_threads';
import { present } from '../../core/assert.ts';
import type { ChunkTask } from './run-chunk.ts';
import { runTask } from './run-task.ts';

/** What a worker is given at its start. */
export interface WorkerSetup {
  /** One place: that of the seed under way in its chunk; −1 before the first. */
  readonly position: Int32Array;
}

const port = present(parentPort ?? undefined, 'a worker has a parent');
const { position }: WorkerSetup = workerData;
port.on('message', (task: ChunkTask) => void run(task));

/** What it rejects with ends the thread, as what is thrown does. */
async function run(task: ChunkTask): Promise<void> {
  port.postMessage(await runTask(task, (place) => Atomics.store(position, 0, place)));
}
