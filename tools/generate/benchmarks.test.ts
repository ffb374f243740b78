import { expect, test } from 'vitest';
import { benchmarksDocument, benchmarksPlot } from './benchmarks.ts';
import { PARTS } from '../bench/parts.ts';

const MACHINE = {
  processor: 'A processor',
  processors: 2,
  architecture: 'x64',
  memoryMiB: 3_900,
  kernel: '6.18.1',
  node: 'v20.20.2',
  versions: { nginx: '1.22.1' },
  commit: 'abc1234',
  isClean: false,
  when: '2026-12-01T01:02:03.000Z',
};

const RECORD = {
  schema: 1,
  parts: {
    million: {
      machine: MACHINE,
      slices: 24,
      lines: ['', 'a million | flows'],
      figures: [{ name: 'million, longest pause', value: 21.234 }],
      results: [],
      data: null,
    },
  },
} as const;

const EMPTY = ['machine', 'bars', ...PARTS.map(({ name }) => `part ${name}`)]
  .map((name) => `<!-- bench ${name} --><!-- end -->\n`)
  .join('between\n');

test('the document shows what a part printed, where it was measured, and its bars', () => {
  const shown = benchmarksDocument(EMPTY, RECORD);
  expect(shown).toContain('<!-- bench part million -->\n\n```text\na million | flows\n```');
  expect(shown).toContain(
    '- million: A processor, 2 processors, x64, 3900 MiB; Linux 6.18.1, Node 20.20.2, nginx 1.22.1; ' +
      'commit abc1234 with changes, 2026-12-01.',
  );
  expect(shown).toMatch(/\| million, longest pause +\| 21 ms +\| 20 ms +\| \*\*missed\*\* +\|/);
  expect(shown).toContain('No record yet: `npm run bench -- mmsg --json doc/benchmarks.json`.');
  expect(shown.match(/^between$/gm)).toHaveLength(PARTS.length + 1);
  expect(benchmarksDocument(shown, RECORD)).toBe(shown);
});

test('a document without a marker is refused', () => {
  expect(() => benchmarksDocument('# Benchmarks\n', RECORD)).toThrow('missing marker: bench');
});

test('a record without round trips gives an empty plot', () => {
  expect(benchmarksPlot(RECORD)).not.toContain('<rect');
});
