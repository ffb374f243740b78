/**
 * How many ICMP errors a host sends: as kernels do, a few to each peer and a few more in all. A host that answers every probe
 * of a closed port with an error would make a checker look better than it is.
 */
import type { Duration, Instant } from '../../core/time.ts';
import { milliseconds, seconds } from '../../core/time.ts';
import type { AddressKey } from './packet.ts';

/** A token bucket: one error per `interval`, and `burst` of them at once after a rest. */
export interface IcmpBucket {
  readonly interval: Duration;
  readonly burst: number;
}

export interface IcmpLimits {
  readonly perPeer: IcmpBucket;
  readonly inAll: IcmpBucket;
}

/** Linux: icmp_ratelimit (1 s a peer, 6 at once), icmp_msgs_per_sec (1,000) and icmp_msgs_burst (50). */
export const LINUX_ICMP: IcmpLimits = {
  perPeer: { interval: seconds(1), burst: 6 },
  inAll: { interval: milliseconds(1), burst: 50 },
};

/** The limits of one host. */
export class IcmpLimiter {
  readonly #limits: IcmpLimits;
  readonly #inAll: Bucket;
  readonly #peers = new Map<AddressKey, Bucket>();

  constructor(limits: IcmpLimits) {
    this.#limits = limits;
    this.#inAll = new Bucket(limits.inAll);
  }

  /** Whether an error may go to this peer now; it then counts as sent. Limits are per IP. */
  allow(peer: AddressKey, now: Instant): boolean {
    if (!this.#inAll.take(now)) return false;
    let bucket = this.#peers.get(peer);
    if (bucket === undefined) {
      bucket = new Bucket(this.#limits.perPeer);
      this.#peers.set(peer, bucket);
    }
    return bucket.take(now);
  }
}

/** Credit in microseconds: an error costs one interval. */
class Bucket {
  readonly #interval: number;
  readonly #full: number;
  #credit: number;
  #at = 0;

  constructor({ interval, burst }: IcmpBucket) {
    this.#interval = interval;
    this.#full = interval * burst;
    this.#credit = this.#full;
  }

  take(now: Instant): boolean {
    this.#credit = Math.min(this.#full, this.#credit + now - this.#at);
    this.#at = now;
    if (this.#credit < this.#interval) return false;
    this.#credit -= this.#interval;
    return true;
  }
}
