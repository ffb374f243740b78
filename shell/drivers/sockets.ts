/** Makes the sockets of the batching driver: what is set before a bind, and how a listener shares its address with others. */
import { isUnspecified, type Address, type ListenerSocket } from '../../core/index.ts';
import type { Arena } from './arena.ts';
import { SOCK_FPROG, SOCKADDR_IN6 } from './libc-layout.ts';
import {
  AF_INET,
  AF_INET6,
  errnoName,
  IP_PKTINFO,
  IPPROTO_IP,
  IPPROTO_IPV6,
  IPV6_RECVPKTINFO,
  IPV6_V6ONLY,
  SO_ATTACH_REUSEPORT_CBPF,
  SO_RCVBUF,
  SO_REUSEPORT,
  SO_RXQ_OVFL,
  SO_SNDBUF,
  SOCK_CLOEXEC,
  SOCK_DGRAM,
  SOCK_NONBLOCK,
  SOL_SOCKET,
  SOL_UDP,
  UDP_GRO,
  UDP_SEGMENT,
  type Libc,
} from './libc.ts';
import { Siblings } from './siblings.ts';
import { steeringBySource, STEERING_BYTES } from './steering.ts';

/** How listeners of several drivers share one address. */
export interface Sharing {
  /** Of `siblingMemory`: the kernel spreads flows over the sockets of all siblings, by a hash of both ends (SO_REUSEPORT). */
  readonly siblings?: SharedArrayBuffer;
  /** All of a source comes to the same one of `count` siblings. They are numbered in the order of their binds. */
  readonly steer?: { readonly count: number };
}

/** Arguments of one call: an address and its length, an option's value, or a filter and its program. */
const SCRATCH_BYTES = 64 + STEERING_BYTES;
const LENGTH = 32;
const PROGRAM = 64;

export const SOCKETS_BYTES: number = SCRATCH_BYTES + 64;

/** Results are an open descriptor, or a negative errno and nothing left open. */
export class Sockets {
  private readonly libc: Libc;
  private readonly arena: Arena;
  private readonly siblings: Siblings | undefined;
  private readonly steer: Sharing['steer'];
  private readonly scratch: number;

  constructor(libc: Libc, arena: Arena, { siblings, steer }: Sharing) {
    this.libc = libc;
    this.arena = arena;
    this.siblings = siblings && new Siblings(siblings);
    this.steer = steer;
    this.scratch = arena.reserve(SCRATCH_BYTES);
  }

  listener(address: Address, wanted: ListenerSocket): number {
    const { siblings } = this;
    if (siblings === undefined) {
      return this.open(address.family, (fd) => this.bindListener(fd, address, wanted));
    }
    return siblings.alone(() => {
      const fd = this.amongSiblings(siblings, address, wanted);
      if (fd >= 0) siblings.bound({ ...address, port: this.portOf(fd) });
      return fd;
    });
  }

  /** Has a socket take trains in one piece from now on. A kernel that does not know it goes on without. */
  takeTrains(fd: number): void {
    this.setOption(fd, SOL_UDP, UDP_GRO, 1);
  }

  /** A listener's socket, which was bound to `address`, is closed. */
  closed(address: Address): void {
    const { siblings } = this;
    siblings?.alone(() => siblings.closed(address));
  }

  /** Connected to `backend`, bound to `source` if one is given. */
  upstream(backend: Address, source: Address | undefined): number {
    return this.open(backend.family, (fd) => this.connect(fd, backend, source));
  }

  /** Whether this kernel knows trains: Linux 4.18 does. */
  cutsTrains(): boolean {
    const fd = this.open(4, (socket) => this.setOption(socket, SOL_UDP, UDP_SEGMENT, 0));
    if (fd >= 0) this.libc.close(fd);
    return fd >= 0;
  }

  /** The port that a socket is bound to. */
  portOf(fd: number): number {
    const { libc, arena, scratch } = this;
    arena.setInt32(scratch + LENGTH, SOCKADDR_IN6.size);
    libc.getsockname(fd, arena.address + scratch, arena.address + scratch + LENGTH);
    return arena.readAddress(scratch, undefined).port;
  }

  private open(family: 4 | 6, prepare: (fd: number) => number): number {
    const domain = family === 4 ? AF_INET : AF_INET6;
    const fd = this.libc.socket(domain, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return fd;
    const failed = prepare(fd);
    if (failed >= 0) return fd;
    this.libc.close(fd);
    return failed;
  }

  /**
   * The first one binds alone, and only then may others join: a bind with SO_REUSEPORT would join those of another process
   * as well. A group gets its program from one that joins, for one socket alone is not a group yet.
   */
  private amongSiblings(siblings: Siblings, address: Address, wanted: ListenerSocket): number {
    const first = this.open(address.family, (fd) => {
      const failed = this.bindListener(fd, address, wanted);
      return failed < 0 ? failed : this.setOption(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    });
    if (first >= 0 || errnoName(first) !== 'EADDRINUSE' || !siblings.have(address)) return first;
    return this.open(address.family, (fd) => {
      const shared = this.setOption(fd, SOL_SOCKET, SO_REUSEPORT, 1);
      const failed = shared < 0 ? shared : this.bindListener(fd, address, wanted);
      return failed < 0 || this.steer === undefined ? failed : this.attach(fd, this.steer.count);
    });
  }

  private bindListener(fd: number, address: Address, wanted: ListenerSocket): number {
    // It costs nothing where no trains come (measured).
    this.takeTrains(fd);
    for (const [level, option, value] of this.optionsOf(address, wanted)) {
      const failed = this.setOption(fd, level, option, value);
      if (failed < 0) return failed;
    }
    return this.bind(fd, address);
  }

  private optionsOf(address: Address, wanted: ListenerSocket): [number, number, number][] {
    const isIpv6 = address.family === 6;
    const options: [number, number, number][] = [
      [SOL_SOCKET, SO_RCVBUF, wanted.receiveBuffer],
      [SOL_SOCKET, SO_SNDBUF, wanted.sendBuffer],
      [SOL_SOCKET, SO_RXQ_OVFL, 1],
    ];
    if (isIpv6) options.push([IPPROTO_IPV6, IPV6_V6ONLY, wanted.ipv6Only ? 1 : 0]);
    if (isUnspecified(address)) {
      options.push(isIpv6 ? [IPPROTO_IPV6, IPV6_RECVPKTINFO, 1] : [IPPROTO_IP, IP_PKTINFO, 1]);
    }
    return options;
  }

  /** After the bind, because a socket with a program may not join others. Each puts the same one in the place of the last. */
  private attach(fd: number, count: number): number {
    const { arena, scratch } = this;
    const program = steeringBySource(count);
    arena.bytes.set(program.bytes, scratch + PROGRAM);
    arena.setInt32(scratch + SOCK_FPROG.length, program.instructions);
    arena.setWord(scratch + SOCK_FPROG.filter, arena.address + scratch + PROGRAM);
    const at = arena.address + scratch;
    return this.libc.setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, at, SOCK_FPROG.size);
  }

  private connect(fd: number, backend: Address, source: Address | undefined): number {
    const { libc, arena, scratch } = this;
    const failed = source === undefined ? 0 : this.bind(fd, { ...source, port: 0 });
    if (failed < 0) return failed;
    const length = arena.writeAddress(scratch, backend.family, backend);
    return libc.connect(fd, arena.address + scratch, length);
  }

  private bind(fd: number, address: Address): number {
    const { libc, arena, scratch } = this;
    const length = arena.writeAddress(scratch, address.family, address);
    return libc.bind(fd, arena.address + scratch, length);
  }

  private setOption(fd: number, level: number, option: number, value: number): number {
    const { libc, arena, scratch } = this;
    arena.setInt32(scratch, value);
    return libc.setsockopt(fd, level, option, arena.address + scratch, 4);
  }
}
