/**
 * Answers for people: the very keys that `--json` prints, as lines and tables. Text from outside is made safe for a terminal.
 */
import { Chalk } from 'chalk';
import { printable } from '../printable.ts';

export interface RenderOptions {
  readonly colour: boolean;
}

/** Plain values first, each on a line; then tables and what is nested, under their names. */
export function render(answer: unknown, options: RenderOptions): string {
  if (!isObject(answer)) return `${plain(answer)}\n`;
  const entries = Object.entries(answer).filter(([, value]) => value !== undefined);
  const [first] = entries;
  if (entries.length === 1 && first !== undefined && isTable(first[1])) {
    return table(first[1], options);
  }
  const chalk = new Chalk({ level: options.colour ? 1 : 0 });
  const lines = entries.map(([key, value]) => {
    const name = chalk.bold(printable(key));
    if (isTable(value)) return value.length === 0 ? '' : `\n${name}\n${table(value, options)}`;
    if (isList(value)) return `\n${name}\n${value.map((item) => `  ${plain(item)}\n`).join('')}`;
    if (isObject(value)) return `\n${name}\n${indent(render(value, options))}`;
    return `${name}: ${plain(value)}\n`;
  });
  const isPlain = ([, value]: readonly [string, unknown]): boolean => !isObject(value);
  const flat = lines.filter((_, index) => isPlain(entries[index] ?? ['', undefined]));
  const nested = lines.filter((_, index) => !isPlain(entries[index] ?? ['', undefined]));
  return [...flat, ...nested].join('');
}

/** One row for each object, one column for each key that some row has. */
export function table(
  rows: readonly Readonly<Record<string, unknown>>[],
  options: RenderOptions,
): string {
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((key) =>
    rows.some((row) => row[key] !== undefined),
  );
  if (rows.length === 0) return 'none\n';
  const chalk = new Chalk({ level: options.colour ? 1 : 0 });
  const cells = [keys, ...rows.map((row) => keys.map((key) => plain(row[key])))];
  const isNumber = keys.map((key) => rows.every((row) => isNumeric(row[key])));
  const widths = keys.map((_, column) => maxLength(cells, column));
  return cells
    .map((row, index) => {
      const line = row
        .map((cell, column) => pad(printable(cell), widths[column] ?? 0, isNumber[column] ?? false))
        .join('  ')
        .trimEnd();
      return `${index === 0 ? chalk.dim(line) : line}\n`;
    })
    .join('');
}

/** One line: `key=value` for each key. What would not be told from the next key is in quotes or brackets. */
export function oneLine(value: Readonly<Record<string, unknown>>): string {
  return Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .map(([key, item]) => `${printable(key)}=${inLine(item)}`)
    .join(' ');
}

function inLine(value: unknown): string {
  if (typeof value === 'string')
    return /[\s"=]/.test(value) ? printable(JSON.stringify(value)) : plain(value);
  if (Array.isArray(value)) return `[${value.map(inLine).join(', ')}]`;
  return isObject(value) ? `(${oneLine(value)})` : plain(value);
}

function plain(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'string') return printable(value);
  if (Array.isArray(value)) return value.map(plain).join(', ');
  return isObject(value) ? oneLine(value) : printable(JSON.stringify(value));
}

function pad(text: string, width: number, toTheRight: boolean): string {
  return toTheRight ? text.padStart(width) : text.padEnd(width);
}

/** Not by spreading: a list may have ten thousand rows. */
function maxLength(cells: readonly (readonly string[])[], column: number): number {
  return cells.reduce((longest, row) => Math.max(longest, row[column]?.length ?? 0), 0);
}

function isNumeric(value: unknown): boolean {
  return value === undefined || typeof value === 'number';
}

function indent(text: string): string {
  return text.replace(/^(?=.)/gm, '  ');
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

/** Of plain values, a line for each. */
function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && !value.some(isObject);
}

function isTable(value: unknown): value is readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) && value.every((row) => isObject(row) && !Array.isArray(row));
}
