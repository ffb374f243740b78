/** The amplification budget: never more than the factor, and never in the way of a client that is there. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  AMPLIFICATION_DEFAULTS,
  AMPLIFICATION_OFF,
  creditAfterReply,
  firstCredit,
  mayReply,
  VALIDATED,
} from './amplification.ts';
import { DATAGRAM_BYTES_MAX } from './contract.ts';

test('three times the first datagram, all at once or in parts, and not a byte more', () => {
  const limits = { factor: 3, floor: 0 };
  const credit = firstCredit(limits, 100);
  expect(mayReply(credit, 300)).toBe(true);
  expect(mayReply(credit, 301)).toBe(false);
  const rest = creditAfterReply(credit, 200);
  expect(mayReply(rest, 100)).toBe(true);
  expect(mayReply(rest, 101)).toBe(false);
});

test('a short question may have as much as the floor', () => {
  const credit = firstCredit(AMPLIFICATION_DEFAULTS, 40);
  expect(mayReply(credit, 1_232)).toBe(true);
  expect(mayReply(credit, 1_233)).toBe(false);
  expect(firstCredit(AMPLIFICATION_DEFAULTS, 1_200)).toBe(3_600);
});

test('a reply that is too large leaves the credit for one that fits', () => {
  const credit = firstCredit({ factor: 1, floor: 0 }, 10);
  expect(mayReply(credit, 11)).toBe(false);
  expect(mayReply(credit, 10)).toBe(true);
});

test('a used-up credit is no validation: only empty replies may go', () => {
  const credit = creditAfterReply(firstCredit({ factor: 1, floor: 0 }, 10), 10);
  expect(mayReply(credit, 1)).toBe(false);
  expect(mayReply(credit, 0)).toBe(true);
});

test('a validated client, and any client while the limit is off, gets what it wants for ever', () => {
  expect(firstCredit(AMPLIFICATION_OFF, 1)).toBe(VALIDATED);
  expect(mayReply(VALIDATED, DATAGRAM_BYTES_MAX)).toBe(true);
  expect(creditAfterReply(VALIDATED, DATAGRAM_BYTES_MAX)).toBe(VALIDATED);
});

test('whatever is replied in whatever order, the sum stays within factor and floor', () => {
  const bytes = fc.nat(DATAGRAM_BYTES_MAX);
  fc.assert(
    fc.property(
      fc.record({ factor: fc.integer({ min: 1, max: 100_000 }), floor: fc.nat(100_000) }),
      bytes,
      fc.array(fc.oneof(bytes, fc.nat(100)), { maxLength: 40 }),
      (limits, request, replies) => {
        let credit = firstCredit(limits, request);
        let sent = 0;
        for (const reply of replies) {
          expect(credit).toBe(credit | 0);
          expect(credit).toBeGreaterThanOrEqual(0);
          if (!mayReply(credit, reply)) continue;
          credit = creditAfterReply(credit, reply);
          sent += reply;
        }
        expect(sent).toBeLessThanOrEqual(Math.max(limits.floor, limits.factor * request));
      },
    ),
  );
});
