import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { trackedFiles } from './files.ts';
import { quotedTestRule } from './quoted-tests.ts';

const root = join(import.meta.dirname, '../..');

/** Traps whose answer is not in this repository yet. */
const WAITING = ['B19'];

describe('the documents', () => {
  test('quote only tests that exist', () => {
    const rule = quotedTestRule((path) => (existsSync(join(root, path)) ? read(path) : undefined));
    expect(trackedFiles(root).flatMap((file) => rule(file))).toEqual([]);
  });

  test('quote a test for every threat', () => {
    const threats = read('doc/THREATS.md').split(/^## /m).slice(1);
    expect(threats.length).toBeGreaterThan(10);
    for (const threat of threats) expect(threat).toMatch(/`[^`]+\.(?:test|laws)\.ts`\s+"/);
  });

  test('quote for each of the traps B1 to B23 a test that names it, but for those that wait', () => {
    const traps = read('doc/TRAPS.md')
      .split(/^- \*\*/m)
      .slice(1);
    expect(traps.map((trap) => /^B\d+/.exec(trap)?.[0])).toEqual(
      Array.from({ length: 23 }, (_, at) => `B${at + 1}`),
    );
    const untested = traps.filter((trap) => {
      const [name] = /^B\d+/.exec(trap) ?? [];
      return !new RegExp(String.raw`\.test\.ts\`\s+"(?:[^"]*\W)?${name}\b`).test(trap);
    });
    expect(untested.map((trap) => trap.split('*')[0])).toEqual(WAITING);
  });
});

describe('a quoted test', () => {
  const files = new Map([['core/a.test.ts', "test('keeps what it promised', () => {});"]]);
  const rule = quotedTestRule((path) => files.get(path));
  const judge = (text: string): readonly string[] => rule({ path: 'A.md', text });

  test('is found by its file and words of its name, also across a line break', () => {
    expect(judge('See `core/a.test.ts` "keeps what\n  it promised".')).toEqual([]);
    expect(judge('All of `core/a.test.ts` show it.')).toEqual([]);
  });

  test('that was renamed, or whose file has gone, is a finding', () => {
    expect(judge('\n`core/a.test.ts` "breaks it"')).toEqual([
      'A.md:2: core/a.test.ts has no test "breaks it"; quote another',
    ]);
    expect(judge('`core/b.test.ts` "keeps"')).toEqual([
      'A.md:1: core/b.test.ts has no test "keeps"; quote another',
    ]);
  });
});

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}
