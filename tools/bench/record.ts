/**
 * What benches leave in a file: of each part the lines it printed, its figures, and where and when it was measured. A part
 * measured anew takes the place of the old one; doc/benchmarks.json is such a file, and doc/BENCHMARKS.md shows it.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { Figure } from './bars.ts';
import type { Machine } from './machine.ts';
import type { PairedResult } from './turns.ts';

export interface PartRecord {
  readonly machine: Machine;
  /** Slices that each program got. */
  readonly slices: number;
  readonly lines: readonly string[];
  readonly figures: readonly Figure[];
  /** Of the paired parts, for plots. */
  readonly results: readonly PairedResult[];
  /** Everything that was measured. */
  readonly data: unknown;
}

export interface BenchRecord {
  readonly schema: 1;
  readonly parts: Readonly<Record<string, PartRecord>>;
}

const EMPTY_RECORD: BenchRecord = { schema: 1, parts: {} };

/** Throws when the file is of another kind. */
export function readRecord(file: string): BenchRecord {
  const record: BenchRecord = JSON.parse(readFileSync(file, 'utf8'), withoutNull);
  if (record.schema !== 1) throw new Error(`${file} is no record of this bench`);
  return record;
}

/** Puts parts into a file, which is made if it is not there. */
export function addToRecord(file: string, parts: Readonly<Record<string, PartRecord>>): void {
  const before = existsSync(file) ? readRecord(file) : EMPTY_RECORD;
  const record = { ...before, parts: { ...before.parts, ...parts } };
  writeFileSync(file, `${JSON.stringify(record, undefined, 1)}\n`);
}

/** JSON has no word for a figure that is not a number, and null would be less than any bar. */
function withoutNull(key: string, value: unknown): unknown {
  return key === 'value' && value === null ? Number.NaN : value;
}
