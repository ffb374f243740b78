/** What a simulated operating system is, and what goes wrong in it, as data. A fault that is undefined is off. */
import type { Address } from '../../core/address.ts';
import type { Duration, Instant } from '../../core/time.ts';
import { instant } from '../../core/time.ts';
import type { Random } from '../random.ts';
import type { Ratio } from './faults.ts';

/** A host, and the driver of the process on it, as they are on a good day. */
export interface HostShape {
  /** Names its streams of chance. */
  readonly name: string;
  /** Ports ignored. Datagrams leave from the first of their family unless they are told where from. */
  readonly addresses: readonly Address[];
  /** How many descriptors the process may have. The lowest free number is given first. */
  readonly descriptors: number;
  /** Where ports are chosen from, both ends included. */
  readonly ephemeralPorts: { readonly low: number; readonly high: number };
  /** Bytes of a socket's buffer, in either direction: the default, and the most that is granted. */
  readonly socketBuffer: number;
  /** Sends that collect before they go to the kernel, at the latest at the flush; 1 is what node:dgram does. */
  readonly batch: number;
  /** Whether arrivals at a wildcard listener say which address they were sent to. */
  readonly localAddress: boolean;
  /** Datagrams that one turn takes from each socket. */
  readonly receiveBudget: number;
  /** What the monotonic clock shows when virtual time is zero. */
  readonly origin: Instant;
}

/** Linux as it comes, under a driver that batches. */
export const HOST_DEFAULTS: Omit<HostShape, 'name' | 'addresses'> = {
  descriptors: 1_048_576,
  ephemeralPorts: { low: 32_768, high: 60_999 },
  socketBuffer: 212_992,
  batch: 32,
  localAddress: true,
  receiveBudget: 64,
  origin: instant(0),
};

export interface TimerFaults {
  /** Fires up to so much before its time (Node's timers do, by a millisecond). */
  readonly early: Duration;
  /** Fires up to so much after it. */
  readonly late: Duration;
  /** Then waits for the next whole multiple of this, and so fires together with others; 0 for none. */
  readonly tick: Duration;
}

export interface OsFaults {
  /** Descriptors that the process may have: beyond them EMFILE. */
  readonly descriptors: number | undefined;
  /** Ports that are left of the ephemeral range: beyond them EADDRINUSE. */
  readonly ephemeralPorts: number | undefined;
  /** What other programs hold: EADDRINUSE. */
  readonly occupied: readonly Address[];
  /** Addresses that the host has not got for the time being, ports ignored: opening there is EADDRNOTAVAIL. */
  readonly absent: readonly Address[];
  /** Bytes a second that leave the host; 0 is a jam. What waits fills the send buffers: EAGAIN. Undefined is no wait at all. */
  readonly sendRate: number | undefined;
  /** Bytes of a send buffer, if that is less than it was granted. */
  readonly sendBuffer: number | undefined;
  /** Bytes of a receive buffer, if that is less than it was granted. */
  readonly receiveBuffer: number | undefined;
  /** The largest datagram that the path takes, bytes of payload: beyond it EMSGSIZE. */
  readonly datagramBytes: number | undefined;
  /** Sends that find no memory: ENOBUFS. */
  readonly noBuffers: Ratio | undefined;
  /** Sends of connected sockets that never complete: the datagram is lost, and the socket has no room until it closes. */
  readonly upstreamStalls: Ratio | undefined;
  /** The same of listeners. */
  readonly listenerStalls: Ratio | undefined;
  /** Sends that fail with EPERM when the flush has accepted them. */
  readonly lateFailures: Ratio | undefined;
  /** A poll notices an ICMP refusal up to so much later; a send in the meantime meets it. */
  readonly refusalDelay: Duration | undefined;
  /** The process runs up to so much later than it has something to do. */
  readonly wakeLatency: Duration | undefined;
  readonly timer: TimerFaults | undefined;
  /** `process`: it does not run, but time does. `clock`: its machine sleeps, hears nothing, and its monotonic clock stops. */
  readonly standstill: 'process' | 'clock' | undefined;
}

export const FAULTLESS_OS: OsFaults = {
  descriptors: undefined,
  ephemeralPorts: undefined,
  occupied: [],
  absent: [],
  sendRate: undefined,
  sendBuffer: undefined,
  receiveBuffer: undefined,
  datagramBytes: undefined,
  noBuffers: undefined,
  upstreamStalls: undefined,
  listenerStalls: undefined,
  lateFailures: undefined,
  refusalDelay: undefined,
  wakeLatency: undefined,
  timer: undefined,
  standstill: undefined,
};

/** Whether a fault strikes this time. One that is off costs no draw: each has a stream of its own. */
export function strikes(ratio: Ratio | undefined, random: Random, site: string): boolean {
  return ratio !== undefined && random.chance(site, ratio.numerator, ratio.denominator);
}
