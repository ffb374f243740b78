/**
 * Replay files: failing runs made small, kept for ever. One holds actions, not a seed, so that it survives every change of
 * the draws, and says what it expects, so that nobody has to remember. The format is described in doc/SIMULATION.md.
 */
import { declaredProperties, Observer, type Violation } from '../properties.ts';
import type { Action, InitialState } from './actions.ts';
import { runActions } from './run.ts';
import type { Recording } from './shrink.ts';

/** The version of the format: it changes when files of before can no longer be read. */
export const REPLAY_SCHEMA = 1;

/** `fixed`: every property holds today. `reproduces`: the property is still violated. */
export const OUTCOMES = ['fixed', 'reproduces'] as const;
export type Outcome = (typeof OUTCOMES)[number];

export interface Replay extends Recording {
  /** That of its file, without `.json`. */
  readonly name: string;
  /** What it shows, or once showed, in a sentence or two. */
  readonly shows: string;
  readonly outcome: Outcome;
  /** Of the whole run: another course of events is noticed even where no property is violated. */
  readonly digest: string;
}

/** What a replay does today. A stale one proves nothing any more: whoever sees it must look. */
export type Verdict =
  { readonly kind: Outcome } | { readonly kind: 'stale'; readonly reason: string };

/** A replay of a recording, marked with what it does today. Throws if it violates another property than its own. */
export function makeReplay(name: string, shows: string, recording: Recording): Replay {
  const { initial, actions, property } = recording;
  const { digest, violation } = run(initial, actions);
  if (violation !== undefined && violation.name !== property) {
    throw new Error(`${name} violates "${violation.name}" instead of "${property}"`);
  }
  const outcome = violation === undefined ? 'fixed' : 'reproduces';
  return { name, shows, property, outcome, digest, initial, actions };
}

/**
 * Runs it. The verdict is what happens today, which may differ from the outcome it is marked with; it is stale if its
 * property is not declared any more, if another one is violated, or if the run took another course than its digest says.
 */
export function verifyReplay(replay: Replay): Verdict {
  const { initial, actions, property, outcome } = replay;
  if (!declaredProperties().some(({ name }) => name === property)) {
    return stale(`no property "${property}" is declared`);
  }
  const { digest, violation } = run(initial, actions);
  if (violation !== undefined && violation.name !== property) {
    return stale(`violates "${violation.name}" instead of "${property}"`);
  }
  const kind: Outcome = violation === undefined ? 'fixed' : 'reproduces';
  if (kind === outcome && digest !== replay.digest) {
    return stale(`its digest is ${digest} and was ${replay.digest}: the run takes another course`);
  }
  return { kind };
}

/** As JSON with one action a line, so that differences read well. Ends with a newline. */
export function encodeReplay(replay: Replay): string {
  const { name, shows, property, outcome, digest, initial, actions } = replay;
  const head = { schema: REPLAY_SCHEMA, name, shows, property, outcome, digest, initial };
  const fields = Object.entries(head).map(
    ([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)},`,
  );
  const lines = actions.map((action) => `    ${JSON.stringify(action)}`);
  const list = lines.length === 0 ? '[]' : `[\n${lines.join(',\n')}\n  ]`;
  return ['{', ...fields, `  "actions": ${list}`, '}', ''].join('\n');
}

interface Course {
  readonly digest: string;
  readonly violation: Violation | undefined;
}

function run(initial: InitialState, actions: readonly Action[]): Course {
  return runActions(initial, actions, { observer: new Observer() });
}

function stale(reason: string): Verdict {
  return { kind: 'stale', reason };
}
