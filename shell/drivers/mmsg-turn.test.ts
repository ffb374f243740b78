import { writeSync } from 'node:fs';
import { constants } from 'node:os';
import { performance } from 'node:perf_hooks';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { after, microseconds, socketId, type Arrivals } from '../../core/index.ts';
import { bytes, FRONT, LOCAL } from '../../test/driver-bench.ts';
import { needKoffi } from '../../test/e2e/peers.ts';
import { LoopbackPeer } from '../../test/loopback-peer.ts';
import { silent } from './mmsg-world.laws.ts';
import { loadLibc, type Libc } from './libc.ts';
import { MmsgDriver } from './mmsg.ts';

const libc = loadLibc();

if (typeof libc === 'string') test(`no turn without libc: ${libc}`, needKoffi);
else turnTests(libc);

function turnTests(real: Libc): void {
  const waits: number[] = [];
  const told: string[] = [];
  const peers: LoopbackPeer[] = [];
  let driver: MmsgDriver;

  beforeEach(() => {
    waits.length = 0;
    told.length = 0;
    driver = new MmsgDriver({
      ...real,
      epollWait: (epoll, events, count, timeout) => {
        waits.push(timeout);
        return real.epollWait(epoll, events, count, 0);
      },
    });
    const arrivals: Arrivals = {
      ...silent,
      clientDatagram: () => told.push('client'),
      timer: () => told.push('timer'),
      endTurn: () => told.push('endTurn'),
    };
    driver.attach(arrivals, () => told.push('wake'));
  });

  afterEach(() => {
    vi.restoreAllMocks();
    driver.closeListener(FRONT);
    driver.close();
    for (const peer of peers.splice(0)) peer.close();
  });

  const wake = (): number => writeSync(driver.wakeFd, new Uint8Array([1, 0, 0, 0, 0, 0, 0, 0]));

  test('waits as long as it is told to, and never longer than a second', () => {
    for (const time of [0, 5, 1_000, 60_000, -1]) driver.turn(time);
    expect(waits).toEqual([0, 5, 1_000, 1_000, 0]);
    expect(told).toEqual([]);
  });

  test('waits until the time to wake, rounded up to a millisecond, and the timer fires once', () => {
    const start = performance.now();
    const clock = vi.spyOn(performance, 'now').mockReturnValue(start);
    driver.wakeAt(after(driver.now(), microseconds(2_300)));
    driver.turn(1_000);
    driver.turn(2);
    expect(told).toEqual([]);
    clock.mockReturnValue(start + 2);
    driver.turn(1_000);
    expect(told).toEqual([]);
    clock.mockReturnValue(start + 3);
    driver.turn(1_000);
    expect(told).toEqual(['timer', 'endTurn']);
    driver.turn(1_000);
    expect(waits).toEqual([3, 2, 1, 0, 1_000]);
    expect(told).toHaveLength(2);
  });

  test('is silent once it is not to wake any more', () => {
    driver.wakeAt(driver.now());
    driver.wakeAt(undefined);
    driver.turn(7);
    expect(waits).toEqual([7]);
    expect(told).toEqual([]);
  });

  test('a write to its eventfd ends a wait once, however often it was written to', () => {
    const waiting = new MmsgDriver(real);
    let wakes = 0;
    waiting.attach(silent, () => {
      wakes += 1;
    });
    for (const _ of [1, 2]) writeSync(waiting.wakeFd, new Uint8Array([1, 0, 0, 0, 0, 0, 0, 0]));
    waiting.turn(1_000);
    expect(wakes).toBe(1);
    waiting.turn(0);
    expect(wakes).toBe(1);
    waiting.close();
  });

  test('goes on after a signal, and gives up where the kernel does not let it wait', () => {
    let answer = -constants.errno.EINTR;
    const denied = new MmsgDriver({ ...real, epollWait: () => answer });
    denied.attach(silent);
    denied.turn(1_000);
    answer = -constants.errno.EPERM;
    expect(() => denied.turn(1_000)).toThrow('epoll_wait answers EPERM');
    denied.close();
  });

  test('tells arrivals, then the timer, ends the turn, and serves the wake after it', () => {
    listenAndFlood(1);
    wake();
    driver.wakeAt(driver.now());
    driver.turn(1_000);
    expect(told).toEqual(['client', 'timer', 'endTurn', 'wake']);
  });

  test('serves timer and wake in the midst of a flood that never lets it wait', () => {
    listenAndFlood(600);
    wake();
    driver.wakeAt(driver.now());
    for (let turn = 0; turn < 2; turn += 1) driver.turn(1_000);
    expect(told.indexOf('timer')).toBeLessThanOrEqual(256);
    expect(told.indexOf('wake')).toBeLessThanOrEqual(512);
    expect(told.filter((what) => what === 'wake')).toHaveLength(1);
  });

  test('keeps no descriptor of a socket that cannot be watched', () => {
    let isDeaf = false;
    const deaf = new MmsgDriver({
      ...real,
      epollCtl: (...call) => (isDeaf ? -28 : real.epollCtl(...call)),
      close: (fd) => {
        told.push('close');
        return real.close(fd);
      },
    });
    isDeaf = true;
    told.length = 0;
    expect(deaf.openUpstream(socketId(1, FRONT), { ...LOCAL, port: 9 }, undefined)).toBe('ENOSPC');
    expect(deaf.socketCount).toBe(0);
    expect(told).toEqual(['close']);
    deaf.close();
  });

  function listenAndFlood(count: number): void {
    const socket = { ipv6Only: false, receiveBuffer: 1_048_576, sendBuffer: 65_536 };
    expect(driver.openListener(FRONT, LOCAL, socket)).toBeUndefined();
    const client = new LoopbackPeer(LOCAL);
    peers.push(client);
    const front = { ...LOCAL, port: driver.portOf(FRONT) ?? 0 };
    for (let n = 0; n < count; n += 1) client.send(front, bytes(1));
  }
}
