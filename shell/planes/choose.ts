/** What moves the datagrams of a process, in how many threads, and why that. */
import { availableParallelism } from 'node:os';
import type { PlaneOptions } from '../../core/index.ts';
import { errnoName, loadLibc, type Libc } from '../drivers/libc.ts';
import { siblingMemory } from '../drivers/siblings.ts';
import type { RecorderSettings } from '../flight-recorder.ts';
import type { PlaneHost } from './host.ts';
import { InThreadPlane } from './in-thread.ts';
import { PlanesInWorkers } from './in-workers.ts';

export interface Wanted {
  /** `auto`: mmsg where it can be had. */
  readonly io: 'auto' | 'dgram' | 'mmsg';
  /** `auto`: one for each processor. */
  readonly workers: number | 'auto';
  readonly steer: 'tuple' | 'source';
}

export interface Choice {
  readonly driver: 'dgram' | 'mmsg';
  readonly workers: number;
  readonly reason: string;
  readonly steer: Wanted['steer'];
}

/** The choice for what is wanted, or why it cannot be had. `missing` says why there are no batched calls, if there are none. */
export function choose(
  { io, workers, steer }: Wanted,
  missing: string | undefined = io === 'dgram' ? undefined : whatIsMissing(),
): Choice | string {
  if (io === 'dgram') return { driver: 'dgram', workers: 1, reason: 'io = "dgram"', steer };
  if (missing === undefined) {
    const reason = io === 'mmsg' ? 'io = "mmsg"' : 'it can be had here';
    const count = workers === 'auto' ? availableParallelism() : workers;
    return { driver: 'mmsg', workers: count, reason, steer };
  }
  if (io === 'mmsg') return missing;
  return { driver: 'dgram', workers: 1, reason: `no mmsg: ${missing}`, steer };
}

/** Where the planes of a proxy are to live. `options` are those of a plane; each has its own, with secrets of its own. */
export function hostOf(
  { driver, workers, steer }: Choice,
  options: () => PlaneOptions,
  recorder: RecorderSettings | undefined,
): PlaneHost {
  if (driver === 'dgram') return new InThreadPlane(options());
  const all = Array.from({ length: workers }, options);
  if (workers === 1) return new PlanesInWorkers(all, {}, recorder);
  const bySource = steer === 'source' ? { steer: { count: workers } } : {};
  return new PlanesInWorkers(all, { siblings: siblingMemory(), ...bySource }, recorder);
}

/** Asked of no descriptor at all, a kernel that has the calls says so; a sandbox may not let them through. */
export function whatIsMissing(libc: Libc | string = loadLibc()): string | undefined {
  if (typeof libc === 'string') return libc;
  const answers = {
    recvmmsg: libc.recvmmsg(-1, 0, 0),
    sendmmsg: libc.sendmmsg(-1, 0, 0),
    send: libc.send(-1, 0, 0),
    epoll_wait: libc.epollWait(-1, 0, 1, 0),
  };
  for (const [call, answer] of Object.entries(answers)) {
    if (errnoName(answer) !== 'EBADF') return `${call} answers ${errnoName(answer)}`;
  }
  return undefined;
}
