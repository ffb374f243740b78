/** What stands in a trace beside the inputs: who wrote it, under which settings, and where its stretches begin. */
import type { ControlOptions } from './control-plane.ts';
import type { GeneratedDirective, Report } from './directives.ts';
import type { PlaneOptions } from './plane-contract.ts';
import type { Instant } from './time.ts';

export interface TraceHeader {
  /** Version of the program, and its commit where that is known. */
  readonly build: string;
  /** Version of Node. */
  readonly runtime: string;
  /** When the file was written, as the operator's clock had it. */
  readonly writtenAt: string;
  /** Why: `request`, `assertion`, … */
  readonly reason: string;
  /** As the operator wrote it; empty when nobody did, or when it was left out. */
  readonly configuration: string;
  readonly plane: PlaneOptions;
  readonly control: ControlOptions;
}

/** Where the inputs of a segment begin. */
export interface SegmentStart {
  /** Of the input before the first. */
  readonly at: Instant;
  /** Both machines; undefined: they are new. */
  readonly snapshot: Uint8Array | undefined;
  /** What one machine had said, and the other not yet heard. */
  readonly directives: readonly GeneratedDirective[];
  readonly reports: readonly Report[];
}
