/**
 * Says whether data out of a file has the shape of a type: strictly, everything that is wrong noted by its path, nothing
 * thrown. A check is made of checks, and the compiler sees that it has one for each field of its type, and of the right type.
 */
import type { Problem } from '../core-harness/fields.ts';

/** Where a value stands, and where problems are noted. */
export interface Place {
  readonly path: string;
  readonly problems: Problem[];
}

/** Whether a value is a T; notes why it is not. */
export type Check<T> = (value: unknown, place: Place) => value is T;

export type FieldChecks<T> = { readonly [Key in keyof T]-?: Check<T[Key]> };

/** A whole number from `least` to `most`, which may be of a brand. */
export function whole<T extends number = number>(least: number, most: number): Check<T> {
  return (value, place): value is T =>
    (typeof value === 'number' &&
      Number.isInteger(value) &&
      !Object.is(value, -0) &&
      value >= least &&
      value <= most) ||
    note(place, `expected an integer from ${least} to ${most}`);
}

export const flag: Check<boolean> = (value, place): value is boolean =>
  typeof value === 'boolean' || note(place, 'expected true or false');

export function text(pattern: RegExp, expected: string): Check<string> {
  return (value, place): value is string =>
    (typeof value === 'string' && pattern.test(value)) || note(place, `expected ${expected}`);
}

export function word<const Word>(...words: readonly Word[]): Check<Word> {
  return (value, place): value is Word =>
    words.some((one) => one === value) || note(place, `expected one of ${words.join(', ')}`);
}

export function bytes(most: number): Check<Uint8Array> {
  return (value, place): value is Uint8Array =>
    (value instanceof Uint8Array && value.length <= most) ||
    note(place, `expected at most ${most} bytes`);
}

/** It may be missing, or be undefined. */
export function maybe<T>(check: Check<T>): Check<T | undefined> {
  return (value, place): value is T | undefined => value === undefined || check(value, place);
}

export function listOf<T>(check: Check<T>, least = 0, most = 1_024): Check<readonly T[]> {
  return (value, place): value is readonly T[] => {
    if (!Array.isArray(value) || value.length < least || value.length > most)
      return note(place, `expected a list of ${least} to ${most}`);
    const found = value.map((item: unknown, at) => check(item, below(place, `[${at}]`)));
    return found.every((right) => right);
  };
}

/** An object with these fields, and no others. */
export function objectOf<T extends object>(checks: FieldChecks<T>): Check<T> {
  return (value, place): value is T => {
    const fields = fieldsOf(value);
    return fields === undefined ? note(place, 'expected an object') : hasAll(fields, checks, place);
  };
}

/** Some of these fields, and no others. */
export function someOf<T extends object>(checks: FieldChecks<T>): Check<Partial<T>> {
  return (value, place): value is Partial<T> => {
    const fields = fieldsOf(value);
    if (fields === undefined) return note(place, 'expected an object');
    const given = Object.entries<Check<unknown>>(checks).filter(([key]) => fields.has(key));
    return hasAll(fields, Object.fromEntries(given), place);
  };
}

/** An object with one of the kinds, and the fields of that kind and no others. */
export function oneOfKinds<T extends { readonly kind: string }>(kinds: {
  readonly [Kind in T['kind']]: FieldChecks<Omit<Extract<T, { readonly kind: Kind }>, 'kind'>>;
}): Check<T> {
  const known = new Map<unknown, Readonly<Record<string, Check<unknown>>>>(Object.entries(kinds));
  return (value, place): value is T => {
    const fields = fieldsOf(value);
    if (fields === undefined) return note(place, 'expected an object');
    const checks = known.get(fields.get('kind'));
    if (checks === undefined)
      return note(below(place, 'kind'), `expected one of ${[...known.keys()].join(', ')}`);
    fields.delete('kind');
    return hasAll(fields, checks, place);
  };
}

export function below({ path, problems }: Place, step: string): Place {
  const joined = path === '' || step.startsWith('[') ? path + step : `${path}.${step}`;
  return { path: joined, problems };
}

function fieldsOf(value: unknown): Map<string, unknown> | undefined {
  const isPlain =
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Uint8Array);
  return isPlain ? new Map(Object.entries(value)) : undefined;
}

function hasAll(fields: Map<string, unknown>, checks: object, place: Place): boolean {
  let right = true;
  for (const [key, check] of Object.entries<Check<unknown>>({ ...checks })) {
    right = check(fields.get(key), below(place, key)) && right;
    fields.delete(key);
  }
  for (const key of fields.keys()) right = note(below(place, key), 'unknown field');
  return right;
}

function note({ path, problems }: Place, problem: string): false {
  problems.push({ path: path === '' ? '$' : path, problem });
  return false;
}
