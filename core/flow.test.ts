/** One table owns a flow's transitions, and the caps decide its end. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { cluster } from '../test/flow-rig.ts';
import type { CloseReason } from './contract.ts';
import { FLOW_TRANSITIONS, nextPhase, teardownReason, type FlowEvent } from './flow.ts';

const REASONS = {
  Idle: true,
  ResponsesReached: true,
  RequestsReached: true,
  Drain: true,
  Aborted: true,
  BackendLost: true,
  Killed: true,
} as const satisfies Record<CloseReason, true>;
const EVENTS = {
  ClientDatagram: true,
  BackendDatagram: true,
  Rebound: true,
  RepliesAwaited: true,
  RepliesComplete: true,
  ...REASONS,
} as const satisfies Record<FlowEvent, true>;

test('an established flow takes every event: datagrams keep it, each close reason closes it', () => {
  expect(Object.keys(FLOW_TRANSITIONS.Established).sort()).toEqual(Object.keys(EVENTS).sort());
  expect(nextPhase('Established', 'ClientDatagram')).toBe('Established');
  expect(nextPhase('Established', 'BackendDatagram')).toBe('Established');
  for (const reason of [
    'Idle',
    'ResponsesReached',
    'RequestsReached',
    'Drain',
    'Aborted',
    'BackendLost',
    'Killed',
  ] as const) {
    expect(nextPhase('Established', reason)).toBe('Closing');
  }
});

test('closing has no way out', () => {
  expect(FLOW_TRANSITIONS.Closing).toEqual({});
  for (const event of ['ClientDatagram', 'BackendDatagram', 'Idle', 'Aborted'] as const) {
    expect(() => nextPhase('Closing', event)).toThrow('transition');
  }
});

test('a flow must close iff a cap is exhausted; responses are looked at first; 0 is no cap (I7)', () => {
  const cap = fc.nat(3);
  const seen = fc.oneof(fc.nat(4), fc.constant(0xffffffff));
  fc.assert(
    fc.property(cap, cap, seen, seen, (requests, responses, requestsSeen, responsesSeen) => {
      const answered = responses > 0 && responsesSeen >= responses;
      const asked = requests > 0 && requestsSeen >= requests;
      const expected = answered ? 'ResponsesReached' : asked ? 'RequestsReached' : undefined;
      const config = cluster({ requests, responses });
      expect(teardownReason(config, requestsSeen, responsesSeen)).toBe(expected);
    }),
    { numRuns: 500 },
  );
});
