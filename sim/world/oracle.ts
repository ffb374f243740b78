/**
 * An oracle: what must be true of a history, folded fact by fact. It reads nothing but facts, so that it can be shown a history
 * that never happened. Cheap: a few steps a fact, and no list that grows with the run unless its text says why.
 */
import type { Instant } from '../../core/time.ts';
import type { Hearings } from './facts.ts';
import type { WorldSpec } from './spec.ts';
import type { Verdicts } from './verdicts.ts';

export interface Oracle {
  readonly hearings: Hearings;
  /** The run is over, and nothing violated so far. */
  finish?(at: Instant): void;
}

export interface OracleKind {
  readonly name: string;
  begin(verdicts: Verdicts, spec: WorldSpec): Oracle;
}
