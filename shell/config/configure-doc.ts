/**
 * Writes the tables of doc/CONFIGURE.md from the schema. The prose stays by hand in that document: each table is replaced
 * between a pair of markers, `<!-- table: [[listeners]] -->` and `<!-- end -->`.
 */
import * as z from 'zod';
import { notesOf, type DocumentedTable, type KeyNotes } from './key-notes.ts';
import { TABLES } from './schema.ts';
import { FOREIGN_CLUSTER_KEYS, FOREIGN_GLOBAL_KEYS, FOREIGN_LISTENER_KEYS } from './sozu-keys.ts';

/** The document with every generated part as the schema has it now; the rest is kept. Throws on an unknown marker. */
export function configureDocument(current: string): string {
  const generated = new Map(TABLES.map((table) => [`table: ${table.header}`, renderTable(table)]));
  generated.set('keys: top level', renderKeys(FOREIGN_GLOBAL_KEYS));
  generated.set('keys: listeners', renderKeys(FOREIGN_LISTENER_KEYS));
  generated.set('keys: clusters', renderKeys(FOREIGN_CLUSTER_KEYS));
  const document = current.replace(
    /<!-- ((?:table|keys): .+?) -->[^]*?<!-- end -->/g,
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

type JsonSchema = z.core.JSONSchema.BaseSchema;

function typeOf(key: string, json: JsonSchema): string {
  if (json.enum !== undefined) return json.enum.map((value) => `\`"${String(value)}"\``).join(' ');
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

/** As prettier would write it, so that formatting the document changes nothing. */
function alignTable(rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map((cell) => cell.replaceAll('|', '\\|')));
  const widths = (cells[0] ?? []).map((_, column) =>
    Math.max(3, ...cells.map((row) => (row[column] ?? '').length)),
  );
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const rule = widths.map((width) => '-'.repeat(width));
  const [head = [], ...body] = cells;
  return [line(head), line(rule), ...body.map(line)].join('\n');
}
