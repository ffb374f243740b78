/**
 * Where each key of a TOML document stands. The parser gives values without positions, so this walks the source once
 * more. It trusts that the parser accepted the document, and gives up quietly, never throws, where it does not.
 */
import { parse } from 'smol-toml';
import { formatPath, type LineIndex, type Path } from './problem.ts';

/** Our deepest key is `clusters.<id>.frontends[0].tags.<name>`; what lies deeper than this has no line. */
const DEPTH_MAX = 16;

/** Line numbers, from 1, of every table header, key and array element, by formatted path. */
export function locateKeys(source: string): LineIndex {
  return new KeyScanner(source).scan();
}

class KeyScanner {
  readonly #source: string;
  readonly #lines = new Map<string, number>();
  /** Last index of each array of tables. */
  readonly #tables = new Map<string, number>();
  #at = 0;
  #line = 1;
  #counted = 0;

  constructor(source: string) {
    this.#source = source;
  }

  scan(): LineIndex {
    if (this.#source.startsWith('\uFEFF')) this.#at = 1;
    let table: Path = [];
    for (this.#skipBlank(); this.#at < this.#source.length; this.#skipBlank()) {
      const start = this.#at;
      if (this.#source[start] === '[') table = this.#header();
      else this.#pair(table);
      if (this.#at === start) break;
    }
    return this.#lines;
  }

  /** `[a.b]` or `[[a.b]]`: returns the path that the pairs below it belong to. */
  #header(): Path {
    const double = this.#source.startsWith('[[', this.#at);
    this.#at += double ? 2 : 1;
    const keys = this.#key();
    this.#at += double ? 2 : 1;
    const last = keys.at(-1);
    if (last === undefined) return [];
    const parent = this.#resolve(keys.slice(0, -1));
    const array = formatPath([...parent, last]);
    if (!double) {
      const path = this.#resolve(keys);
      this.#lines.set(formatPath(path), this.#lineHere());
      return path;
    }
    const index = (this.#tables.get(array) ?? -1) + 1;
    this.#tables.set(array, index);
    this.#note([...parent, last]);
    this.#note([...parent, last, index]);
    return [...parent, last, index];
  }

  /** Table names within the document: a name that is an array of tables means its last element. */
  #resolve(keys: readonly string[]): Path {
    let path: Path = [];
    for (const key of keys) {
      path = [...path, key];
      const index = this.#tables.get(formatPath(path));
      if (index !== undefined) path = [...path, index];
      this.#note(path);
    }
    return path;
  }

  #pair(table: Path): void {
    let path = table;
    for (const key of this.#key()) {
      path = [...path, key];
      this.#note(path);
    }
    if (path === table) return;
    this.#skipSpace();
    if (this.#source[this.#at] !== '=') return;
    this.#at += 1;
    this.#value(path);
  }

  #value(path: Path): void {
    this.#skipSpace();
    const first = this.#source[this.#at];
    if (first === '"' || first === "'") this.#skipString(first);
    else if (first === '[') this.#array(path);
    else if (first === '{') this.#inlineTable(path);
    else this.#skipScalar();
  }

  #array(path: Path): void {
    let index = 0;
    for (this.#at += 1; this.#at < this.#source.length;) {
      this.#skipBlank();
      if (this.#take(']')) return;
      if (this.#take(',')) continue;
      this.#note([...path, index]);
      this.#value([...path, index]);
      index += 1;
    }
  }

  #inlineTable(path: Path): void {
    for (this.#at += 1; this.#at < this.#source.length;) {
      this.#skipBlank();
      if (this.#take('}')) return;
      if (this.#take(',')) continue;
      const start = this.#at;
      this.#pair(path);
      if (this.#at === start) return;
    }
  }

  /** A dotted key as its parts. The parser itself undoes quotes and escapes. */
  #key(): readonly string[] {
    const start = this.#at;
    for (;;) {
      this.#skipSpace();
      const first = this.#source[this.#at];
      if (first === '"' || first === "'") this.#skipString(first);
      else while (isBareKeyCharacter(this.#source.charCodeAt(this.#at))) this.#at += 1;
      this.#skipSpace();
      if (!this.#take('.')) break;
    }
    return decodeKey(this.#source.slice(start, this.#at));
  }

  #skipString(quote: '"' | "'"): void {
    const triple = quote.repeat(3);
    const long = this.#source.startsWith(triple, this.#at);
    const end = long ? triple : quote;
    this.#at += end.length;
    while (this.#at < this.#source.length && !this.#source.startsWith(end, this.#at)) {
      this.#at += quote === '"' && this.#source[this.#at] === '\\' ? 2 : 1;
    }
    this.#at += end.length;
    if (!long) return;
    // Up to two quotes may stand right before the closing three.
    for (let extra = 0; extra < 2 && this.#source[this.#at] === quote; extra += 1) this.#at += 1;
  }

  #skipScalar(): void {
    do this.#at += 1;
    while (this.#at < this.#source.length && !',]}#\n'.includes(this.#source[this.#at] ?? ','));
  }

  #skipSpace(): void {
    while (this.#source[this.#at] === ' ' || this.#source[this.#at] === '\t') this.#at += 1;
  }

  /** White space, line ends and comments. */
  #skipBlank(): void {
    for (;;) {
      const next = this.#source[this.#at];
      if (next === '#') {
        const end = this.#source.indexOf('\n', this.#at);
        this.#at = end === -1 ? this.#source.length : end;
      } else if (next === ' ' || next === '\t' || next === '\r' || next === '\n') this.#at += 1;
      else return;
    }
  }

  #take(mark: string): boolean {
    if (this.#source[this.#at] !== mark) return false;
    this.#at += 1;
    return true;
  }

  /** The first mention of a path is where it stands; only a header of its own overrides that. */
  #note(path: Path): void {
    if (path.length > DEPTH_MAX) return;
    const key = formatPath(path);
    if (!this.#lines.has(key)) this.#lines.set(key, this.#lineHere());
  }

  #lineHere(): number {
    for (; this.#counted < this.#at; this.#counted += 1) {
      if (this.#source.charCodeAt(this.#counted) === 10) this.#line += 1;
    }
    return this.#line;
  }
}

function isBareKeyCharacter(code: number): boolean {
  if (code >= 97 && code <= 122) return true;
  if (code >= 65 && code <= 90) return true;
  return (code >= 48 && code <= 57) || code === 95 || code === 45;
}

function decodeKey(raw: string): readonly string[] {
  const text = raw.trim();
  if (/^[A-Za-z0-9_-]*$/.test(text)) return text === '' ? [] : [text];
  try {
    const keys: string[] = [];
    let table: unknown = parse(`${text} = 0`);
    while (typeof table === 'object' && table !== null && keys.length <= DEPTH_MAX) {
      const [entry] = Object.entries(table);
      if (entry === undefined) break;
      keys.push(entry[0]);
      table = entry[1];
    }
    return keys;
  } catch {
    return [];
  }
}
