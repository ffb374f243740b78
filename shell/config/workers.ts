/** How many data planes a file asks for, and what several of them cannot do. */
import type { Draft } from './draft.ts';
import type { Report } from './problem.ts';
import type { GlobalTable } from './schema.ts';

/** `workers`, or the reference's word for it. */
export function workersOf({ workers, worker_count: count }: GlobalTable): number | 'auto' {
  return workers ?? Math.max(1, count);
}

/** Reports what cannot be, and what would surprise. */
export function judgeWorkers(draft: Draft, global: GlobalTable, report: Report): void {
  const key = global.workers === undefined ? 'worker_count' : 'workers';
  if (global.workers !== undefined && global.worker_count > 1) {
    report.error(['worker_count'], 'the number of workers is also said by `workers`', 'remove it');
  }
  const workers = workersOf(global);
  if (workers === 1) return;
  if (global.io === 'dgram') {
    const fix = `write io = "mmsg", or ${key} = 1`;
    report.error([key], 'node:dgram has one worker: it cannot share a port', fix);
  }
  for (const { path, table } of draft.listeners) {
    if (workers !== 'auto' && table.max_flows !== 0 && table.max_flows < workers) {
      const problem = `${table.max_flows} flows are shared by ${workers} workers: some may have none`;
      report.warning([...path, 'max_flows'], problem, `write max_flows = ${workers} or more`);
    }
  }
}
