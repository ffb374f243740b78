/**
 * Puts marks into sources: whether a mutated line ran, and which functions run at all. A survivor whose line never ran says
 * something about the workload, one whose line ran says something about the oracle.
 */
import { parseSync, Visitor } from 'oxc-parser';

/** A range of a text; offsets as in `slice`. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** Text to put in at an offset. */
interface Insertion {
  readonly at: number;
  readonly text: string;
}

/** Where a mark can stand: what it would tell of, and what to put in. */
interface Place extends Range {
  readonly insertions: readonly Insertion[];
}

/** Whether `text` is TypeScript. */
export function parses(path: string, text: string): boolean {
  return parseSync(path, text).errors.length === 0;
}

/** `text` with the expression `mark` evaluated whenever the innermost statement or branch around `around` runs. */
export function markRange(path: string, text: string, around: Range, mark: string): string {
  const places = placesOf(path, text, around, mark).filter(
    ({ start, end }) => start <= around.start && around.end <= end,
  );
  const innermost = places.sort((one, other) => span(one) - span(other))[0];
  return innermost === undefined ? text : insert(text, innermost.insertions);
}

/** `text` with an expression evaluated at the start of each function; `mark` makes it from the function's offset. */
export function markFunctions(path: string, text: string, mark: (at: number) => string): string {
  const insertions = functionsOf(path, text).flatMap(({ start, end, isExpression }) =>
    isExpression
      ? wrap({ start, end }, mark(start))
      : [{ at: start + 1, text: ` ${mark(start)};` }],
  );
  return insert(text, insertions);
}

/** A function's body: braces included, or the one expression of an arrow function. */
export interface FunctionBody extends Range {
  readonly isExpression: boolean;
}

export function functionsOf(path: string, text: string): FunctionBody[] {
  const bodies: FunctionBody[] = [];
  new Visitor({
    FunctionDeclaration: ({ body }) => {
      if (body !== null) bodies.push({ start: body.start, end: body.end, isExpression: false });
    },
    FunctionExpression: ({ body }) => {
      if (body !== null) bodies.push({ start: body.start, end: body.end, isExpression: false });
    },
    ArrowFunctionExpression: ({ body }) => {
      const isExpression = body.type !== 'BlockStatement';
      bodies.push({ start: body.start, end: body.end, isExpression });
    },
  }).visit(parseSync(path, text).program);
  return bodies;
}

function placesOf(path: string, text: string, around: Range, mark: string): Place[] {
  const places: Place[] = [];
  const list = (range: Range, statements: readonly Range[], fallback: number): void => {
    const at = statements.find(({ end }) => end > around.start)?.start ?? fallback;
    const { start, end } = range;
    places.push({ start, end, insertions: [{ at, text: `${mark}; ` }] });
  };
  const branch = (node: Range & { readonly type: string }): void => {
    if (node.type === 'BlockStatement') return;
    const insertions = [
      { at: node.start, text: `{ ${mark}; ` },
      { at: node.end, text: ' }' },
    ];
    places.push({ start: node.start, end: node.end, insertions });
  };
  const expression = ({ start, end }: Range): void => {
    places.push({ start, end, insertions: wrap({ start, end }, mark) });
  };
  new Visitor({
    Program: (node) => list({ start: 0, end: text.length }, node.body, text.length),
    BlockStatement: (node) => list(node, node.body, node.end - 1),
    FunctionDeclaration: ({ body }) => body !== null && list(body, body.body, body.end - 1),
    FunctionExpression: ({ body }) => body !== null && list(body, body.body, body.end - 1),
    SwitchCase: (node) => list(node, node.consequent, node.end),
    IfStatement: ({ consequent, alternate }) => {
      branch(consequent);
      if (alternate !== null) branch(alternate);
    },
    ForStatement: ({ body }) => branch(body),
    ForOfStatement: ({ body }) => branch(body),
    WhileStatement: ({ body }) => branch(body),
    ArrowFunctionExpression: ({ body }) => {
      if (body.type !== 'BlockStatement') expression(body);
    },
    ConditionalExpression: ({ consequent, alternate }) => {
      expression(consequent);
      expression(alternate);
    },
  }).visit(parseSync(path, text).program);
  return places;
}

function wrap({ start, end }: Range, mark: string): Insertion[] {
  return [
    { at: start, text: `(${mark}, (` },
    { at: end, text: '))' },
  ];
}

function insert(text: string, insertions: readonly Insertion[]): string {
  let result = text;
  for (const { at, text: inserted } of insertions.toSorted((one, other) => other.at - one.at)) {
    result = result.slice(0, at) + inserted + result.slice(at);
  }
  return result;
}

function span({ start, end }: Range): number {
  return end - start;
}
