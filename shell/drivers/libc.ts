/**
 * All that this project calls in the C library, through koffi, which is optional: without it `loadLibc` says why there is none.
 * Linux on x86-64 and arm64 only, both little-endian; libc-layout.ts says how their structs lie in memory. The C library is
 * found in the process itself rather than by a file name, so that glibc and musl do alike.
 */
import { createRequire } from 'node:module';
import { getSystemErrorName } from 'node:util';
import { layoutFor, POLLFD, type Layout } from './libc-layout.ts';

/** The system calls of a batching driver. Addresses are plain numbers; a failure is a negative errno. */
export interface Libc {
  readonly layout: Layout;
  socket(family: number, type: number, protocol: number): number;
  bind(fd: number, address: number, bytes: number): number;
  connect(fd: number, address: number, bytes: number): number;
  getsockname(fd: number, address: number, bytes: number): number;
  setsockopt(fd: number, level: number, option: number, value: number, bytes: number): number;
  getsockopt(fd: number, level: number, option: number, value: number, bytes: number): number;
  /** Receives up to `count` datagrams into the `struct mmsghdr` at `headers`; how many. */
  recvmmsg(fd: number, headers: number, count: number): number;
  /** Receives one datagram; its bytes. Who sent it, and whether it is a train, is not told. */
  recv(fd: number, address: number, bytes: number): number;
  /** Sends `count` datagrams; how many went. What stopped it is told only when it was the first. */
  sendmmsg(fd: number, headers: number, count: number): number;
  /** Sends bytes as one datagram to whom the socket is connected to. */
  send(fd: number, address: number, bytes: number): number;
  /** Whether a send on this socket would not block now. */
  hasRoom(fd: number): boolean;
  epollCreate(): number;
  /** The data of the event is the descriptor. */
  epollCtl(epoll: number, operation: number, fd: number, events: number): number;
  epollWait(epoll: number, events: number, count: number, milliseconds: number): number;
  /** A counter that is readable when it is not zero: it never blocks. */
  eventfd(): number;
  read(fd: number, address: number, bytes: number): number;
  close(fd: number): number;
  /** Where the bytes of `memory` lie. They stay there as long as it is referenced. */
  addressOf(memory: ArrayBuffer): number;
}

/** Numbers of <sys/socket.h>, <netinet/in.h>, <netinet/udp.h>, <sys/epoll.h>, <poll.h>: the same on x86-64 and arm64. */
export const AF_INET = 2;
export const AF_INET6 = 10;
export const SOCK_DGRAM = 2;
export const SOCK_NONBLOCK = 0x800;
export const SOCK_CLOEXEC = 0x80000;
export const SOL_SOCKET = 1;
export const SO_SNDBUF = 7;
export const SO_RCVBUF = 8;
export const SO_REUSEPORT = 15;
export const SO_RXQ_OVFL = 40;
export const SO_ATTACH_REUSEPORT_CBPF = 51;
export const IPPROTO_IP = 0;
export const IP_PKTINFO = 8;
export const IPPROTO_IPV6 = 41;
export const IPV6_V6ONLY = 26;
export const IPV6_RECVPKTINFO = 49;
export const IPV6_PKTINFO = 50;
export const SOL_UDP = 17;
export const UDP_SEGMENT = 103;
export const UDP_GRO = 104;
export const EPOLLIN = 1;
export const EPOLLOUT = 4;
export const EPOLL_CTL_ADD = 1;
export const EPOLL_CTL_MOD = 3;
const POLLOUT = 4;
const EPOLL_CLOEXEC = 0x80000;
const EFD_NONBLOCK = 0x800;
const EFD_CLOEXEC = 0x80000;

/** What is used of koffi, so that the project compiles where it is not installed. */
interface Koffi {
  load(path: null): { func(name: string, result: string, parameters: readonly string[]): Native };
  errno(): number;
  address(memory: ArrayBufferLike): bigint;
}

type Native = (...values: number[]) => number;

/** The C library of this process; or why it cannot be had: another system, or no koffi. */
export function loadLibc(): Libc | string {
  const layout = layoutFor(process.arch);
  if (process.platform !== 'linux') return 'only Linux has its system calls';
  if (layout === undefined) return `it does not know the structs of ${process.arch}`;
  try {
    const koffi: Koffi = createRequire(import.meta.url)('koffi');
    return bindLibc(koffi, layout);
  } catch (error) {
    const [why] = String(error).split('\n');
    return `koffi does not load: ${why ?? ''}`;
  }
}

/** `EAGAIN` and so on, of what a call of `Libc` returned. */
export function errnoName(result: number): string {
  return getSystemErrorName(result);
}

function bindLibc(koffi: Koffi, layout: Layout): Libc {
  const process = koffi.load(null);
  const bind = (name: string, ...parameters: string[]): Native => {
    const native = process.func(name, 'int', parameters);
    const answer = (result: number): number => (result < 0 ? -koffi.errno() : result);
    // To gather arguments in an array costs as much as a call, and a flow is made of these.
    if (parameters.length === 1) return (a) => answer(native(a));
    if (parameters.length === 3) return (a, b, c) => answer(native(a, b, c));
    if (parameters.length === 4) return (a, b, c, d) => answer(native(a, b, c, d));
    return (...values) => answer(native(...values));
  };
  const [int, uint, pointer] = ['int', 'uint32_t', 'uintptr_t'];
  const recvmmsg = process.func('recvmmsg', int, [int, pointer, uint, int, pointer]);
  const sendmmsg = process.func('sendmmsg', int, [int, pointer, uint, int]);
  const recv = process.func('recv', int, [int, pointer, 'size_t', int]);
  const send = process.func('send', int, [int, pointer, 'size_t', int]);
  const wait = process.func('epoll_wait', int, [int, pointer, int, int]);
  const create = bind('epoll_create1', int);
  const control = bind('epoll_ctl', int, int, int, pointer);
  const eventfd = bind('eventfd', uint, int);
  const poll = bind('poll', pointer, 'unsigned long', int);
  const struct = new DataView(new ArrayBuffer(16));
  const structAt = Number(koffi.address(struct.buffer));
  return {
    layout,
    socket: bind('socket', int, int, int),
    bind: bind('bind', int, pointer, uint),
    connect: bind('connect', int, pointer, uint),
    getsockname: bind('getsockname', int, pointer, pointer),
    setsockopt: bind('setsockopt', int, int, int, pointer, uint),
    getsockopt: bind('getsockopt', int, int, int, pointer, pointer),
    // Written out, here and below, because these are called for every datagram or turn.
    recvmmsg: (fd, headers, count) => {
      const result = recvmmsg(fd, headers, count, 0, 0);
      return result < 0 ? -koffi.errno() : result;
    },
    recv: (fd, address, bytes) => {
      const result = recv(fd, address, bytes, 0);
      return result < 0 ? -koffi.errno() : result;
    },
    sendmmsg: (fd, headers, count) => {
      const result = sendmmsg(fd, headers, count, 0);
      return result < 0 ? -koffi.errno() : result;
    },
    send: (fd, address, bytes) => {
      const result = send(fd, address, bytes, 0);
      return result < 0 ? -koffi.errno() : result;
    },
    hasRoom: (fd) => {
      struct.setInt32(POLLFD.fd, fd, true);
      struct.setInt16(POLLFD.events, POLLOUT, true);
      struct.setInt16(POLLFD.returned, 0, true);
      return poll(structAt, 1, 0) > 0 && (struct.getInt16(POLLFD.returned, true) & POLLOUT) !== 0;
    },
    epollCreate: () => create(EPOLL_CLOEXEC),
    epollCtl: (epoll, operation, fd, events) => {
      struct.setInt32(layout.epollEvent.events, events, true);
      struct.setInt32(layout.epollEvent.data, fd, true);
      return control(epoll, operation, fd, structAt);
    },
    epollWait: (epoll, events, count, milliseconds) => {
      const result = wait(epoll, events, count, milliseconds);
      return result < 0 ? -koffi.errno() : result;
    },
    eventfd: () => eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
    read: bind('read', int, pointer, 'size_t'),
    close: bind('close', int),
    addressOf: (memory) => Number(koffi.address(memory)),
  };
}
