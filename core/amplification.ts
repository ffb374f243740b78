/**
 * How many bytes a flow may send to a client that has not shown that it is there. Who writes somebody else's source address
 * on a small question has the large answer sent to that victim; until the client spoke a second time, replies stay within a
 * factor of what it sent (RFC 9000 §8.1 asks the same of QUIC servers).
 *
 * A flow record holds one number, its credit. A second datagram proves little to a spoofer who sends two, so this bounds
 * what one datagram can set loose, and the limits per source bound how many there are.
 */

export interface AmplificationLimits {
  /** Reply bytes for each byte of the first client datagram, a whole number; 0 = unlimited. */
  readonly factor: number;
  /** Bytes that any first datagram may have in reply, however short it was. */
  readonly floor: number;
}

/** Off: one-datagram clients of DNS or NTP get answers of any size, as the seeds say. */
export const AMPLIFICATION_OFF: AmplificationLimits = { factor: 0, floor: 0 };

/** What an operator gets who asks for the limit without numbers. */
export const AMPLIFICATION_DEFAULTS: AmplificationLimits = {
  /** RFC 9000 §8.1. */
  factor: 3,
  /** The largest UDP answer that resolvers ask for since DNS Flag Day 2020: a question of 40 bytes gets it. */
  floor: 1_232,
};

/** The credit of a flow whose client spoke twice, or whose cluster has no limit. No bytes are counted any more. */
export const VALIDATED = -1;

/** Credit of a new flow, in bytes, by its first client datagram: a number for a signed 32-bit word. */
export function firstCredit({ factor, floor }: AmplificationLimits, requestBytes: number): number {
  if (factor === 0) return VALIDATED;
  return Math.min(CREDIT_MAX, Math.max(floor, factor * requestBytes));
}

/** Whether a reply of this size may go. If not, it is dropped and counted, and the credit stays: a smaller one may fit. */
export function mayReply(credit: number, replyBytes: number): boolean {
  return credit === VALIDATED || replyBytes <= credit;
}

/** Credit after a reply that went; `mayReply` allowed it. */
export function creditAfterReply(credit: number, replyBytes: number): number {
  return credit === VALIDATED ? VALIDATED : credit - replyBytes;
}

const CREDIT_MAX = 0x7fffffff;
