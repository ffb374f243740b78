/** Runs a chunk of either kind of scenario. */
import { worldNamed } from '../../scenarios/index.ts';
import { runChunk, type ChunkResult, type ChunkTask } from './run-chunk.ts';
import { runWorldChunk } from './run-world-chunk.ts';

/** `begin` hears the place of each seed in the chunk before it is run. */
export async function runTask(
  task: ChunkTask,
  begin: (place: number) => void,
): Promise<ChunkResult> {
  const world = worldNamed(task.scenario);
  return world === undefined ? runChunk(task, begin) : runWorldChunk(world, task, begin);
}
