/** Which driver moves the datagrams of a process, and why that one. */
import type { Arrivals, ListenerId, Ports } from '../../core/index.ts';
import { DgramDriver } from './dgram.ts';
import { errnoName, loadLibc, type Libc } from './libc.ts';
import { HostedMmsgDriver } from './mmsg-host.ts';

/** `auto`: mmsg where it can be had. */
export type Io = 'auto' | 'dgram' | 'mmsg';

/** What a proxy asks of a driver besides the ports of its core. */
export interface Driver extends Ports {
  /** Says who hears of arrivals. Nothing may arrive before. */
  attach(arrivals: Arrivals): void;
  /** The port an open listener is bound to. */
  portOf(listener: ListenerId): number | undefined;
  /** How the kernel names an open listener's socket; undefined where it does not tell. */
  inodeOf(listener: ListenerId): number | undefined;
}

export interface Choice {
  readonly driver: Driver;
  readonly reason: string;
}

/**
 * The driver for `io`, or why it cannot be had. `libc` is that of this process unless given, or the reason why there is none.
 */
export function chooseDriver(io: Io, libc: Libc | string = usableLibc(io)): Choice | string {
  if (io === 'dgram') return { driver: new DgramDriver(), reason: 'io = "dgram"' };
  if (typeof libc !== 'string') {
    const reason = io === 'mmsg' ? 'io = "mmsg"' : 'it can be had here';
    return { driver: new HostedMmsgDriver(libc), reason };
  }
  const reason = `no mmsg: ${libc}`;
  return io === 'auto' ? { driver: new DgramDriver(), reason } : reason;
}

/** Asked of no descriptor at all, a kernel that has the calls says so; a sandbox may not let them through. */
function usableLibc(io: Io): Libc | string {
  if (io === 'dgram') return 'not asked for';
  const libc = loadLibc();
  if (typeof libc === 'string') return libc;
  for (const call of ['recvmmsg', 'sendmmsg'] as const) {
    const answer = errnoName(libc[call](-1, 0, 0));
    if (answer !== 'EBADF') return `${call} answers ${answer}`;
  }
  return libc;
}
