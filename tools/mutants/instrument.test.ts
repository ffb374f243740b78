import { describe, expect, test } from 'vitest';
import { functionsOf, markFunctions, markRange, parses } from './instrument.ts';

const MARK = 'mark()';

/** Marks around the one place where `part` stands. */
function marked(text: string, part: string): string {
  const start = text.indexOf(part);
  expect(start, part).toBeGreaterThanOrEqual(0);
  return markRange('x.ts', text, { start, end: start + part.length }, MARK);
}

describe('a mark stands where it runs exactly when what it is for runs', () => {
  test('before the statement, not at the head of the function', () => {
    expect(marked('function f() { if (a) return; b(); c(); }', 'b()')).toBe(
      'function f() { if (a) return; mark(); b(); c(); }',
    );
  });

  test('inside a branch without braces', () => {
    expect(marked('function f() { if (a) return b; }', 'return b;')).toBe(
      'function f() { if (a) { mark(); return b; } }',
    );
  });

  test('inside a loop and inside a case', () => {
    expect(marked('for (const a of b) c();', 'c()')).toBe('for (const a of b) { mark(); c(); }');
    expect(marked('switch (a) { case 1: b(); }', 'b()')).toBe(
      'switch (a) { case 1: mark(); b(); }',
    );
  });

  test('inside an arrow function and a conditional', () => {
    expect(marked('const f = (a) => a + 1;', 'a + 1')).toBe('const f = (a) => (mark(), (a + 1));');
    expect(marked('const c = a ? b : d;', 'b ')).toBe('mark(); const c = a ? b : d;');
    expect(marked('const c = a ? b : d;', 'b')).toBe('const c = a ? (mark(), (b)) : d;');
  });

  test('where a statement was dropped, before the next or at the end', () => {
    const text = 'class A { f() { a(); b(); } }';
    const at = text.indexOf(' b()');
    expect(markRange('x.ts', text, { start: at, end: at }, MARK)).toBe(
      'class A { f() { a(); mark(); b(); } }',
    );
    const end = text.indexOf('} }');
    expect(markRange('x.ts', text, { start: end, end }, MARK)).toBe(
      'class A { f() { a(); b(); mark(); } }',
    );
  });
});

test('every function is marked: declarations, methods, arrows with and without braces', () => {
  const text = 'function f() {} class A { g() { return () => 1; } } const h = () => { f(); };';
  expect(functionsOf('x.ts', text)).toHaveLength(4);
  const all = markFunctions('x.ts', text, (at) => `m(${at})`);
  expect(parses('x.ts', all)).toBe(true);
  expect(all.match(/m\(\d+\)/g)).toHaveLength(4);
  expect(all).toMatch(/\(\) => \(m\(\d+\), \(1\)\);/);
});
