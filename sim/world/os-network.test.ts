/** The simulated operating system on the simulated network: what either promises the other at their seam. */
import { expect, test } from 'vitest';
import { formatAddress, ipv4 } from '../../core/address.ts';
import { listenerId, socketId } from '../../core/brand.ts';
import type { Arrivals } from '../../core/ports.ts';
import { instant, microseconds, milliseconds, seconds } from '../../core/time.ts';
import { VirtualClock } from '../clock.ts';
import { EventQueue } from '../event-queue.ts';
import { seededStreams } from '../random.ts';
import { seedFromNumber } from '../seed.ts';
import { FAULTLESS } from './faults.ts';
import { Network } from './network.ts';
import { HOST_DEFAULTS } from './os-faults.ts';
import { Host } from './os-host.ts';
import { Kernel } from './os-kernel.ts';
import { SimulatedOs } from './os.ts';
import { FateLedger } from './packet.ts';

const SOCKET = { ipv6Only: false, receiveBuffer: 212_992, sendBuffer: 212_992 };
const FRONT = listenerId(0);
const UPSTREAM = socketId(1, FRONT);
const PROXY = ipv4(0x0a000001, 53);
const BACKEND = ipv4(0x0a000002, 53);
const CLIENT = ipv4(0x0a000003, 1_000);

test('a client, a wildcard listener and a backend hear each other over the links', () => {
  const world = new TwoHosts();
  world.echo(BACKEND);
  world.os.openListener(FRONT, ipv4(0, 53), SOCKET);
  world.os.openUpstream(UPSTREAM, BACKEND, undefined);
  world.network.send({ src: CLIENT, dst: PROXY, payload: Uint8Array.of(1) });
  world.run();
  world.sendUpstream(2);
  world.run();
  expect(world.heard).toEqual(['client 10.0.0.3:1000 to 10.0.0.1:53: 1', 'backend: 2']);
  world.os.sendToClient(FRONT, CLIENT, PROXY, Uint8Array.of(3));
  world.os.flush(() => {});
  world.run();
  expect(world.ledger.lost).toEqual(new Map([['no-port', 1]]));
});

test('a closed port refuses, within the kernel’s limits, and a machine that is off is silent', () => {
  const world = new TwoHosts();
  world.os.openUpstream(UPSTREAM, BACKEND, undefined);
  const refusals = (): number => {
    world.heard.length = 0;
    for (let sent = 0; sent < 10; sent++) {
      world.sendUpstream(sent);
      world.run();
    }
    return world.heard.filter((line) => line === 'refused').length;
  };
  expect(refusals()).toBe(6);
  world.clock.advance(seconds(60));
  world.network.setRunning('backend', false);
  expect(refusals()).toBe(0);
});

test('what comes for a closed socket is refused by its host', () => {
  const world = new TwoHosts();
  world.echo(BACKEND);
  world.os.openUpstream(UPSTREAM, BACKEND, undefined);
  world.sendUpstream(1);
  world.clock.advanceTo(world.events.nextAt() ?? instant(0));
  world.os.closeUpstream(UPSTREAM);
  world.run();
  expect(world.heard).toEqual([]);
  expect(world.refusedAtBackend).toBe(1);
});

/** The proxy's host with its operating system, and two machines that are bare endpoints. */
class TwoHosts {
  readonly clock = new VirtualClock();
  readonly events: EventQueue<() => void>;
  readonly network: Network;
  readonly os: SimulatedOs;
  readonly ledger = new FateLedger();
  readonly heard: string[] = [];
  refusedAtBackend = 0;

  constructor() {
    const streams = seededStreams(seedFromNumber(3));
    const { clock } = this;
    this.events = new EventQueue<() => void>(streams.sched);
    const time = { clock, events: this.events, streams };
    this.network = new Network({ ...time, random: streams.net, tell: this.ledger.tell });
    const slow = { ...FAULTLESS, latency: { kind: 'constant', time: milliseconds(1) } } as const;
    for (const [name, ip] of Object.entries({ proxy: PROXY, backend: BACKEND, client: CLIENT })) {
      this.network.addHost(name, { ips: [ip], up: slow, down: slow });
    }
    const shape = { ...HOST_DEFAULTS, name: 'proxy', addresses: [{ ...PROXY, port: 0 }] };
    this.os = new SimulatedOs(new Kernel(new Host(shape, time), this.network));
    this.os.attach(this.#arrivals());
  }

  echo(at: typeof BACKEND): void {
    this.network.attach(at, {
      deliver: ({ src, dst, payload }) => {
        this.events.push(this.clock.now(), () =>
          this.network.send({ src: dst, dst: src, payload }),
        );
      },
      unreachable: () => {
        this.refusedAtBackend += 1;
      },
    });
  }

  sendUpstream(byte: number): void {
    this.os.sendToBackend(UPSTREAM, undefined, Uint8Array.of(byte));
    this.os.flush(() => {});
  }

  /** Ten milliseconds: enough for anything to come and an answer to go. */
  run(): void {
    const until = instant(this.clock.now() + microseconds(10_000));
    for (let at = this.events.nextAt(); at !== undefined; at = this.events.nextAt()) {
      if (at > until) break;
      this.clock.advanceTo(at);
      this.events.pop()?.value();
    }
    this.clock.advanceTo(until);
  }

  #arrivals(): Arrivals {
    const note = (line: string): void => void this.heard.push(line);
    return {
      clientDatagram: (_, src, local, payload) => {
        const to = local === undefined ? '' : ` to ${formatAddress(local)}`;
        note(`client ${formatAddress(src)}${to}: ${String(payload[0])}`);
      },
      backendDatagram: (_, payload) => note(`backend: ${String(payload[0])}`),
      clientTrain: () => false,
      backendTrain: () => false,
      refused: () => note('refused'),
      upstreamWritable: () => note('writable'),
      listenerWritable: () => note('writable'),
      lateSendFailure: () => note('late'),
      timer: () => note('timer'),
      endTurn: () => {},
    };
  }
}
