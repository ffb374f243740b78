/** One table owns a flow's transitions, and the caps decide its end. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { cluster } from '../test/flow-rig.ts';
import type { CloseReason } from './contract.ts';
import {
  awaitsReplies,
  FLOW_TRANSITIONS,
  nextPhase,
  teardownReason,
  type FlowEvent,
} from './flow.ts';

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

test('an established flow takes every event: datagrams and a new backend keep it, each close reason closes it', () => {
  expect(Object.keys(FLOW_TRANSITIONS.Established).sort()).toEqual(Object.keys(EVENTS).sort());
  expect(nextPhase('Established', 'ClientDatagram')).toBe('Established');
  expect(nextPhase('Established', 'BackendDatagram')).toBe('Established');
  expect(nextPhase('Established', 'Rebound')).toBe('Established');
  expect(nextPhase('Established', 'RepliesAwaited')).toBe('Lingering');
  expect(nextPhase('Established', 'RepliesComplete')).toBe('Lingering');
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

test('a flow that lingers takes replies and every close reason, and no datagram of its client', () => {
  expect(Object.keys(FLOW_TRANSITIONS.Lingering).sort()).toEqual(
    [...Object.keys(REASONS), 'BackendDatagram', 'RepliesComplete'].sort(),
  );
  expect(nextPhase('Lingering', 'BackendDatagram')).toBe('Lingering');
  expect(nextPhase('Lingering', 'RepliesComplete')).toBe('Lingering');
  expect(nextPhase('Lingering', 'Idle')).toBe('Closing');
  expect(() => nextPhase('Lingering', 'ClientDatagram')).toThrow('transition');
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
    fc.property(cap, cap, seen, seen, fc.boolean(), (requests, responses, ...more) => {
      const [requestsSeen, responsesSeen, responsesPerRequest] = more;
      const all = BigInt(responses) * BigInt(responsesPerRequest ? requestsSeen : 1);
      const answered = responses > 0 && all - BigInt(responsesSeen) <= 0n;
      const asked = requests > 0 && requestsSeen >= requests;
      const expected = answered ? 'ResponsesReached' : asked ? 'RequestsReached' : undefined;
      const config = cluster({ requests, responses, responsesPerRequest });
      expect(awaitsReplies(config, requestsSeen, responsesSeen)).toBe(!answered);
      expect(teardownReason(config, requestsSeen, responsesSeen)).toBe(expected);
    }),
    { numRuns: 500 },
  );
});

test('counts that are as high as they go still have the right sign between them', () => {
  const top = 0xffffffff;
  const config = cluster({ responses: top, responsesPerRequest: true });
  expect(awaitsReplies(config, top, top)).toBe(true);
  expect(awaitsReplies(config, 1, top)).toBe(false);
  expect(awaitsReplies(config, 1, top - 1)).toBe(true);
  expect(awaitsReplies({ ...config, responses: 1 }, top, top)).toBe(false);
});
