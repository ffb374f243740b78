/**
 * What the load and the echo of a bench are built on: the product's own drivers. Batched system calls in a blocking loop where
 * koffi loads; node:dgram elsewhere, which is slower than the proxies it loads.
 */
import type { Address } from '../../core/index.ts';
import { DgramDriver } from '../../shell/drivers/dgram.ts';
import { loadLibc } from '../../shell/drivers/libc.ts';
import { MmsgDriver } from '../../shell/drivers/mmsg.ts';
import { bindingClients, withoutOffload } from './peer-libc.ts';

export interface PeerDriver {
  readonly driver: DgramDriver | MmsgDriver;
  /** Lets datagrams come until `isDone`, which is asked after each turn, and after this many milliseconds at the latest. */
  run(isDone: () => boolean, waitAtMost: number): Promise<void>;
}

export interface PeerOptions {
  /** Trains of datagrams in one piece, both ways. */
  readonly offload: boolean;
  /** The address of sockets that it will connect, if it connects any. */
  readonly clients?: Address | undefined;
}

export function peerDriver({ offload, clients }: PeerOptions): PeerDriver {
  const own = loadLibc();
  if (typeof own === 'string') return eventLoopDriver();
  const libc = offload ? own : withoutOffload(own);
  const driver = new MmsgDriver(clients === undefined ? libc : bindingClients(libc, clients));
  return {
    driver,
    run: (isDone, waitAtMost) => {
      while (!isDone()) driver.turn(waitAtMost);
      return Promise.resolve();
    },
  };
}

function eventLoopDriver(): PeerDriver {
  return {
    driver: new DgramDriver(),
    run: (isDone, waitAtMost) =>
      new Promise((resolve) => {
        const check = setInterval(() => {
          if (!isDone()) return;
          clearInterval(check);
          resolve();
        }, waitAtMost);
      }),
  };
}
