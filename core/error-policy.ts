/**
 * What an error of the operating system means to a data plane. A driver hands errors over by name and decides nothing; this
 * table is the whole policy, and doc/decisions/0007 gives its reasons.
 */
import type { Refusal } from './contract.ts';
import type { Errno } from './ports.ts';

export interface ErrorPolicy {
  /** What a datagram counts as that could not be sent because of it. */
  readonly drop: 'droppedSendError' | 'droppedTooBig';
  /** What a failed send says of the backend. `refused`: nobody is there; `unreachable`: no way leads there. */
  readonly evidence: 'refused' | 'unreachable' | undefined;
  /** What an upstream socket lacked that did not open: new flows wait a moment, because the next would fail too. */
  readonly lacks: 'port' | 'address' | 'descriptor' | undefined;
}

const OTHER: ErrorPolicy = { drop: 'droppedSendError', evidence: undefined, lacks: undefined };
const UNREACHABLE: ErrorPolicy = { ...OTHER, evidence: 'unreachable' };
const NO_PORT: ErrorPolicy = { ...OTHER, lacks: 'port' };
const NO_DESCRIPTOR: ErrorPolicy = { ...OTHER, lacks: 'descriptor' };

const POLICIES: ReadonlyMap<Errno, ErrorPolicy> = new Map([
  ['ECONNREFUSED', { ...OTHER, evidence: 'refused' }],
  ['EMSGSIZE', { ...OTHER, drop: 'droppedTooBig' }],
  ['ENETDOWN', UNREACHABLE],
  ['ENETUNREACH', UNREACHABLE],
  ['EHOSTUNREACH', UNREACHABLE],
  ['EHOSTDOWN', UNREACHABLE],
  // A connect that failed, from a driver that learns too late why (see shell/drivers/dgram.ts).
  ['ENOTCONN', UNREACHABLE],
  ['ENOBUFS', { ...UNREACHABLE, lacks: 'descriptor' }],
  // libuv binds, and Linux says EADDRINUSE when a whole range is taken; a connect without a bind says EAGAIN.
  ['EADDRINUSE', NO_PORT],
  ['EAGAIN', NO_PORT],
  ['EADDRNOTAVAIL', { ...OTHER, lacks: 'address' }],
  ['EMFILE', NO_DESCRIPTOR],
  ['ENFILE', NO_DESCRIPTOR],
  ['ENOMEM', NO_DESCRIPTOR],
]);

/** An error that is not in the table loses its one datagram or flow, and says nothing of any other. */
export function policyOf(errno: Errno): ErrorPolicy {
  return POLICIES.get(errno) ?? OTHER;
}

/** Why new flows are refused while something lacks: an address that is not there is a source without ports. */
export const HELD_FOR: Readonly<Record<NonNullable<ErrorPolicy['lacks']>, Refusal>> = {
  port: 'PortExhausted',
  address: 'PortExhausted',
  descriptor: 'NoDescriptor',
};
