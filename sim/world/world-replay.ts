/**
 * Replay files of worlds: failing runs made small, kept for ever, as those of the flow machine are (core-harness/replay.ts).
 * One holds a first state and actions with their times. The seed in it is only for what chance is left in the world itself.
 */
import type { Problem } from '../core-harness/fields.ts';
import { OUTCOMES, type Outcome, type Verdict } from '../core-harness/replay.ts';
import { declaredProperties, Observer, type Violation } from '../properties.ts';
import type { Seed } from '../seed.ts';
import type { Script } from './actions.ts';
import { runScript } from './run-world.ts';
import { below, listOf, objectOf, text, word, type Check } from './shape.ts';
import type { WorldSpec } from './spec.ts';
import { ENTRY, SEED, SPEC } from './world-shapes.ts';

/** The version of the format: it changes when files of before can no longer be read. */
export const WORLD_REPLAY_SCHEMA = 1;

/** A run of a world that violates `property` before any other. */
export interface WorldRecording {
  readonly spec: WorldSpec;
  readonly script: Script;
  readonly seed: Seed;
  /** By its name: the same name is the same bug. */
  readonly property: string;
}

export interface WorldReplay extends WorldRecording {
  readonly schema: typeof WORLD_REPLAY_SCHEMA;
  readonly kind: 'world';
  /** That of its file, without `.json`. */
  readonly name: string;
  /** What it shows, or once showed, in a sentence or two. */
  readonly shows: string;
  readonly outcome: Outcome;
  /** Of the whole run: another course of events is noticed even where no property is violated. */
  readonly digest: string;
}

export type WorldReplayDecoding =
  | { readonly ok: true; readonly replay: WorldReplay }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** A replay of a recording, marked with what it does today. Throws if it violates another property than its own. */
export function makeWorldReplay(
  name: string,
  shows: string,
  { spec, script, seed, property }: WorldRecording,
): WorldReplay {
  const { digest, violation } = run({ spec, script, seed });
  if (violation !== undefined && violation.name !== property) {
    throw new Error(`${name} violates "${violation.name}" instead of "${property}"`);
  }
  const outcome = violation === undefined ? 'fixed' : 'reproduces';
  const schema = WORLD_REPLAY_SCHEMA;
  return { schema, kind: 'world', name, shows, property, outcome, digest, seed, spec, script };
}

/** Runs it, and says what it does today: see `verifyReplay`. */
export function verifyWorldReplay(replay: WorldReplay): Verdict {
  const { property, outcome } = replay;
  if (!declaredProperties().some(({ name }) => name === property)) {
    return stale(`no property "${property}" is declared`);
  }
  const { digest, violation } = run(replay);
  if (violation !== undefined && violation.name !== property) {
    return stale(`violates "${violation.name}" instead of "${property}"`);
  }
  const kind: Outcome = violation === undefined ? 'fixed' : 'reproduces';
  if (kind === outcome && digest !== replay.digest) {
    return stale(`its digest is ${digest} and was ${replay.digest}: the run takes another course`);
  }
  return { kind };
}

/** As JSON with a field or an action a line, so that differences read well. Ends with a newline. */
export function encodeWorldReplay({ spec, script, ...head }: WorldReplay): string {
  const lines = [
    ...Object.entries(head).map(([key, value]) => `  ${toJson(key)}: ${toJson(value)}`),
    `  "spec": ${block('{', Object.entries(spec).map(pair), '}')}`,
    `  "script": ${block('[', script.map(toJson), ']')}`,
  ];
  return `{\n${lines.join(',\n')}\n}\n`;
}

/** Reads the text of a file: everything that is wrong by its path, and nothing but what is meant. Never throws. */
export function decodeWorldReplay(source: string): WorldReplayDecoding {
  const problems: Problem[] = [];
  const value = parse(source, problems);
  const place = { path: '', problems };
  if (problems.length === 0 && REPLAY(value, place) && inOrder(value.script, place))
    return { ok: true, replay: value };
  return { ok: false, problems };
}

/** Whether the text claims to be one of these files. */
export function isWorldReplay(source: string): boolean {
  try {
    const value: unknown = JSON.parse(source);
    return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'world';
  } catch {
    return false;
  }
}

const REPLAY: Check<WorldReplay> = objectOf<WorldReplay>({
  schema: word(WORLD_REPLAY_SCHEMA),
  kind: word('world'),
  name: text(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, 'a name in kebab-case'),
  shows: text(/\S/, 'a text'),
  property: text(/\S/, 'the name of a property'),
  outcome: word(...OUTCOMES),
  digest: text(/^[0-9a-f]{16}$/, '16 hexadecimal digits'),
  seed: SEED,
  spec: SPEC,
  script: listOf(ENTRY, 0, 100_000),
});

/** Time does not run backwards. */
function inOrder(script: Script, place: { path: string; problems: Problem[] }): boolean {
  for (const [index, { at }] of script.entries()) {
    if (at >= (script[index - 1]?.at ?? 0)) continue;
    const { path } = below(place, `script[${index}].at`);
    place.problems.push({ path, problem: 'earlier than the entry before it' });
  }
  return place.problems.length === 0;
}

function run({ spec, script, seed }: Pick<WorldRecording, 'spec' | 'script' | 'seed'>): {
  readonly digest: string;
  readonly violation: Violation | undefined;
} {
  return runScript(spec, script, seed, { observer: new Observer() });
}

function stale(reason: string): Verdict {
  return { kind: 'stale', reason };
}

function block(open: string, lines: readonly string[], close: string): string {
  if (lines.length === 0) return open + close;
  return `${open}\n${lines.map((line) => `    ${line}`).join(',\n')}\n  ${close}`;
}

function pair([key, value]: [string, unknown]): string {
  return `${toJson(key)}: ${toJson(value)}`;
}

/** JSON knows neither bytes nor what is there and undefined: the first is an object of its own, the other null. */
function toJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => {
    if (inner === undefined) return null;
    return inner instanceof Uint8Array ? { hex: hexOf(inner) } : inner;
  });
}

function parse(source: string, problems: Problem[]): unknown {
  try {
    return revived(JSON.parse(source));
  } catch {
    problems.push({ path: '$', problem: 'not JSON' });
    return undefined;
  }
}

function revived(value: unknown): unknown {
  if (value === null) return undefined;
  if (typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(revived);
  const entries = Object.entries(value).map(([key, inner]) => [key, revived(inner)] as const);
  const [first] = entries;
  if (entries.length === 1 && first?.[0] === 'hex') return bytesOf(first[1]) ?? value;
  return Object.fromEntries(entries);
}

function hexOf(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

function bytesOf(hex: unknown): Uint8Array | undefined {
  if (typeof hex !== 'string' || !/^(?:[0-9a-f]{2})*$/.test(hex)) return undefined;
  return Uint8Array.from(hex.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));
}
