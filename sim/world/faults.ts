/** What a link does to packets, as data: a fault that is undefined is off. Episodes put faults on for a while. */
import type { Duration, Instant } from '../../core/time.ts';
import { microseconds } from '../../core/time.ts';
import type { Latency } from './latency.ts';
import type { Corruption } from './packet.ts';

/** So many in so many cases. */
export interface Ratio {
  readonly numerator: number;
  readonly denominator: number;
}

/** A range of times, both ends included. */
export interface Span {
  readonly low: Duration;
  readonly high: Duration;
}

/**
 * Loss in bursts (Gilbert and Elliott). The link is good or bad; each packet first moves it, by `toBad` or `toGood`, and is
 * then lost by the ratio of where it is. With `toBad` of 0 in 1 the losses are independent.
 */
export interface BurstLoss {
  readonly toBad: Ratio;
  readonly toGood: Ratio;
  readonly lossGood: Ratio;
  readonly lossBad: Ratio;
}

/** A late packet or copy comes out of turn, so much later than it would have. */
export interface Delayed {
  readonly ratio: Ratio;
  readonly by: Span;
}

/** Payloads are changed in one of these ways. `caught` of them fail the receiver's checksum, and are lost. */
export interface Corrupting {
  readonly ratio: Ratio;
  readonly caught: Ratio;
  readonly ways: readonly Corruption[];
}

/** The largest IP packet, bytes. A larger one is lost, with or without a word to its sender. */
export interface Mtu {
  readonly bytes: number;
  readonly icmp: boolean;
}

/** A slow line behind a queue. A queue much longer than the line is fast makes the delay grow before it makes losses. */
export interface Rate {
  readonly bytesPerSecond: number;
  /** What may wait, bytes: a packet that finds no room for all of itself is lost. */
  readonly queueBytes: number;
}

/** Everything about one direction of a link. */
export interface LinkFaults {
  readonly latency: Latency;
  readonly loss: BurstLoss | undefined;
  readonly duplication: Delayed | undefined;
  readonly reordering: Delayed | undefined;
  readonly corruption: Corrupting | undefined;
  readonly mtu: Mtu | undefined;
  readonly rate: Rate | undefined;
  /** Nothing gets in. What is on its way arrives. */
  readonly partitioned: boolean;
  /** What gets in waits, and sets out in its order when this ends. */
  readonly held: boolean;
}

/** Faults that are on from one instant to another, which is after it. */
export interface Episode {
  readonly from: Instant;
  readonly until: Instant;
  readonly faults: Partial<LinkFaults>;
}

/** A perfect link: it takes no time and loses nothing. */
export const FAULTLESS: LinkFaults = {
  latency: { kind: 'constant', time: microseconds(0) },
  loss: undefined,
  duplication: undefined,
  reordering: undefined,
  corruption: undefined,
  mtu: undefined,
  rate: undefined,
  partitioned: false,
  held: false,
};

/** Loss without bursts. */
export function independentLoss(ratio: Ratio): BurstLoss {
  return { toBad: NEVER, toGood: NEVER, lossGood: ratio, lossBad: ratio };
}

/** Never. */
const NEVER: Ratio = { numerator: 0, denominator: 1 };
