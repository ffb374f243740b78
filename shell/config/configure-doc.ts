/**
 * Writes the tables of doc/CONFIGURE.md from the schema and the presets. The prose stays by hand in that document: each table
 * is replaced between a pair of markers, `<!-- table: [[listeners]] -->` and `<!-- end -->`. Where a default is a choice, a
 * second table, `<!-- reasons: [[listeners]] -->`, says why.
 */
import * as z from 'zod';
import { alignTable } from './markdown-table.ts';
import { presetReasons, presetValues } from './preset-tables.ts';
import { notesOf, type DocumentedTable, type KeyNotes } from './key-notes.ts';
import { TABLES } from './schema.ts';
import { FOREIGN_CLUSTER_KEYS, FOREIGN_GLOBAL_KEYS, FOREIGN_LISTENER_KEYS } from './sozu-keys.ts';

/** The document with every generated part as the schema has it now; the rest is kept. Throws on an unknown marker. */
export function configureDocument(current: string): string {
  const generated = new Map(TABLES.map((table) => [`table: ${table.header}`, renderTable(table)]));
  for (const table of TABLES) {
    const reasons = renderReasons(table);
    if (reasons !== undefined) generated.set(`reasons: ${table.header}`, reasons);
  }
  generated.set('presets: values', presetValues());
  generated.set('presets: reasons', presetReasons());
  generated.set('keys: top level', renderKeys(FOREIGN_GLOBAL_KEYS));
  generated.set('keys: listeners', renderKeys(FOREIGN_LISTENER_KEYS));
  generated.set('keys: clusters', renderKeys(FOREIGN_CLUSTER_KEYS));
  const document = current.replace(
    /<!-- ((?:table|reasons|presets|keys): .+?) -->[^]*?<!-- end -->/g,
    (_, name: string) => {
      const body = generated.get(name);
      if (body === undefined) throw new Error(`unknown or repeated marker: ${name}`);
      generated.delete(name);
      return `<!-- ${name} -->\n\n${body}\n\n<!-- end -->`;
    },
  );
  if (generated.size > 0) throw new Error(`missing markers: ${[...generated.keys()].join(', ')}`);
  return document;
}

function renderTable({ shape }: DocumentedTable): string {
  const rows = Object.entries(shape).flatMap(([key, schema]) => {
    const about = notesOf(schema);
    return about === undefined ? [] : [renderRow(key, schema, about)];
  });
  const header = ['key', 'type', 'unit', 'default', 'whose', 'meaning'];
  return alignTable([header, ...rows]);
}

function renderRow(key: string, schema: z.ZodType, about: KeyNotes): readonly string[] {
  const json = z.toJSONSchema(schema, { io: 'input' });
  return [
    `\`${key}\``,
    typeOf(key, json),
    about.unit ?? '',
    about.fallback ?? defaultOf(schema, json),
    about.origin,
    about.meaning,
  ];
}

/** Undefined when every default of the table is the only sensible one. */
function renderReasons({ shape }: DocumentedTable): string | undefined {
  const rows = Object.entries(shape).flatMap(([key, schema]) => {
    const about = notesOf(schema);
    if (about?.reason === undefined) return [];
    const written = about.fallback ?? defaultOf(schema, z.toJSONSchema(schema, { io: 'input' }));
    return [[`\`${key}\``, written === '' ? 'none' : written, about.reason]];
  });
  return rows.length === 0 ? undefined : alignTable([['key', 'default', 'why'], ...rows]);
}

type JsonSchema = z.core.JSONSchema.BaseSchema;

function typeOf(key: string, json: JsonSchema): string {
  if (json.anyOf !== undefined) return json.anyOf.map((one) => typeOf(key, one)).join(', ');
  const words = wordsOf(json);
  if (words !== undefined) return words;
  switch (json.type) {
    case 'integer':
      return `integer ${json.minimum ?? ''} to ${json.maximum ?? ''}`;
    case 'string':
      return key.endsWith('address') ? '`"ip:port"`' : 'string';
    case 'array':
      return isList(json) ? 'array of strings' : 'array of tables';
    case 'object':
      return 'table';
    case 'boolean':
      return '`true` `false`';
    default:
      throw new Error(`the manual has no word for the type of ${key}`);
  }
}

function wordsOf({ const: only, enum: several }: JsonSchema): string | undefined {
  const words = only === undefined ? several : [only];
  return words?.map((word) => `\`"${String(word)}"\``).join(' ');
}

function isList({ items }: JsonSchema): boolean {
  return typeof items === 'object' && 'type' in items && items.type === 'string';
}

function defaultOf(schema: z.ZodType, json: JsonSchema): string {
  if (json.default !== undefined && typeof json.default !== 'object') {
    return `\`${JSON.stringify(json.default)}\``;
  }
  return schema.safeParse(undefined).success ? '' : 'required';
}

function renderKeys(keys: readonly string[]): string {
  return keys.map((key) => `\`${key}\``).join(', ');
}
