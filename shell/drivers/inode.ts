/** How the kernel names a socket, so that what it counts of it can be found. */
import { readlinkSync } from 'node:fs';
import type { Socket } from 'node:dgram';

/** Undefined where it cannot be known: on another system than Linux, or once the socket is closed. */
export function inodeOf(socket: Socket): number | undefined {
  // Node tells no descriptor of a datagram socket; its handle does.
  const symbol = Object.getOwnPropertySymbols(socket).find(
    ({ description }) => description === 'state symbol',
  );
  const descriptor = symbol && field(field(Reflect.get(socket, symbol), 'handle'), 'fd');
  return typeof descriptor === 'number' ? inodeOfDescriptor(descriptor) : undefined;
}

/** The same of an open descriptor. */
export function inodeOfDescriptor(descriptor: number): number | undefined {
  try {
    const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${descriptor}`)) ?? [];
    return inode === undefined ? undefined : Number(inode);
  } catch {
    return undefined;
  }
}

function field(of: unknown, name: string): unknown {
  return typeof of === 'object' && of !== null ? Reflect.get(of, name) : undefined;
}
