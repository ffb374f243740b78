/** Refusals against a naive count over all that ever happened. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { instant, microseconds, after, type Instant } from '../time.ts';
import {
  REFUSAL_FLOWS_MIN,
  REFUSAL_WINDOW,
  REFUSALS_MIN,
  REFUSALS_PER_FLOW,
  RefusalEvidence,
} from './refusal-evidence.ts';

const START = instant(0);

test('one refusal never suffices, nor do a thousand of too few flows', () => {
  const evidence = new RefusalEvidence();
  evidence.add(1, START);
  expect(evidence.suffices(START)).toBe(false);
  for (let flow = 1; flow < REFUSAL_FLOWS_MIN; flow += 1) {
    for (let count = 0; count < 1_000; count += 1) evidence.add(flow, START);
    expect(evidence.suffices(START)).toBe(false);
  }
});

test('two refusals of each of three flows suffice, until the oldest is ten seconds old', () => {
  const evidence = sufficient(START);
  const end = after(START, REFUSAL_WINDOW);
  expect(evidence.suffices(instant(end - 1))).toBe(true);
  expect(evidence.suffices(end)).toBe(false);
});

test('a flow that hears many does not push out what the others heard', () => {
  const evidence = new RefusalEvidence();
  for (const flow of [1, 1, 2, 2]) evidence.add(flow, START);
  for (let count = 0; count < 100; count += 1) evidence.add(3, START);
  expect(evidence.suffices(START)).toBe(true);
});

test('nothing is left after a clear', () => {
  const evidence = sufficient(START);
  evidence.clear();
  expect(evidence.isEmpty).toBe(true);
  expect(evidence.suffices(START)).toBe(false);
});

test('after any refusals the count is that of a naive reading, and the memory is bounded', () => {
  const refusal = fc.record({ flow: fc.nat(5), wait: fc.nat(REFUSAL_WINDOW / 5) });
  fc.assert(
    fc.property(fc.array(refusal, { maxLength: 60, size: 'max' }), (refusals) => {
      const evidence = new RefusalEvidence();
      const all: { flow: number; at: Instant }[] = [];
      let now = START;
      for (const { flow, wait } of refusals) {
        now = after(now, microseconds(wait));
        evidence.add(flow, now);
        all.push({ flow, at: now });
        const recent = all.filter(({ at }) => now - at < REFUSAL_WINDOW);
        const flows = [...new Set(recent.map((one) => one.flow))];
        const counted = flows.reduce((total, which) => {
          const own = recent.filter((one) => one.flow === which).length;
          return total + Math.min(REFUSALS_PER_FLOW, own);
        }, 0);
        expect(evidence.countAt(now)).toBe(Math.min(REFUSALS_MIN, counted));
        if (evidence.suffices(now)) expect(flows.length).toBeGreaterThanOrEqual(REFUSAL_FLOWS_MIN);
        expect(Reflect.get(evidence, 'latest').length).toBeLessThanOrEqual(REFUSALS_MIN);
      }
    }),
    { numRuns: 300 },
  );
});

function sufficient(now: Instant): RefusalEvidence {
  const evidence = new RefusalEvidence();
  for (const flow of [1, 2, 3, 1, 2, 3]) evidence.add(flow, now);
  expect(evidence.suffices(now)).toBe(true);
  return evidence;
}
