/** The manual and the schema say the same. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { configureDocument } from './configure-doc.ts';
import { notesOf } from './key-notes.ts';
import { parseConfig } from './parse.ts';
import { TABLES } from './schema.ts';

const manual = readFileSync(new URL('../../doc/CONFIGURE.md', import.meta.url), 'utf8');

test('doc/CONFIGURE.md is what the schema generates (npm run generate)', () => {
  expect(configureDocument(manual)).toBe(manual);
});

test('a table that was changed by hand is written anew', () => {
  const spoilt = manual.replace('`max_flows`  ', '`max_floes`  ').replace('`HEALTH_OFF`', 'x');
  expect(spoilt).not.toBe(manual);
  expect(configureDocument(spoilt)).toContain('| `max_flows`  ');
});

test('a marker that is missing, unknown or there twice is refused', () => {
  expect(() => configureDocument(manual.replace('<!-- table: [[listeners]] -->', ''))).toThrow(
    'missing markers: table: [[listeners]]',
  );
  expect(() => configureDocument(`${manual}<!-- table: x --><!-- end -->`)).toThrow('table: x');
  expect(() => configureDocument(manual + manual)).toThrow('repeated marker');
});

test('every documented key has a row with its meaning', () => {
  for (const [key, schema] of TABLES.flatMap(({ shape }) => Object.entries(shape))) {
    const meaning = notesOf(schema)?.meaning;
    if (meaning === undefined) expect(manual).toContain(`\`${key}\``);
    else
      expect(
        manual
          .split('\n')
          .filter((line) => line.includes(`| \`${key}\``))
          .join(),
      ).toContain(meaning);
  }
});

test('the example in the manual has no error', () => {
  const [, example = ''] = /```toml\n([^]*?)```/.exec(manual) ?? [];
  const { config, problems } = parseConfig(example, { localAddresses: ['127.0.0.1'] });
  expect(problems).toEqual([]);
  expect(config?.listeners[0]?.cluster).toBe('dns');
});
