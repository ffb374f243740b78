/**
 * Whether one backend answers what others answer, for clusters whose protocol answers each request. Counts of the last two
 * seconds in fixed memory, and the comparison. A backend that was stopped accepts datagrams and refuses none: only this
 * finds it.
 */
import { milliseconds, type Duration } from '../time.ts';

/** How often backends are compared. */
export const ANSWER_BUCKET: Duration = milliseconds(500);

/** Two seconds: long enough for a slow answer to fall beside its request, short enough to act within three. */
export const ANSWER_BUCKETS = 4;

/** Below this a ratio is chance. Of 20 requests to a backend that answers three in four, fewer than 4 answers: 1 in 10^9. */
export const ANSWER_REQUESTS_MIN = 20;

/** If no backend answers this share, the fault is not one backend's: the requests are odd, or the way back is broken. */
const PEER_RATIO_MIN = 3 / 4;

/** A backend is suspected below this share of the best ratio. */
const ANSWER_SHARE_MIN = 1 / 4;

/** Comparisons in a row that must find against a backend: its last second was silent, whatever came before. */
const ANSWER_STRIKES = 2;

export interface AnswerTally {
  readonly requests: number;
  readonly answers: number;
}

export class AnswerEvidence {
  private readonly requests: number[] = Array.from({ length: ANSWER_BUCKETS }, () => 0);
  private readonly answers: number[] = Array.from({ length: ANSWER_BUCKETS }, () => 0);
  private bucket = 0;
  private strikeCount = 0;

  forwarded(count: number): void {
    this.requests[this.bucket] = (this.requests[this.bucket] ?? 0) + count;
  }

  answered(count: number): void {
    this.answers[this.bucket] = (this.answers[this.bucket] ?? 0) + count;
  }

  /** Of the whole window. */
  tally(): AnswerTally {
    return { requests: sum(this.requests), answers: sum(this.answers) };
  }

  /**
   * A comparison: whether it found against this backend often enough. Nonsense that one client sends lowers a ratio, and so
   * would eject one backend after the other; but it silences none, so a backend that answers at all now is let be.
   */
  compare(bestRatio: number): boolean {
    const silent = this.answers[this.bucket] === 0;
    this.strikeCount =
      silent && answersTooLittle(this.tally(), bestRatio) ? this.strikeCount + 1 : 0;
    return this.strikeCount >= ANSWER_STRIKES;
  }

  /** The oldest bucket makes room for the next. */
  turn(): void {
    this.bucket = (this.bucket + 1) % ANSWER_BUCKETS;
    this.requests[this.bucket] = 0;
    this.answers[this.bucket] = 0;
  }

  clear(): void {
    this.requests.fill(0);
    this.answers.fill(0);
    this.strikeCount = 0;
  }
}

/** Answers for each request, at most 1; undefined while there were too few requests to say. */
export function answerRatio({ requests, answers }: AnswerTally): number | undefined {
  return requests < ANSWER_REQUESTS_MIN ? undefined : Math.min(1, answers / requests);
}

/** Whether a backend answers far less than the best one of its cluster does. */
export function answersTooLittle(own: AnswerTally, bestRatio: number): boolean {
  const ratio = answerRatio(own);
  if (ratio === undefined || bestRatio < PEER_RATIO_MIN) return false;
  return ratio < bestRatio * ANSWER_SHARE_MIN;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
