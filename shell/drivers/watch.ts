/**
 * What the batching driver waits with: an epoll descriptor that watches its sockets, and an eventfd by which another thread
 * ends a wait.
 */
import type { Arena } from './arena.ts';
import { EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLLIN, EPOLLOUT, errnoName, type Libc } from './libc.ts';

/** Descriptors that one wait tells of. */
const EVENTS = 256;

/** Milliseconds. An endless wait would keep the process from ending when its main thread does. */
const LONGEST_WAIT = 1_000;

export const WATCH_BYTES: number = EVENTS * 16 + 64 + 128;

export class Watch {
  /** Whoever writes eight bytes, a number of one or more, ends the wait that is under way, or the next. */
  readonly wakeFd: number;
  private readonly libc: Libc;
  private readonly arena: Arena;
  private readonly epoll: number;
  private readonly events: number;
  private readonly scratch: number;
  private count = 0;
  private next = 0;
  private current = 0;

  /** Throws when the process has no descriptor left. */
  constructor(libc: Libc, arena: Arena) {
    this.libc = libc;
    this.arena = arena;
    this.events = arena.reserve(EVENTS * libc.layout.epollEvent.size);
    this.scratch = arena.reserve(8);
    this.epoll = libc.epollCreate();
    this.wakeFd = libc.eventfd();
    const failed = Math.min(this.epoll, this.wakeFd, this.add(this.wakeFd));
    if (failed < 0) throw new Error(`nothing to wait with: ${errnoName(failed)}`);
  }

  /** Arrivals on `fd` are told from now on, until it is closed; or a negative errno. */
  add(fd: number): number {
    return this.libc.epollCtl(this.epoll, EPOLL_CTL_ADD, fd, EPOLLIN);
  }

  /** Whether room on `fd` is told besides. */
  watchRoom(fd: number, on: boolean): void {
    this.libc.epollCtl(this.epoll, EPOLL_CTL_MOD, fd, on ? EPOLLIN | EPOLLOUT : EPOLLIN);
  }

  /** Whether events of the last wait are left, which are taken before there is another. */
  get hasEvents(): boolean {
    return this.next < this.count;
  }

  /**
   * Waits until there are events, and no longer than so many whole milliseconds, or a second. Throws where the kernel does
   * not let it wait: whoever went on would turn in circles, and hear neither datagrams nor a wake.
   */
  wait(milliseconds: number): void {
    const { libc, epoll, arena } = this;
    const timeout = Math.min(Math.max(milliseconds, 0), LONGEST_WAIT);
    this.next = 0;
    this.count = libc.epollWait(epoll, arena.address + this.events, EVENTS, timeout);
    // A signal that ends it is no event.
    if (this.count >= 0 || errnoName(this.count) === 'EINTR') return;
    throw new Error(`epoll_wait answers ${errnoName(this.count)}`);
  }

  /** The next event is the current one from now on; its descriptor, or undefined when none is left. */
  take(): number | undefined {
    if (this.next >= this.count) return undefined;
    const { size, data } = this.libc.layout.epollEvent;
    this.current = this.events + this.next * size;
    this.next += 1;
    return this.arena.getInt32(this.current + data);
  }

  /** What happened, of the current event. */
  get happened(): number {
    return this.arena.getInt32(this.current + this.libc.layout.epollEvent.events);
  }

  /** The wake was heard: the next takes another write. */
  rest(): void {
    this.libc.read(this.wakeFd, this.arena.address + this.scratch, 8);
  }

  close(): void {
    this.libc.close(this.wakeFd);
    this.libc.close(this.epoll);
    this.count = 0;
  }
}
