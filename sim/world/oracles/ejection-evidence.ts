/**
 * What traffic has shown of a backend, as reports told it: an ejection must find its evidence here. Reports are kept as long
 * as they may be evidence: their window, and the time a suspicion waits for a probe.
 */
import type { ClusterSettings } from '../../../core/config.ts';
import type { PassiveEvidence } from '../../../core/health/passive-contract.ts';
import { seconds, until, type Instant } from '../../../core/time.ts';

/** Ten seconds of refusals, and what a probe that confirms may take on top of them. */
const KEPT = seconds(20);

/** Six refusals of three flows; twenty requests. */
const REFUSALS = 6;
const FLOWS = 3;
const REQUESTS = 20;

interface Refusal {
  readonly flow: number;
  readonly at: Instant;
}

interface Traffic {
  readonly forwarded: number;
  readonly at: Instant;
}

export class ShownEvidence {
  #refusals: Refusal[] = [];
  #traffic: Traffic[] = [];

  refused(flow: number, at: Instant): void {
    this.#refusals = this.#refusals.filter((one) => until(one.at, at) <= KEPT);
    this.#refusals.push({ flow, at });
  }

  /** Whoever answers is there: earlier refusals say nothing any more. */
  exchanged(forwarded: number, answered: number, at: Instant): void {
    if (answered > 0) this.#refusals = [];
    this.#traffic = this.#traffic.filter((one) => until(one.at, at) <= KEPT);
    this.#traffic.push({ forwarded, at });
  }

  /** What is missing for this evidence; undefined when it was seen. */
  objection(evidence: PassiveEvidence, { exchange }: ClusterSettings): string | undefined {
    if (evidence.kind === 'refusals') {
      const flows = new Set(this.#refusals.map(({ flow }) => flow)).size;
      if (this.#refusals.length >= REFUSALS && flows >= FLOWS) return undefined;
      return `${this.#refusals.length} refusals of ${flows} flows were reported`;
    }
    const { requests, answers, bestRatio } = evidence;
    const forwarded = this.#traffic.reduce((sum, one) => sum + one.forwarded, 0);
    if (exchange !== 'request-response') return 'its cluster does not answer each request';
    if (forwarded < requests) return `${requests} requests, but ${forwarded} were reported`;
    if (requests >= REQUESTS && answers / requests < bestRatio / 4) return undefined;
    return `${answers} answers to ${requests} requests are no evidence`;
  }
}
