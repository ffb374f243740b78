/** What a bench is made of: parts that run one after the other; each prints what it measured and hands on what is compared. */
import type { Figure } from './bars.ts';
import type { PairedResult } from './turns.ts';
import type { Placement } from './processes.ts';

export interface Options {
  /** Slices that each program gets. */
  readonly slices: number;
  /** Of a soak. */
  readonly minutes: number;
  /** A folder with the sources of the C floors. */
  readonly floor?: string;
  /** A binary of Sōzu. */
  readonly sozu?: string;
  /** The built checkout of an earlier commit. */
  readonly against?: string;
}

export interface Context {
  readonly options: Options;
  readonly placement: Placement;
  /** Tells whoever waits how far it is. */
  readonly progress: (text: string) => void;
  readonly print: (lines: readonly string[]) => void;
  /** Collects the garbage of this process, at once. */
  readonly collect: () => void;
}

export interface Outcome {
  readonly figures: readonly Figure[];
  /** Of a paired part, for plots. */
  readonly results?: readonly PairedResult[];
  /** For a record: everything that was measured. */
  readonly data: unknown;
}

export interface Part {
  readonly name: string;
  readonly meaning: string;
  /** Whether `all` includes it. */
  readonly inAll: boolean;
  run(context: Context): Promise<Outcome> | Outcome;
}
