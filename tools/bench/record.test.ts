import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { describeMachine } from './machine.ts';
import { addToRecord, readRecord } from './record.ts';

function part(lines: string[]) {
  return { machine: describeMachine(), slices: 4, lines, figures: [], results: [], data: null };
}

test('a part measured anew takes the place of the old one, and the others stay', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'bench-record-')), 'record.json');
  addToRecord(file, { dgram: part(['old']), core: part(['kept']) });
  addToRecord(file, { dgram: part(['new']) });
  const { parts } = readRecord(file);
  expect(parts['dgram']?.lines).toEqual(['new']);
  expect(parts['core']?.lines).toEqual(['kept']);
});

test('a figure that is not a number is still none when it is read, so it misses its bar', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'bench-record-')), 'record.json');
  const figures = [{ name: 'x', value: Number.NaN }];
  addToRecord(file, { dgram: { ...part([]), figures } });
  expect(readRecord(file).parts['dgram']?.figures[0]?.value).toBeNaN();
});

test('another file is left as it is', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'bench-record-')), 'other.json');
  writeFileSync(file, '{"name":"x"}');
  expect(() => addToRecord(file, {})).toThrow('no record of this bench');
});

test('a machine says what figures depend on', () => {
  const { processors, kernel, node, when } = describeMachine();
  expect(processors).toBeGreaterThan(0);
  expect(kernel).toMatch(/^\d+\./);
  expect(node).toBe(process.version);
  expect(Date.parse(when)).toBeGreaterThan(0);
});
