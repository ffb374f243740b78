/**
 * Finds the property catalogue in the sources. Counting at run time cannot know what was never run; the text does, so a
 * property behind a dead call path shows up as missed instead of not at all.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';
import type { Argument, CallExpression, ImportDeclaration } from 'oxc-parser';
import type { CatalogueEntry, PropertyKind } from '../index.ts';

export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** A declaration and where it stands; lines count from 1. */
export interface ScannedProperty extends CatalogueEntry {
  readonly path: string;
  readonly line: number;
}

export interface PropertyScan {
  /** In the order of the files and of their lines. */
  readonly catalogue: readonly ScannedProperty[];
  /** What makes the catalogue wrong, as `path:line: what`: names that are not literals or not unique, broken sources. */
  readonly problems: readonly string[];
}

/** Scans sources for calls of `always`, `sometimes`, … however they were imported. */
export function scanProperties(sources: Iterable<SourceFile>): PropertyScan {
  const catalogue: ScannedProperty[] = [];
  const problems: string[] = [];
  for (const source of sources) scanFile(source, catalogue, problems);
  const first = new Map<string, ScannedProperty>();
  for (const property of catalogue) {
    const other = first.get(property.name);
    if (other === undefined) first.set(property.name, property);
    else problems.push(`${place(property)}: '${property.name}' is declared at ${place(other)} too`);
  }
  return { catalogue, problems };
}

/** The TypeScript sources under `folders` of `root`, without tests, in the order of their paths. */
export function readSources(root: string, folders: readonly string[]): SourceFile[] {
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && /(?<!\.test|\.laws|\.d)\.ts$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name)),
  );
  return files.sort().map((file) => ({
    path: relative(root, file),
    text: readFileSync(file, 'utf8'),
  }));
}

const KINDS: ReadonlyMap<string, PropertyKind> = new Map(
  (
    [
      'always',
      'sometimes',
      'reachable',
      'unreachable',
      'alwaysAtMost',
      'alwaysAtLeast',
      'sometimesAtMost',
      'sometimesAtLeast',
    ] as const
  ).map((kind) => [kind, kind]),
);

function scanFile({ path, text }: SourceFile, found: ScannedProperty[], problems: string[]): void {
  const { program, errors } = parseSync(path, text);
  for (const error of errors) problems.push(`${path}: ${error.message}`);
  const imports: Imports = { names: new Map(), namespaces: new Set() };
  const at = (offset: number): ScannedPlace => ({ path, line: lineAt(text, offset) });
  new Visitor({
    ImportDeclaration(node) {
      noteImports(node, imports);
    },
    CallExpression(node) {
      const kind = calledKind(node, imports);
      if (kind === undefined) return;
      const name = literal(node.arguments[0]);
      if (name !== undefined) found.push({ kind, name, ...at(node.start) });
      else problems.push(`${place(at(node.start))}: the name of a property must be a literal`);
    },
  }).visit(program);
}

/** Under which local names a file can reach the declaring functions. */
interface Imports {
  readonly names: Map<string, PropertyKind>;
  readonly namespaces: Set<string>;
}

interface ScannedPlace {
  readonly path: string;
  readonly line: number;
}

function place({ path, line }: ScannedPlace): string {
  return `${path}:${line}`;
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length;
}

function noteImports(node: ImportDeclaration, { names, namespaces }: Imports): void {
  for (const specifier of node.specifiers) {
    if (specifier.type === 'ImportNamespaceSpecifier') namespaces.add(specifier.local.name);
    if (specifier.type !== 'ImportSpecifier' || specifier.imported.type !== 'Identifier') continue;
    const kind = KINDS.get(specifier.imported.name);
    if (kind !== undefined) names.set(specifier.local.name, kind);
  }
}

function calledKind({ callee }: CallExpression, imports: Imports): PropertyKind | undefined {
  if (callee.type === 'Identifier') return imports.names.get(callee.name);
  if (callee.type !== 'MemberExpression') return undefined;
  const { object, property } = callee;
  if (object.type !== 'Identifier' || !imports.namespaces.has(object.name)) return undefined;
  return property.type === 'Identifier' ? KINDS.get(property.name) : undefined;
}

function literal(argument: Argument | undefined): string | undefined {
  const isText = argument?.type === 'Literal' && typeof argument.value === 'string';
  return isText ? argument.value : undefined;
}
