import { createHook } from 'node:async_hooks';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { ipv4, listenerId, socketId, type Arrivals } from '../../core/index.ts';
import { driverLaws } from '../../core/ports.laws.ts';
import { LOOPBACK, type World } from '../../test/driver-bench.ts';
import { needIpv6, needPeers } from '../../test/e2e/peers.ts';
import { LoopbackPeer } from '../../test/loopback-peer.ts';
import { DgramDriver } from './dgram.ts';

driverLaws('node:dgram', async (arrivals) => worldOf(new DgramDriver(), arrivals));

test('an open that fails for want of a descriptor leaves no handle behind in the runtime', async (context) => {
  needPeers(context, 'prlimit');
  const driver = new DgramDriver();
  const live = new Set<number>();
  const hook = createHook({
    init: (id, kind) => void (kind === 'UDPWRAP' && live.add(id)),
    destroy: (id) => void live.delete(id),
  }).enable();
  await withoutDescriptors(() => {
    for (let serial = 1; serial <= 20; serial += 1) {
      const socket = socketId(serial, listenerId(0));
      expect(driver.openUpstream(socket, ipv4(LOOPBACK, 9))).toBe('EMFILE');
    }
    expect(live.size).toBe(20);
  });
  await vi.waitFor(() => expect(live.size).toBe(0));
  hook.disable();
});

/** Real loopback: what was sent lies in the receiver's socket when the call returns, and the next poll finds it. */
function worldOf(driver: DgramDriver, arrivals: Arrivals): World {
  driver.attach(arrivals);
  const peers: LoopbackPeer[] = [];
  return {
    ports: driver,
    portOf: (listener) => driver.portOf(listener),
    socketCount: () => driver.socketCount,
    need: (context, what) => {
      if (what === 'IPv6') needIpv6(context);
      else needPeers(context, 'prlimit');
    },
    peer: (at) => {
      const peer = new LoopbackPeer(at);
      peers.push(peer);
      return peer;
    },
    endOfTurn: async () => setImmediate(),
    settle: async () => {
      for (let poll = 0; poll < 4; poll += 1) await setImmediate();
    },
    pass: async (duration) => setTimeout(duration / 1_000),
    withoutDescriptors,
    dispose: async () => {
      for (const peer of peers) peer.close();
      await setImmediate();
    },
  };
}

/** Lowers this process's own limit while `run` is called; a shell that is already there raises it again. */
async function withoutDescriptors(run: () => void): Promise<void> {
  const limit = (soft: string): string => `prlimit --pid ${process.pid} --nofile=${soft}:`;
  const script = `old=$(prlimit --pid ${process.pid} --nofile --noheadings --output=SOFT)
    ${limit('3')} && echo lowered && read answer; ${limit('$old')}`;
  const shell = spawn('sh', ['-c', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const closed = once(shell, 'close');
  await once(shell.stdout, 'data');
  run();
  shell.stdin.end('\n');
  await closed;
}
