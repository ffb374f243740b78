/** What this process takes of its machine: read when somebody asks, but for the lateness of the event loop. */
import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks';
import { opendir, stat } from 'node:fs/promises';
import { readEnvironment } from '../config/environment.ts';

/** How often lateness is sampled. */
const SAMPLE_MILLISECONDS = 20;

export class ProcessFigures {
  private readonly delays: IntervalHistogram = monitorEventLoopDelay({
    resolution: SAMPLE_MILLISECONDS,
  });
  private readonly descriptorLimit = readEnvironment().descriptorLimit ?? 0;

  constructor() {
    this.delays.enable();
  }

  /** By the name of the metric. */
  async read(): Promise<ReadonlyMap<string, number>> {
    const { user, system } = process.cpuUsage();
    const { rss, heapUsed } = process.memoryUsage();
    const figures = new Map([
      ['process_cpu_seconds_total', (user + system) / 1e6],
      ['process_resident_memory_bytes', rss],
      ['process_open_fds', await openDescriptors()],
      ['process_max_fds', this.descriptorLimit],
      ['process_start_time_seconds', performance.timeOrigin / 1_000],
      ['sozu_udp_uptime_seconds', performance.now() / 1_000],
      ['nodejs_heap_used_bytes', heapUsed],
      ['nodejs_eventloop_lag_p99_seconds', this.lateness(this.delays.percentile(99))],
      ['nodejs_eventloop_lag_max_seconds', this.lateness(this.delays.max)],
    ]);
    this.delays.reset();
    return figures;
  }

  close(): void {
    this.delays.disable();
  }

  /** A histogram without samples says nothing, and one turn on time says the interval itself. */
  private lateness(nanoseconds: number): number {
    if (this.delays.count === 0) return 0;
    return Math.max(0, nanoseconds / 1e9 - SAMPLE_MILLISECONDS / 1_000);
  }
}

/** Newer kernels say how many there are; older ones list them, which with many flows is done in pieces. */
async function openDescriptors(): Promise<number> {
  const folder = '/proc/self/fd';
  const { size } = await stat(folder).catch(() => ({ size: 0 }));
  if (size > 0) return size;
  let count = 0;
  const names = await opendir(folder, { bufferSize: 1_024 }).catch(() => undefined);
  if (names === undefined) return 0;
  for await (const _ of names) count += 1;
  // The folder itself was open.
  return count - 1;
}
