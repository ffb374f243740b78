/**
 * Where the fields of the C structs lie that a batching driver reads and writes, in bytes, and how large the structs are.
 * x86-64 and arm64 differ in `struct epoll_event` alone, which is packed on the former; glibc and musl do not differ, because
 * musl's narrower lengths are padded to the same size. A test compiles a C program that prints the same figures.
 */

/** What depends on the processor. */
export interface Layout {
  readonly epollEvent: { readonly size: number; readonly events: number; readonly data: number };
}

/** Undefined for a processor whose structs nobody has looked at. */
export function layoutFor(arch: string): Layout | undefined {
  if (arch === 'x64') return { epollEvent: { size: 12, events: 0, data: 4 } };
  if (arch === 'arm64') return { epollEvent: { size: 16, events: 0, data: 8 } };
  return undefined;
}

/** `struct mmsghdr`, whose first field is a `struct msghdr`. */
export const MMSGHDR = {
  size: 64,
  name: 0,
  nameLength: 8,
  vectors: 16,
  vectorCount: 24,
  control: 32,
  controlLength: 40,
  flags: 48,
  length: 56,
} as const;

export const IOVEC = { size: 16, base: 0, length: 8 } as const;

export const SOCKADDR_IN = { size: 16, family: 0, port: 2, address: 4 } as const;

export const SOCKADDR_IN6 = {
  size: 28,
  family: 0,
  port: 2,
  flowInfo: 4,
  address: 8,
  scope: 24,
} as const;

/** `data` is where `CMSG_DATA` begins. */
export const CMSGHDR = { size: 16, length: 0, level: 8, type: 12, data: 16 } as const;

/** `source` is what a send leaves from; `destination` is what an arrival was sent to. */
export const IN_PKTINFO = { size: 12, interface: 0, source: 4, destination: 8 } as const;

export const IN6_PKTINFO = { size: 20, address: 0, interface: 16 } as const;

export const POLLFD = { size: 8, fd: 0, events: 4, returned: 6 } as const;

/** One instruction of a classic BPF program, and the program. */
export const SOCK_FILTER = { size: 8, code: 0, ifTrue: 2, ifFalse: 3, constant: 4 } as const;

export const SOCK_FPROG = { size: 16, length: 0, filter: 8 } as const;

/** Room for what a receive tells besides: an `in6_pktinfo`, the larger of the two, and two numbers. `CMSG_SPACE` of each. */
export const RECEIVE_CONTROL_BYTES = 88;
