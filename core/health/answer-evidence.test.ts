import { expect, test } from 'vitest';
import {
  ANSWER_BUCKETS,
  ANSWER_REQUESTS_MIN,
  AnswerEvidence,
  answerRatio,
  answersTooLittle,
} from './answer-evidence.ts';

test('a ratio needs a minimum of requests, and several answers to a request count as one', () => {
  expect(answerRatio({ requests: ANSWER_REQUESTS_MIN - 1, answers: 0 })).toBeUndefined();
  expect(answerRatio({ requests: ANSWER_REQUESTS_MIN, answers: 5 })).toBe(0.25);
  expect(answerRatio({ requests: 20, answers: 900 })).toBe(1);
});

test('too little is below a quarter of the best, and only where the best answers three of four', () => {
  expect(answersTooLittle({ requests: 100, answers: 24 }, 1)).toBe(true);
  expect(answersTooLittle({ requests: 100, answers: 25 }, 1)).toBe(false);
  expect(answersTooLittle({ requests: 100, answers: 0 }, 0.75)).toBe(true);
  expect(answersTooLittle({ requests: 100, answers: 0 }, 0.74)).toBe(false);
  expect(answersTooLittle({ requests: 19, answers: 0 }, 1)).toBe(false);
});

test('a silent backend is found at the second comparison in a row, not at the first', () => {
  const evidence = new AnswerEvidence();
  expect(half(evidence, 50, 0)).toBe(false);
  expect(half(evidence, 50, 0)).toBe(true);
});

test('an answer in the last half second acquits, however many requests went unanswered', () => {
  const evidence = new AnswerEvidence();
  for (let round = 0; round < 10; round += 1) expect(half(evidence, 1_000, 1)).toBe(false);
  expect(half(evidence, 1_000, 0)).toBe(false);
  expect(half(evidence, 1_000, 1), 'the streak is broken').toBe(false);
  expect(half(evidence, 1_000, 0)).toBe(false);
  expect(half(evidence, 1_000, 0)).toBe(true);
});

test('the window is two seconds: what is older counts no more', () => {
  const evidence = new AnswerEvidence();
  half(evidence, 30, 30);
  for (let round = 1; round < ANSWER_BUCKETS; round += 1) {
    expect(evidence.tally()).toEqual({ requests: 30, answers: 30 });
    half(evidence, 0, 0);
  }
  expect(evidence.tally()).toEqual({ requests: 0, answers: 0 });
});

test('nothing is left after a clear, a begun streak included', () => {
  const evidence = new AnswerEvidence();
  half(evidence, 50, 0);
  evidence.answered(3);
  evidence.clear();
  expect(evidence.tally()).toEqual({ requests: 0, answers: 0 });
  expect(half(evidence, 50, 0)).toBe(false);
});

/** Half a second: what went and came, then a comparison with a backend that answers everything. */
function half(evidence: AnswerEvidence, requests: number, answers: number): boolean {
  evidence.forwarded(requests);
  evidence.answered(answers);
  const found = evidence.compare(1);
  evidence.turn();
  return found;
}
