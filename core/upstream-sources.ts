/**
 * Local addresses for upstream sockets. Each gives as many sockets as the kernel's range has ports, some 28,000, because each
 * is bound before it is connected; more addresses give more. A cluster's are used in turn, and one without ports is left out
 * for a moment. When nothing is left to try, new flows are refused before they cost a system call: a bind that finds no port
 * looks at every port of the range, 2 ms for 20 of them, and live flows would wait for it.
 */
import { formatIp, type Address } from './address.ts';
import { present } from './assert.ts';
import { BackOff, type BackOffTimes } from './back-off.ts';
import type { SocketId } from './brand.ts';
import type { ClusterSettings } from './config.ts';
import type { Refusal } from './contract.ts';
import { HELD_FOR, policyOf, type ErrorPolicy } from './error-policy.ts';
import type { OutputQueue } from './output-queue.ts';
import type { PlaneInput, PlaneOutput } from './plane-contract.ts';
import type { Errno } from './ports.ts';
import { milliseconds, type Instant } from './time.ts';

/**
 * First a tenth of the time at most goes into attempts of 2 ms, then less than a hundredth; and a port that comes free is
 * found within a third of a second.
 */
export const OPEN_BACK_OFF: BackOffTimes = { first: milliseconds(20), longest: milliseconds(320) };

export type OpenFailed = Extract<PlaneInput, { kind: 'OpenFailed' }>;

/** What a failed open came to. `again`: the next source is being tried for the same flow. */
export interface OpenVerdict {
  readonly again: boolean;
  readonly reason: Refusal | undefined;
  /** A configured source that this machine does not have, for the first time since it had it. */
  readonly missing: boolean;
}

/** Something that opens need and can run out of. */
interface Supply {
  /** Undefined: whichever address the kernel chooses. */
  readonly address: Address | undefined;
  readonly backOff: BackOff;
  /** What the latest failure said. */
  errno: Errno;
}

/** The sources of a cluster for backends of one family, and whose turn it is. */
interface Turns {
  readonly sources: readonly Supply[];
  next: number;
}

export interface ClusterTurns {
  readonly ipv4: Turns;
  readonly ipv6: Turns;
  /** Those of the two that a backend of the cluster is for. */
  readonly needed: readonly Turns[];
}

/** A cluster as its sources see it. New settings begin their turns anew. */
export interface SourcesUser {
  readonly settings: ClusterSettings;
  /** Undefined until the first open. */
  turns: ClusterTurns | undefined;
}

export class UpstreamSources {
  private readonly outputs: OutputQueue<PlaneOutput>;
  private readonly anywhere = newSupply(undefined);
  private readonly descriptors = newSupply(undefined);
  /** By address, so that clusters with the same source learn from each other. */
  private readonly known = new Map<string, Supply>();
  /** Nothing rests from then on. */
  private calmFrom: Instant | undefined;

  constructor(outputs: OutputQueue<PlaneOutput>) {
    this.outputs = outputs;
  }

  /** Why no flow of this cluster can have a socket now; asked for each client datagram, and cheap while nothing lacks. */
  holdFor(cluster: SourcesUser | undefined, now: Instant): Refusal | undefined {
    if (this.calmFrom === undefined || cluster === undefined) return undefined;
    if (now >= this.calmFrom) {
      this.calmFrom = undefined;
      return undefined;
    }
    if (this.descriptors.backOff.rests(now)) return 'NoDescriptor';
    const { needed } = this.turnsOf(cluster);
    const isHeld = needed.length > 0 && needed.every((turns) => allRest(turns, now));
    return isHeld ? 'PortExhausted' : undefined;
  }

  /** Opens `socket`, from the source whose turn it is; when all of them rest, says so in place of an attempt. */
  open(cluster: SourcesUser, socket: SocketId, backend: Address, now: Instant): void {
    const { descriptors } = this;
    const supply = descriptors.backOff.rests(now)
      ? descriptors
      : takeTurn(this.turnsFor(cluster, backend), now);
    const { address: source, errno } = supply;
    if (supply.backOff.rests(now)) {
      this.outputs.push({ kind: 'RefuseUpstream', socket, backend, source, errno });
      return;
    }
    descriptors.backOff.attempt();
    supply.backOff.attempt();
    this.outputs.push({ kind: 'OpenUpstream', socket, backend, source });
  }

  /** An open failed, or was refused here. For want of a port the next source is tried, if there is one. */
  failed(
    cluster: SourcesUser,
    { socket, backend, source, errno }: OpenFailed,
    now: Instant,
  ): OpenVerdict {
    const lacks = lackOf(errno, source);
    const reason = lacks === undefined ? undefined : HELD_FOR[lacks];
    const supply = lacks === 'descriptor' ? this.descriptors : this.supplyOf(source);
    if (lacks === undefined || supply.backOff.rests(now))
      return { again: false, reason, missing: false };
    const isFirst = this.rest(supply, errno, now);
    const missing = isFirst && lacks === 'address';
    if (lacks === 'descriptor' || allRest(this.turnsFor(cluster, backend), now)) {
      return { again: false, reason, missing };
    }
    this.open(cluster, socket, backend, now);
    return { again: true, reason, missing };
  }

  private rest(supply: Supply, errno: Errno, now: Instant): boolean {
    const isFirst = supply.backOff.failed(now);
    supply.errno = errno;
    const until = supply.backOff.restsUntil;
    if (until !== undefined && until > (this.calmFrom ?? 0)) this.calmFrom = until;
    return isFirst;
  }

  private turnsFor(cluster: SourcesUser, backend: Address): Turns {
    const { ipv4, ipv6 } = this.turnsOf(cluster);
    return backend.family === 4 ? ipv4 : ipv6;
  }

  private turnsOf(cluster: SourcesUser): ClusterTurns {
    if (cluster.turns !== undefined) return cluster.turns;
    const { settings } = cluster;
    const [ipv4, ipv6] = [this.newTurns(settings, 4), this.newTurns(settings, 6)];
    const families = new Set(settings.backends.map(({ address }) => address.family));
    const needed = [...families].map((family) => (family === 4 ? ipv4 : ipv6));
    const fresh = { ipv4, ipv6, needed };
    cluster.turns = fresh;
    return fresh;
  }

  /** A family without a source is the kernel's to choose. */
  private newTurns({ upstreamSources }: ClusterSettings, family: 4 | 6): Turns {
    const addresses = upstreamSources.filter((address) => address.family === family);
    const sources = addresses.map((address) => this.supplyOf(address));
    return { sources: sources.length > 0 ? sources : [this.anywhere], next: 0 };
  }

  private supplyOf(address: Address | undefined): Supply {
    if (address === undefined) return this.anywhere;
    const name = formatIp(address);
    const known = this.known.get(name);
    if (known !== undefined) return known;
    const fresh = newSupply(address);
    this.known.set(name, fresh);
    return fresh;
  }
}

function newSupply(address: Address | undefined): Supply {
  return { address, backOff: new BackOff(OPEN_BACK_OFF), errno: 'EADDRINUSE' };
}

/** Without a source of our own, an address that is not there is the backend's family, which is nothing to wait for. */
function lackOf(errno: Errno, source: Address | undefined): ErrorPolicy['lacks'] {
  const { lacks } = policyOf(errno);
  return lacks === 'address' && source === undefined ? undefined : lacks;
}

function allRest({ sources }: Turns, now: Instant): boolean {
  return sources.every(({ backOff }) => backOff.rests(now));
}

/** The next source that does not rest, or one that does when all do; the one after it is next. */
function takeTurn(turns: Turns, now: Instant): Supply {
  const { sources } = turns;
  const order = sources.map((_, step) => (turns.next + step) % sources.length);
  const at = order.find((one) => sources[one]?.backOff.rests(now) === false) ?? turns.next;
  turns.next = (at + 1) % sources.length;
  return present(sources[at], 'there is at least one');
}
