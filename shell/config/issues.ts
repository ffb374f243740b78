/**
 * Turns what zod found into problems that an operator can act on: what was expected, what stands there, and for an
 * unknown key the one that was probably meant.
 */
import type { core } from 'zod';
import { parseAddress } from '../../core/address.ts';
import type { Path, Report } from './problem.ts';
import { notesOf } from './key-notes.ts';
import { TABLES } from './schema.ts';
import { HTTP_FRONTEND_KEYS } from './sozu-keys.ts';

/** Reports every issue below `base`. */
export function reportIssues(report: Report, base: Path, issues: readonly core.$ZodIssue[]): void {
  for (const issue of issues) {
    const path = [
      ...base,
      ...issue.path.map((part) => (typeof part === 'number' ? part : String(part))),
    ];
    if (issue.code === 'unrecognized_keys') {
      for (const key of issue.keys) report.error([...path, key], 'unknown key', suggestKey(key));
    } else if (issue.code === 'custom') {
      report.error(path, issue.message, customFix(issue));
    } else if (issue.input === undefined) {
      report.error(path, `missing: ${expectation(issue)}`, 'add the key');
    } else {
      report.error(path, `${expectation(issue)}, found ${describe(issue.input)}`, fixOf(issue));
    }
  }
}

/** Where an unknown key belongs, or what it resembles; undefined when nothing is near. */
export function suggestKey(key: string): string | undefined {
  if (HTTP_FRONTEND_KEYS.includes(key)) return 'it concerns HTTP or TLS: remove it';
  const known: string[] = [];
  for (const { header, shape } of TABLES) {
    const ours = Object.entries(shape).filter(([, schema]) => notesOf(schema) !== undefined);
    if (ours.some(([word]) => word === key)) return `it belongs in ${header}`;
    known.push(...ours.map(([word]) => word));
  }
  const near = known.find((word) => editDistance(word, key) <= 2);
  return near === undefined ? 'remove it' : `did you mean ${near}?`;
}

/** A value as an operator would recognise it, on one line and short. */
export function describe(value: unknown): string {
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object' && value !== null) return 'a table';
  // JSON has no word for nan and inf.
  const text = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? 'nothing');
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

/** Keys whose arrays hold texts, with one of them as an example. */
const TEXT_LISTS: ReadonlyMap<string, string> = new Map([
  ['allow', '10.0.0.0/8'],
  ['allowed_hosts', 'lb.example.com'],
  ['deny', '10.0.0.0/8'],
  ['upstream_source', '10.0.0.5'],
]);

const EXPECTED: ReadonlyMap<string, string> = new Map([
  ['int', 'a whole number'],
  ['number', 'a whole number'],
  ['string', 'a string'],
  ['boolean', 'true or false'],
  ['object', 'a table'],
  ['array', 'an array of tables'],
]);

function expectation(issue: core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      if (TEXT_LISTS.has(String(issue.path.at(-1)))) return 'expected an array of strings';
      return `expected ${EXPECTED.get(issue.expected) ?? issue.expected}`;
    case 'invalid_value':
      return `expected ${issue.values.map((value) => JSON.stringify(value)).join(' or ')}`;
    case 'too_small':
      return issue.origin === 'string'
        ? 'expected a string that is not empty'
        : `expected at least ${issue.minimum}`;
    case 'too_big':
      return `expected at most ${issue.maximum}`;
    default:
      return issue.message;
  }
}

function customFix(issue: core.$ZodIssueCustom): string | undefined {
  const fix: unknown = issue.params?.['fix'];
  return typeof fix === 'string' ? fix : undefined;
}

/** What to write instead; each kind of mistake has an obvious remedy. */
function fixOf(issue: core.$ZodIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_value':
      return `write ${meantValue(issue) ?? 'one of these words'}`;
    case 'invalid_type':
      return typeFix(issue);
    case 'too_small':
      return issue.origin === 'string'
        ? 'write a text, or remove the key'
        : `write ${issue.minimum} or more`;
    case 'too_big':
      return `write ${issue.maximum} or less`;
    default:
      return undefined;
  }
}

/** The only possible value, or the one that what stands there resembles. */
function meantValue({ values, input }: core.$ZodIssueInvalidValue): string | undefined {
  if (values.length === 1) return JSON.stringify(values[0]);
  if (typeof input !== 'string') return undefined;
  const written = input.toUpperCase();
  const near = values.find((value) => editDistance(String(value).toUpperCase(), written) <= 2);
  return near === undefined ? undefined : JSON.stringify(near);
}

function typeFix({ expected, input, path }: core.$ZodIssueInvalidType): string {
  const scalar = typeof input === 'string' ? input : '';
  switch (expected) {
    case 'string':
      return typeof input === 'object' ? 'write a text in quotes' : 'put it in quotes';
    case 'object':
      return typeof path.at(-1) === 'number' && parseAddress(scalar) !== undefined
        ? `write { address = ${JSON.stringify(scalar)} }`
        : 'write a table';
    case 'array':
      return arrayFix(String(path.at(-1)));
    default:
      return isBare(scalar)
        ? `write ${scalar} without quotes`
        : `write ${EXPECTED.get(expected) ?? expected}`;
  }
}

function arrayFix(key: string): string {
  const example = TEXT_LISTS.get(key);
  return example === undefined
    ? 'write an array of tables, such as [{ address = "10.0.0.10:53" }]'
    : `write an array, such as ${key} = ["${example}"]`;
}

/** Whether a text would be a whole number or a boolean of TOML without its quotes. */
function isBare(text: string): boolean {
  return /^(?:0|[1-9][0-9]{0,9}|true|false)$/.test(text);
}

/** Levenshtein; keys are short, and longer words than any key of ours resemble none. */
function editDistance(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > 2) return Number.POSITIVE_INFINITY;
  let previous = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (let row = 0; row < one.length; row += 1) {
    const current = [row + 1];
    for (let column = 0; column < other.length; column += 1) {
      const change = (previous[column] ?? 0) + (one[row] === other[column] ? 0 : 1);
      const drop = (previous[column + 1] ?? 0) + 1;
      const add = (current[column] ?? 0) + 1;
      current.push(Math.min(change, drop, add));
    }
    previous = current;
  }
  return previous[other.length] ?? 0;
}
