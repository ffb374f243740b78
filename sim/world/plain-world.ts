/**
 * The smallest simulated world: one host, and programs on a wire without a network, where everything arrives at once or after
 * one fixed time. Whatever goes wrong in it, the host's operating system did.
 */
import { formatAddress, ipv4, ipv6, sameAddress, type Address } from '../../core/address.ts';
import { present } from '../../core/assert.ts';
import { after, microseconds, type Duration } from '../../core/time.ts';
import { VirtualClock } from '../clock.ts';
import { EventQueue } from '../event-queue.ts';
import { seededStreams } from '../random.ts';
import { seedFromNumber } from '../seed.ts';
import { HOST_DEFAULTS, type HostShape, type OsFaults } from './os-faults.ts';
import { Host, type WorldTime } from './os-host.ts';
import { DATAGRAM_OVERHEAD_BYTES, Kernel } from './os-kernel.ts';
import { SimulatedOs } from './os.ts';
import type { Datagram, Endpoint, Wire } from './wire.ts';

export interface Received {
  readonly from: Address;
  readonly payload: Uint8Array;
}

export interface PlainOptions {
  readonly seed?: number;
  readonly shape?: Partial<HostShape>;
  readonly delay?: Duration;
}

/** Time, a wire, and one host on it: 127.0.0.1 to 127.0.0.3, and ::1. */
export class PlainWorld {
  readonly time: WorldTime;
  readonly wire: PlainWire;
  readonly host: Host;
  readonly kernel: Kernel;
  readonly os: SimulatedOs;
  private ports = 20_000;

  constructor({ seed = 1, shape = {}, delay = microseconds(0) }: PlainOptions = {}) {
    const streams = seededStreams(seedFromNumber(seed));
    const clock = new VirtualClock();
    this.time = { clock, events: new EventQueue<() => void>(streams.sched), streams };
    this.wire = new PlainWire(this.time, delay);
    const addresses = [0x7f000001, 0x7f000002, 0x7f000003].map((word) => ipv4(word, 0));
    this.host = new Host(
      {
        ...HOST_DEFAULTS,
        name: 'proxy',
        addresses: [...addresses, ipv6([0, 0, 0, 1], 0)],
        ...shape,
      },
      this.time,
    );
    this.kernel = new Kernel(this.host, this.wire);
    this.os = new SimulatedOs(this.kernel);
  }

  /** Changes these faults and leaves the others. */
  fault(faults: Partial<OsFaults>): void {
    this.host.setFaults({ ...this.host.faults, ...faults });
  }

  /** Lets time pass, and all that happens in it happen. */
  run(duration: Duration): void {
    const { clock, events } = this.time;
    const end = after(clock.now(), duration);
    for (let at = events.nextAt(); at !== undefined && at <= end; at = events.nextAt()) {
      clock.advanceTo(at);
      events.pop()?.value();
    }
    clock.advanceTo(end);
  }

  /** A program elsewhere; port 0 takes a free one that no host chooses. */
  program(at: Address): Program {
    const address = at.port === 0 ? { ...at, port: this.ports } : at;
    this.ports += 1;
    return new Program(this.wire, address);
  }

  /** How many datagrams each socket takes before it has no room. */
  setRoom(count: number): void {
    const isOpen = count === Infinity;
    this.fault({
      sendRate: isOpen ? undefined : 0,
      sendBuffer: isOpen ? undefined : count * DATAGRAM_OVERHEAD_BYTES,
    });
  }
}

/** Delivers at once, or after a fixed time; refuses for whoever is not there. */
export class PlainWire implements Wire {
  private readonly time: WorldTime;
  private readonly delay: Duration;
  private readonly endpoints = new Map<string, Endpoint>();
  /** Told of all that is sent. */
  tap: (datagram: Datagram) => void = () => undefined;

  constructor(time: WorldTime, delay: Duration) {
    this.time = time;
    this.delay = delay;
  }

  get attached(): string[] {
    return [...this.endpoints.keys()].sort();
  }

  attach(address: Address, endpoint: Endpoint): void {
    this.endpoints.set(formatAddress(address), endpoint);
  }

  detach(address: Address): void {
    this.endpoints.delete(formatAddress(address));
  }

  send(datagram: Datagram): void {
    this.tap(datagram);
    this.carry(() => {
      const there = this.endpoints.get(formatAddress(datagram.dst));
      if (there !== undefined) return there.deliver(datagram);
      return this.carry(() =>
        this.endpoints.get(formatAddress(datagram.src))?.unreachable(datagram),
      );
    });
  }

  private carry(action: () => void): void {
    const { clock, events } = this.time;
    if (this.delay === 0) action();
    else events.push(after(clock.now(), this.delay), action);
  }
}

/** A program with a socket that is not connected. */
export class Program implements Endpoint {
  readonly address: Address;
  readonly mailbox: Received[] = [];
  /** Told of each datagram once the mailbox has it. */
  heard: (received: Received) => void = () => undefined;
  private readonly wire: PlainWire;

  constructor(wire: PlainWire, address: Address) {
    this.wire = wire;
    this.address = address;
    this.reopen();
  }

  send(to: Address, payload: Uint8Array): void {
    this.wire.send({ src: this.address, dst: to, payload: payload.slice() });
  }

  close(): void {
    this.wire.detach(this.address);
  }

  reopen(): void {
    this.wire.attach(this.address, this);
  }

  deliver({ src, dst, payload }: Datagram): void {
    present(sameAddress(dst, this.address) || undefined, 'the wire goes by address');
    const received = { from: src, payload };
    this.mailbox.push(received);
    this.heard(received);
  }

  unreachable(): void {
    // Peers send from sockets that are not connected, which hear of no refusal.
  }
}
