import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readSources, scanProperties } from './property-scan.ts';

test('declarations are found with kind, name and place, under another local name too', () => {
  const scan = scanProperties([
    {
      path: 'sim/a.ts',
      text: [
        "import { always, sometimes as now_and_then, Observer } from './properties.ts';",
        "const balanced = always('the books balance');",
        "export const reused: Property = now_and_then('a slot is used again');",
        'new Observer().check(balanced, 1 < 2);',
      ].join('\n'),
    },
    {
      path: 'scenarios/b.ts',
      text: "import { alwaysAtMost } from '../sim/index.ts';\nconst cap = alwaysAtMost('below the cap');",
    },
  ]);
  expect(scan).toEqual({
    catalogue: [
      { kind: 'always', name: 'the books balance', path: 'sim/a.ts', line: 2 },
      { kind: 'sometimes', name: 'a slot is used again', path: 'sim/a.ts', line: 3 },
      { kind: 'alwaysAtMost', name: 'below the cap', path: 'scenarios/b.ts', line: 2 },
    ],
    problems: [],
  });
});

test.each(['`slot ${index} is used`', '`a template`', 'name', "'a' + 'b'", '', '1'])(
  'the name (%s) is not a literal, which is a problem',
  (name) => {
    const text = `import { always } from './properties.ts';\n\nalways(${name});`;
    expect(scanProperties([{ path: 'sim/a.ts', text }])).toEqual({
      catalogue: [],
      problems: ['sim/a.ts:3: the name of a property must be a literal'],
    });
  },
);

test('a name that is used twice is a problem with both places, whatever the kinds', () => {
  const first = "import { always } from './properties.ts';\nalways('twice');";
  const second = "import { sometimes } from './properties.ts';\nsometimes('twice');";
  const scan = scanProperties([
    { path: 'sim/a.ts', text: first },
    { path: 'sim/b.ts', text: second },
  ]);
  expect(scan.problems).toEqual(["sim/b.ts:2: 'twice' is declared at sim/a.ts:2 too"]);
});

test('functions of the same names that were not imported are none of ours', () => {
  const text = "function always(name: string): void {}\nalways('local'); object.always('method');";
  expect(scanProperties([{ path: 'sim/a.ts', text }])).toEqual({ catalogue: [], problems: [] });
});

test('declarations through a namespace are found, uses of declared ones are not taken for any', () => {
  const text = [
    "import * as engine from '../properties.ts';",
    "import * as properties from './properties.ts';",
    "const balanced = engine.always('the books balance');",
    'observer.check(properties.balanced, true);',
    "properties.other('not a property');",
  ].join('\n');
  expect(scanProperties([{ path: 'sim/a.ts', text }])).toEqual({
    catalogue: [{ kind: 'always', name: 'the books balance', path: 'sim/a.ts', line: 3 }],
    problems: [],
  });
});

test('a source that does not parse is a problem', () => {
  const { problems } = scanProperties([{ path: 'sim/b.ts', text: 'const = 1;' }]);
  expect(problems).toHaveLength(1);
  expect(problems[0]).toContain('sim/b.ts: ');
});

test('sources are read by folder, without tests, in the order of their paths', () => {
  const root = mkdtempSync(join(tmpdir(), 'property-scan-'));
  try {
    mkdirSync(join(root, 'sim/world'), { recursive: true });
    for (const name of [
      'b.ts',
      'a.ts',
      'a.test.ts',
      'a.laws.ts',
      'a.d.ts',
      'a.json',
      'world/c.ts',
    ]) {
      writeFileSync(join(root, 'sim', name), `// ${name}`);
    }
    const sources = readSources(root, ['sim']);
    expect(sources.map(({ path }) => path)).toEqual(['sim/a.ts', 'sim/b.ts', 'sim/world/c.ts']);
    expect(sources[0]?.text).toBe('// a.ts');
  } finally {
    rmSync(root, { recursive: true });
  }
});

test('the real sources have a catalogue without problems', () => {
  const root = join(import.meta.dirname, '../..');
  expect(scanProperties(readSources(root, ['core', 'sim'])).problems).toEqual([]);
});
