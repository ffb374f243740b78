/** Positions of keys, in every way TOML can write one. */
import * as fc from 'fast-check';
import { parse, stringify } from 'smol-toml';
import { expect, test } from 'vitest';
import { locateKeys } from './locate.ts';
import { formatPath, type Path } from './problem.ts';

test('headers, dotted keys, quoted keys, arrays and inline tables are found', () => {
  const lines = locateKeys(
    [
      '\uFEFFtop = 1 # a comment with [brackets] and "quotes"', // 1
      'a.b . "c d" = "x # no comment"',
      '[t]', // 3
      '"\\u0061" = \'C:\\\'',
      'list = [', // 5
      '  1, # one',
      '  { x = { y = 2 }, z = [ "]", 3 ] },', // 7
      ']',
      '[[many]]', // 9
      'k = """',
      '[not.a.header]',
      'quoted \\""" five quotes end it"""""', // 12
      '[many.sub]',
      "k = '''\n'''''", // 14 and 15
      '[[many]]', // 16
      'k = 1979-05-27 07:32:00',
      'last = 1', // 18
    ].join('\r\n'),
  );
  expect([...lines].map(([path, line]) => `${line} ${path}`)).toEqual([
    '1 top',
    '2 a',
    '2 a.b',
    '2 a.b."c d"',
    '3 t',
    '4 t.a',
    '5 t.list',
    '6 t.list[0]',
    '7 t.list[1]',
    '7 t.list[1].x',
    '7 t.list[1].x.y',
    '7 t.list[1].z',
    '7 t.list[1].z[0]',
    '7 t.list[1].z[1]',
    '9 many',
    '9 many[0]',
    '10 many[0].k',
    '13 many[0].sub',
    '14 many[0].sub.k',
    '16 many[1]',
    '17 many[1].k',
    '18 many[1].last',
  ]);
});

test('a header of its own says where a table stands, not the first mention of it', () => {
  const lines = locateKeys('[a.b]\nx = 1\n[a]\ny = 2\n');
  expect(lines.get('a')).toBe(3);
  expect(lines.get('a.b')).toBe(1);
});

test('every path of every document is found, and nothing else', () => {
  const scalar = fc.oneof(fc.string(), fc.integer(), fc.boolean());
  const { table } = fc.letrec<{ table: Record<string, unknown>; value: unknown }>((tie) => ({
    table: fc.dictionary(fc.string({ maxLength: 5 }), tie('value'), { maxKeys: 4 }),
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      scalar,
      tie('table'),
      fc.array(tie('table'), { maxLength: 3 }),
      fc.array(scalar, { maxLength: 3 }),
    ),
  }));
  fc.assert(
    fc.property(table, (document) => {
      const text = stringify(document);
      expect([...locateKeys(text).keys()].sort()).toEqual(pathsOf(parse(text)).sort());
    }),
  );
});

test('text that is no TOML never throws and never hangs', () => {
  const noise = fc.string({
    unit: fc.constantFrom(...'[]{}=.,"\'\\#\n a1-'.split('')),
    maxLength: 60,
  });
  fc.assert(
    fc.property(noise, (text) => {
      expect(locateKeys(text)).toBeInstanceOf(Map);
    }),
    { numRuns: 500 },
  );
});

function pathsOf(value: unknown, path: Path = []): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => {
    const here = [...path, Array.isArray(value) ? Number(key) : key];
    return here.length > 16 ? [] : [formatPath(here), ...pathsOf(item, here)];
  });
}
