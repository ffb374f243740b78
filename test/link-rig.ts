/** For tests of a simulated link. */
import { ipv4, ipv6 } from '../core/address.ts';
import { assert } from '../core/assert.ts';
import type { Instant } from '../core/time.ts';
import { instant } from '../core/time.ts';
import { VirtualClock } from '../sim/clock.ts';
import { EventQueue } from '../sim/event-queue.ts';
import { seededStreams } from '../sim/random.ts';
import { seedFromNumber } from '../sim/seed.ts';
import type { LinkFaults } from '../sim/world/faults.ts';
import { FAULTLESS } from '../sim/world/faults.ts';
import { Link } from '../sim/world/link.ts';
import type { Packet, PacketFate } from '../sim/world/packet.ts';
import { FateLedger } from '../sim/world/packet.ts';

/** 1 to `count`. */
export function counted(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}

/** One link, driven event by event, and what came out. After every event its own count of packets must be the ledger's. */
export class LinkRig {
  readonly clock = new VirtualClock();
  readonly events: EventQueue<() => void>;
  readonly link: Link;
  readonly ledger = new FateLedger();
  readonly fates: PacketFate[] = [];
  readonly packets: { at: Instant; packet: Packet }[] = [];
  readonly tooBig: { serial: number; mtu: number }[] = [];
  onArrival = (): void => {};
  #serial = 0;

  constructor(
    faults: Partial<LinkFaults>,
    { name = 'link', atOnce = false }: { name?: string; atOnce?: boolean } = {},
  ) {
    const { net, sched } = seededStreams(seedFromNumber(7));
    this.events = new EventQueue(sched);
    this.link = new Link({
      name,
      clock: this.clock,
      events: this.events,
      random: net,
      faults: { ...FAULTLESS, ...faults },
      atOnce,
      tell: (fate) => this.#tell(fate),
      arrive: (packet) => {
        this.packets.push({ at: this.clock.now(), packet });
        this.#tell({ kind: 'delivered', packet });
        this.onArrival();
      },
      tooBig: ({ serial }, mtu) => this.tooBig.push({ serial, mtu }),
    });
  }

  get arrivals(): { at: number; serial: number }[] {
    return this.packets.map(({ at, packet: { serial } }) => ({ at, serial }));
  }

  get serials(): number[] {
    return this.packets.map(({ packet }) => packet.serial);
  }

  offer(payload: Uint8Array = new Uint8Array(10)): void {
    this.#offer({ src: ipv4(0x0a000001, 1_000), dst: ipv4(0x0a000002, 53), payload });
  }

  offerIpv6(payload: Uint8Array): void {
    this.#offer({ src: ipv6([1, 0, 0, 1], 1_000), dst: ipv6([1, 0, 0, 2], 53), payload });
  }

  /** Which of so many packets are lost. */
  lossesOf(count: number): boolean[] {
    for (let sent = 0; sent < count; sent++) this.offer();
    const lost = Array.from({ length: count }, () => false);
    for (const fate of this.fates) if (fate.kind === 'lost') lost[fate.packet.serial - 1] = true;
    return lost;
  }

  runUntil(until: number): void {
    for (
      let at = this.events.nextAt();
      at !== undefined && at <= until;
      at = this.events.nextAt()
    ) {
      this.clock.advanceTo(at);
      this.events.pop()!.value();
      assert(this.link.inFlight === this.ledger.inFlight, 'nothing is lost untold');
    }
    this.clock.advanceTo(instant(until));
  }

  finish(): void {
    for (let at = this.events.nextAt(); at !== undefined; at = this.events.nextAt())
      this.runUntil(at);
    assert(this.link.inFlight === 0, 'everything arrives or is lost');
  }

  #offer(datagram: Packet['datagram']): void {
    const serial = ++this.#serial;
    const packet: Packet = {
      kind: 'datagram',
      serial,
      copy: false,
      raw: false,
      sent: datagram,
      datagram,
      about: 0,
      mtu: 0,
    };
    this.#tell({ kind: 'sent', packet });
    this.link.offer(packet);
  }

  #tell(fate: PacketFate): void {
    this.fates.push(fate);
    this.ledger.tell(fate);
  }
}
