/** House rules about TypeScript that compiler, linter and formatter do not know, or that deserve a second guard. */
import { parseSync, Visitor } from 'oxc-parser';
import { finding, findLines, isTest, isTypeScript, lineAt, type TextFile } from './files.ts';

/** Comments follow the margin of the documents, code that of the formatter. */
const COMMENT_COLUMNS = 128;
const FILE_LINES = 400;
/** Fewer words than this say nothing. */
const OPENING_WORDS = 5;

/** Names that stand for clock, chance, waiting or the outside, and what core takes instead. */
const IMPURE: ReadonlyMap<string, string> = new Map([
  ['Date', 'time enters as `now`'],
  ['performance', 'time enters as `now`'],
  ['setTimeout', 'return the deadline from pollTimeout'],
  ['Promise', 'answers of the outside are inputs'],
  ['Intl', 'it depends on the locale'],
  ['WeakRef', 'it observes the garbage collector'],
  ['FinalizationRegistry', 'it observes the garbage collector'],
  ['process', 'settings enter as arguments'],
  ['console', 'tell it with an output'],
  ['globalThis', 'name what you need and take it as an argument'],
]);

/** Core has no clock, no chance and waits for nothing, however the linter is configured. */
export function checkPurity(file: TextFile): string[] {
  if (!isTypeScript(file) || isTest(file) || !file.path.startsWith('core/')) return [];
  const found: string[] = [];
  const add = (offset: number, what: string): void => {
    found.push(finding(file, lineAt(file, offset), `${what} in core`));
  };
  const checkAsync = (node: { readonly async: boolean; readonly start: number }): void => {
    if (node.async) add(node.start, 'async; answers of the outside are inputs:');
  };
  new Visitor({
    Identifier({ name, start }) {
      const instead = IMPURE.get(name);
      if (instead !== undefined) add(start, `${name}; ${instead}:`);
    },
    MemberExpression({ object, property, start }) {
      if (object.type !== 'Identifier' || property.type !== 'Identifier') return;
      if (object.name === 'Math' && property.name === 'random') {
        add(start, 'Math.random; draw from a seeded Random:');
      }
    },
    FunctionDeclaration: checkAsync,
    FunctionExpression: checkAsync,
    ArrowFunctionExpression: checkAsync,
    AwaitExpression: ({ start }) => add(start, 'await; answers of the outside are inputs:'),
  }).visit(parseSync(file.path, file.text).program);
  return found;
}

/** prettier wraps code and leaves comments as they are. */
export function checkCommentWidth(file: TextFile): string[] {
  if (!isTypeScript(file)) return [];
  const { comments } = parseSync(file.path, file.text);
  const lines = file.text.split('\n');
  return comments.flatMap(({ start, end }) => {
    const first = lineAt(file, start);
    const last = lineAt(file, end);
    return lines
      .slice(first - 1, last)
      .flatMap((line, index) =>
        line.length > COMMENT_COLUMNS
          ? [finding(file, first + index, `comment over ${COMMENT_COLUMNS} columns; wrap it`)]
          : [],
      );
  });
}

/** The linter counts the lines of TypeScript; this is for everything else that runs. */
export function checkFileSize(file: TextFile): string[] {
  const lines = file.text.split('\n').length - 1;
  if (!/\.(ts|js|mjs|c|sh)$/.test(file.path) || lines <= FILE_LINES) return [];
  return [finding(file, FILE_LINES, `${lines} lines, above ${FILE_LINES}; split by purpose`)];
}

export function checkNoFocusedTests(file: TextFile): string[] {
  if (!isTypeScript(file)) return [];
  const found: string[] = [];
  new Visitor({
    MemberExpression({ object, property, start }) {
      if (property.type !== 'Identifier' || property.name !== 'only') return;
      // Only of what declares tests: an option of that name focuses nothing.
      if (!/^(?:test|it|describe|suite|bench)\b/.test(file.text.slice(object.start))) return;
      found.push(finding(file, lineAt(file, start), 'focused test; remove it and run all'));
    },
  }).visit(parseSync(file.path, file.text).program);
  return found;
}

/** A reader who opens a file learns first why it exists. Tests say it with their names, configuration with its name. */
export function checkOpeningComment(file: TextFile): string[] {
  if (!/\.(ts|c|sh)$/.test(file.path) || isTest(file) || file.path.endsWith('.config.ts'))
    return [];
  const text = file.text.replace(/^#!.*\n/, '');
  const comment = /^(?:\/\*[^]*?\*\/|(?:\/\/.*\n)+|(?:#.*\n)+)/.exec(text)?.[0] ?? '';
  const words = comment.match(/[A-Za-z]+/g)?.length ?? 0;
  if (words >= OPENING_WORDS) return [];
  return [finding(file, 1, 'no opening comment; say in a sentence why this file exists')];
}

export function checkNoDefaultExport(file: TextFile): string[] {
  if (!isTypeScript(file) || file.path.endsWith('.config.ts')) return [];
  const found: string[] = [];
  const add = (offset: number): void => {
    found.push(finding(file, lineAt(file, offset), 'default export; export it by name'));
  };
  new Visitor({
    ExportDefaultDeclaration: ({ start }) => add(start),
    ExportSpecifier({ exported, start }) {
      if (exported.type === 'Identifier' && exported.name === 'default') add(start);
    },
  }).visit(parseSync(file.path, file.text).program);
  return found;
}

/** One door for each top-level folder; any other import names the file that has the thing. */
export function checkBarrels(file: TextFile): string[] {
  if (!isTypeScript(file) || /^[a-z]+\/index\.ts$/.test(file.path)) return [];
  const { module } = parseSync(file.path, file.text);
  const inside = module.staticExports
    .flatMap(({ entries }) => entries)
    .filter(({ moduleRequest }) => moduleRequest !== null && moduleRequest !== undefined)
    .map(({ start }) =>
      finding(file, lineAt(file, start), 're-export; import from the file that has it'),
    );
  if (!file.path.endsWith('/index.ts')) return inside;
  return [finding(file, 1, 'index.ts below a top-level folder; name the file for what it does')];
}

/** Reasons of skipped tests must be readable where the test stands. */
export function checkSkips(file: TextFile): string[] {
  if (!isTest(file)) return [];
  const pattern = /\b(?:test|it|describe)\.(?:skip|todo)\(/;
  return findLines(file, pattern, 'skipped test; use skipIf with a condition that says why');
}
