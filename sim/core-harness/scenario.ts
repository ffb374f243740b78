/** A scenario of the core harness: a name, what it is for, and the grammar it draws from. */
import type { Observer } from '../properties.ts';
import type { Streams } from '../random.ts';
import type { Action } from './actions.ts';
import type { Grammar } from './grammar.ts';

/** Sees each action of one run once it was performed; may look at properties of its own. */
export type ActionWatch = (action: Action, observer: Observer) => void;

export interface Scenario {
  readonly name: string;
  /** One line for `--list`. */
  readonly purpose: string;
  /** Seeds that a plain sweep runs of it, as a share of `--seeds`; 0 = only when asked for by name. */
  readonly share: number;
  /** The grammar of a seed; `swarm` draws one. */
  grammarOf(streams: Streams): Grammar;
  /** Actions put before the drawn ones, for a scenario that must end in a certain way. */
  readonly preface?: readonly Action[];
  /** Begins to watch a run: whatever it remembers is of that run alone. */
  readonly watch?: () => ActionWatch;
  /** Whether it must fail, so that failing is known to work. */
  readonly mustFail?: boolean;
}
