/**
 * One direction of a link. A packet meets its faults in this order: partition, MTU, loss, corruption, the line's queue; then it
 * may be copied, and is under way for a drawn time. Packets arrive in the order in which they set out, however their
 * times were drawn, but for those that reordering or duplication puts out of turn.
 */
import type { Instant } from '../../core/time.ts';
import { after, instant, microseconds } from '../../core/time.ts';
import type { VirtualClock } from '../clock.ts';
import type { EventQueue } from '../event-queue.ts';
import type { Random } from '../random.ts';
import { corruptPayload } from './corrupt-payload.ts';
import { Episodes } from './episodes.ts';
import type { Delayed, Episode, LinkFaults, Ratio } from './faults.ts';
import { drawLatency } from './latency.ts';
import type { LossCause, Packet, TellFate } from './packet.ts';
import { wireBytes } from './packet.ts';

export interface LinkOptions {
  readonly name: string;
  readonly clock: VirtualClock;
  readonly events: EventQueue<() => void>;
  /** The network's stream: the link takes forks of it under its own name, one for each fault. */
  readonly random: Random;
  /** What holds outside of episodes. */
  readonly faults: LinkFaults;
  /** Whether a packet that takes no time arrives within `offer`, rather than by an event of the same instant. */
  readonly atOnce: boolean;
  readonly tell: TellFate;
  readonly arrive: (packet: Packet) => void;
  /** A datagram was too big, and its sender is to hear of it. It has been told lost. */
  readonly tooBig: (packet: Packet, mtu: number) => void;
}

export class Link {
  readonly #options: LinkOptions;
  readonly #episodes: Episodes;
  readonly #forks = new Map<string, Random>();
  #faults: LinkFaults;
  /** The state of burst loss. */
  #bad = false;
  /** What waits for the line, in millionths of a byte, so that every sum is whole; and when that was so. */
  #backlog = 0;
  #backlogAt: Instant = instant(0);
  readonly #lane: Lane;
  /** Packets under way out of turn. */
  #loose = 0;
  #held: Packet[] = [];

  constructor(options: LinkOptions) {
    const { clock, events, faults } = options;
    this.#options = options;
    this.#faults = faults;
    this.#lane = new Lane(options);
    this.#episodes = new Episodes(clock, events, faults, (changed) => this.#apply(changed));
  }

  /** Packets that have set out, or are held, and have not arrived. */
  get inFlight(): number {
    return this.#lane.length + this.#loose + this.#held.length;
  }

  /** What holds now, episodes included. */
  get faults(): LinkFaults {
    return this.#faults;
  }

  /** Changes what holds outside of episodes. */
  setFaults(faults: LinkFaults): void {
    this.#episodes.setLasting(faults);
  }

  addEpisode(episode: Episode): void {
    this.#episodes.add(episode);
  }

  /** Ends every episode, also those that have not begun. */
  heal(): void {
    this.#episodes.heal();
  }

  offer(packet: Packet): void {
    if (this.#faults.held) this.#held.push(packet);
    else this.#enter(packet);
  }

  #apply(faults: LinkFaults): void {
    this.#faults = faults;
    if (faults.held) return;
    const released = this.#held;
    this.#held = [];
    for (const packet of released) this.#enter(packet);
  }

  #enter(packet: Packet): void {
    const { partitioned, mtu } = this.#faults;
    if (partitioned) return this.#lose(packet, 'partition');
    if (mtu !== undefined && wireBytes(packet) > mtu.bytes) {
      this.#lose(packet, 'too-big');
      if (mtu.icmp && packet.kind === 'datagram') this.#options.tooBig(packet, mtu.bytes);
      return;
    }
    if (this.#drawLoss()) return this.#lose(packet, 'loss');
    const kept = this.#corrupt(packet);
    if (kept === undefined) return this.#lose(packet, 'checksum');
    this.#setOut(kept);
    this.#duplicate(kept);
  }

  #setOut(packet: Packet): void {
    const delay = this.#lineTime(packet);
    if (delay === undefined) return this.#lose(packet, 'queue-full');
    const late = this.#drawDelayed('reordering', this.#faults.reordering);
    const underWay = delay + drawLatency(this.#faults.latency, this.#fork('latency'));
    if (late === undefined) return this.#lane.push(packet, this.#in(underWay));
    this.#options.tell({ kind: 'reordered', packet, where: this.#options.name });
    this.#goLoose(packet, this.#in(underWay + late));
  }

  #duplicate(original: Packet): void {
    const late = this.#drawDelayed('duplication', this.#faults.duplication);
    if (late === undefined) return;
    const packet = { ...original, copy: true };
    this.#options.tell({ kind: 'duplicated', packet, where: this.#options.name });
    const delay = this.#lineTime(packet);
    if (delay === undefined) return this.#lose(packet, 'queue-full');
    const latency = drawLatency(this.#faults.latency, this.#fork('copy latency'));
    this.#goLoose(packet, this.#in(delay + latency + late));
  }

  #goLoose(packet: Packet, at: Instant): void {
    this.#loose += 1;
    this.#options.events.push(at, () => {
      this.#loose -= 1;
      this.#options.arrive(packet);
    });
  }

  /** How long the packet waits for the line and takes on it, microseconds; undefined when the queue has no room for it. */
  #lineTime(packet: Packet): number | undefined {
    const { rate } = this.#faults;
    if (rate === undefined) return 0;
    const now = this.#options.clock.now();
    const drained = (now - this.#backlogAt) * rate.bytesPerSecond;
    const backlog = Math.max(0, this.#backlog - drained) + wireBytes(packet) * 1_000_000;
    if (backlog > rate.queueBytes * 1_000_000) return undefined;
    this.#backlog = backlog;
    this.#backlogAt = now;
    return Math.ceil(backlog / rate.bytesPerSecond);
  }

  /** Two draws for each packet, however they come out. */
  #drawLoss(): boolean {
    const { loss } = this.#faults;
    if (loss === undefined) return false;
    const random = this.#fork('loss');
    if (chance(random, 'loss.move', this.#bad ? loss.toGood : loss.toBad)) this.#bad = !this.#bad;
    return chance(random, 'loss.lose', this.#bad ? loss.lossBad : loss.lossGood);
  }

  /** The packet as it goes on; undefined when the receiver's checksum will catch what became of it. */
  #corrupt(packet: Packet): Packet | undefined {
    const { corruption } = this.#faults;
    if (corruption === undefined) return packet;
    const random = this.#fork('corruption');
    if (!chance(random, 'corruption.hit', corruption.ratio)) return packet;
    const how = random.pick('corruption.how', corruption.ways);
    if (chance(random, 'corruption.caught', corruption.caught)) return undefined;
    if (packet.kind !== 'datagram') return undefined;
    const payload = corruptPayload(packet.datagram.payload, how, random);
    if (payload === undefined) return undefined;
    const changed = { ...packet, datagram: { ...packet.datagram, payload } };
    this.#options.tell({ kind: 'corrupted', packet: changed, where: this.#options.name, how });
    return changed;
  }

  /** How much later the packet comes; undefined when it is spared. */
  #drawDelayed(name: string, delayed: Delayed | undefined): number | undefined {
    if (delayed === undefined) return undefined;
    const random = this.#fork(name);
    const hit = chance(random, 'delayed.hit', delayed.ratio);
    return hit ? random.between('delayed.by', delayed.by.low, delayed.by.high) : undefined;
  }

  #lose(packet: Packet, cause: LossCause): void {
    this.#options.tell({ kind: 'lost', packet, where: this.#options.name, cause });
  }

  #in(delay: number): Instant {
    return after(this.#options.clock.now(), microseconds(delay));
  }

  /** The stream of one fault, made when it is first needed: most links of a run have few faults. */
  #fork(name: string): Random {
    const known = this.#forks.get(name);
    if (known !== undefined) return known;
    const fork = this.#options.random.fork(`${this.#options.name}/${name}`);
    this.#forks.set(name, fork);
    return fork;
  }
}

/** First in, first out: what sets out later arrives no earlier. Packets that are due at one instant arrive in one event. */
class Lane {
  length = 0;
  readonly #options: LinkOptions;
  #first: Place | undefined;
  #last: Place | undefined;
  /** Whether an event will look after the first one. */
  #awaited = false;
  readonly #onDue = (): void => this.#arrive();

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  /** `due` is now or later. Behind one that is due later the packet waits for that one. */
  push(packet: Packet, due: Instant): void {
    const now = this.#options.clock.now();
    if (this.#options.atOnce && due <= now && this.length === 0) {
      this.#options.arrive(packet);
      return;
    }
    const place: Place = { packet, due, next: undefined };
    if (this.#last === undefined) this.#first = place;
    else this.#last.next = place;
    this.#last = place;
    this.length += 1;
    if (!this.#awaited) this.#await(due);
  }

  #await(due: Instant): void {
    this.#awaited = true;
    this.#options.events.push(due, this.#onDue);
  }

  /** What is pushed meanwhile waits for an event of its own: an answer without delay must not keep this loop going. */
  #arrive(): void {
    const now = this.#options.clock.now();
    for (let rest = this.length; rest > 0 && this.#first !== undefined; rest--) {
      const { packet, due, next } = this.#first;
      if (due > now) break;
      this.#first = next;
      if (next === undefined) this.#last = undefined;
      this.length -= 1;
      this.#options.arrive(packet);
    }
    this.#awaited = false;
    if (this.#first !== undefined) this.#await(this.#first.due);
  }
}

interface Place {
  readonly packet: Packet;
  readonly due: Instant;
  next: Place | undefined;
}

function chance(random: Random, site: string, { numerator, denominator }: Ratio): boolean {
  return random.chance(site, numerator, denominator);
}
