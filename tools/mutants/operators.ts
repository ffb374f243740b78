/** The generic mutation operators: each finds its sites in a source and says what to put there instead. */
import { parseSync, Visitor, type Expression, type Program } from 'oxc-parser';
import type { Range } from './instrument.ts';

/** One edit by one operator. */
export interface Site extends Range {
  readonly operator: string;
  readonly replacement: string;
}

/** A parsed source. */
interface Source {
  readonly text: string;
  readonly program: Program;
}

type Operator = (source: Source) => Site[];

const OPERATORS: readonly Operator[] = [replaceOperators, swap, negate, shift, drop];

/** Every site of every operator, but for those in assertions: one that is gone is missed only when all else is wrong too. */
export function sitesIn(path: string, text: string): Site[] {
  const source = { text, program: parseSync(path, text).program };
  const spared = sparedIn(source);
  return OPERATORS.flatMap((operator) => operator(source)).filter(
    (site) => !spared.some(({ start, end }) => start <= site.start && site.end <= end),
  );
}

const ASSERTIONS = new Set(['assert', 'assertNever', 'present']);

function sparedIn({ text, program }: Source): Range[] {
  const spared: Range[] = [];
  new Visitor({
    CallExpression: ({ callee, start, end }) => {
      const isAssertion = callee.type === 'Identifier' && ASSERTIONS.has(callee.name);
      // The semicolon too: a call that stands alone is a statement, which could be dropped.
      if (isAssertion) spared.push({ start, end: text[end] === ';' ? end + 1 : end });
    },
    ThrowStatement: (node) => spared.push(node),
    TSLiteralType: (node) => spared.push(node),
  }).visit(program);
  return spared;
}

const OTHER_OPERATOR: Readonly<Record<string, string>> = {
  '===': '!==',
  '!==': '===',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '+': '-',
  '-': '+',
  '*': '+',
  '/': '*',
  '%': '*',
  '&': '|',
  '|': '&',
  '^': '|',
  '<<': '>>',
  '>>': '<<',
  '>>>': '>>',
  '&&': '||',
  '||': '&&',
  '+=': '-=',
  '-=': '+=',
  '*=': '+=',
  '^=': '|=',
  '&=': '|=',
  '|=': '&=',
};

interface Binary {
  readonly left: Range;
  readonly right: Range;
  readonly operator: string;
}

function replaceOperators({ text, program }: Source): Site[] {
  const sites: Site[] = [];
  const replace = ({ left, right, operator }: Binary): void => {
    const replacement = OTHER_OPERATOR[operator];
    const start = text.indexOf(operator, left.end);
    if (replacement === undefined || start >= right.start) return;
    const end = start + operator.length;
    sites.push({ operator: 'replace an operator', start, end, replacement });
  };
  new Visitor({
    BinaryExpression: replace,
    LogicalExpression: replace,
    AssignmentExpression: replace,
  }).visit(program);
  return sites;
}

/** Operators whose operands are worth swapping. */
const LOPSIDED = new Set(['-', '/', '%', '<<', '>>', '>>>', '<', '>', '<=', '>=']);

function swap({ text, program }: Source): Site[] {
  const sites: Site[] = [];
  const swapIn = (whole: Range, one: Range, other: Range): void => {
    const { start, end } = whole;
    const parts = [
      text.slice(start, one.start),
      text.slice(other.start, other.end),
      text.slice(one.end, other.start),
      text.slice(one.start, one.end),
      text.slice(other.end, end),
    ];
    sites.push({ operator: 'swap operands', start, end, replacement: parts.join('') });
  };
  new Visitor({
    BinaryExpression: (node) => {
      if (LOPSIDED.has(node.operator)) swapIn(node, node.left, node.right);
    },
    CallExpression: (node) => {
      const [one, other] = node.arguments;
      if (one !== undefined && other !== undefined) swapIn(node, one, other);
    },
  }).visit(program);
  return sites;
}

function negate({ text, program }: Source): Site[] {
  const sites: Site[] = [];
  const add = ({ start, end }: Range, replacement: string): void => {
    sites.push({ operator: 'negate', start, end, replacement });
  };
  /** Comparisons and their like have operators of their own. */
  const test = (condition: Expression): void => {
    if (condition.type === 'BinaryExpression' || condition.type === 'LogicalExpression') return;
    add(condition, `!(${text.slice(condition.start, condition.end)})`);
  };
  new Visitor({
    UnaryExpression: (node) => {
      const { argument, operator } = node;
      if (operator !== '!' && operator !== '-') return;
      add(node, text.slice(argument.start, argument.end));
    },
    IfStatement: (node) => test(node.test),
    ConditionalExpression: (node) => test(node.test),
    WhileStatement: (node) => test(node.test),
  }).visit(program);
  return sites;
}

/** Numbers by one, truths to their opposite. */
function shift({ program }: Source): Site[] {
  const sites: Site[] = [];
  new Visitor({
    Literal: ({ value, start, end }) => {
      if (typeof value === 'number') {
        sites.push({ operator: 'off by one', start, end, replacement: `${value + 1}` });
      } else if (typeof value === 'boolean') {
        sites.push({ operator: 'replace a constant', start, end, replacement: `${!value}` });
      }
    },
  }).visit(program);
  return sites;
}

function drop({ program }: Source): Site[] {
  const sites: Site[] = [];
  const add = ({ start, end }: Range): void => {
    sites.push({ operator: 'drop a statement', start, end, replacement: ';' });
  };
  new Visitor({
    ExpressionStatement: add,
    BreakStatement: add,
    ContinueStatement: add,
    IfStatement: (node) => {
      if (node.alternate === null) add(node);
    },
  }).visit(program);
  return sites;
}
