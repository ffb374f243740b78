/**
 * What is wrong with a configuration, as data: each problem says where it is, what it is and how to mend it. Nothing here
 * prints; shell/commands/check.ts does.
 */

/** An error stops the start, a warning is legal but hurts, a notice tells what was left out. */
export type Severity = 'error' | 'warning' | 'notice';

export interface Problem {
  readonly severity: Severity;
  /** `listeners[0].address`, or `(file)` when the whole file is meant. */
  readonly path: string;
  /** From 1, where the file gives it. */
  readonly line?: number | undefined;
  /** From 1, for syntax errors only. */
  readonly column?: number | undefined;
  readonly problem: string;
  readonly fix?: string | undefined;
}

/** Keys and array indexes from the top of the document. Empty means the whole file. */
export type Path = readonly (string | number)[];

/** Line numbers by formatted path (locate.ts). */
export type LineIndex = ReadonlyMap<string, number>;

/** `clusters.dns.backends[1].address`; a key that TOML would quote is quoted. */
export function formatPath(path: Path): string {
  if (path.length === 0) return '(file)';
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    const key = /^[A-Za-z0-9_-]+$/.test(part) ? part : JSON.stringify(part);
    return text === '' ? key : `${text}.${key}`;
  }, '');
}

/** Collects every problem of one file; nothing stops at the first. */
export class Report {
  readonly #problems: Problem[] = [];
  readonly #lines: LineIndex;

  constructor(lines: LineIndex) {
    this.#lines = lines;
  }

  error(path: Path, problem: string, fix?: string): void {
    this.#add('error', path, problem, fix);
  }

  warning(path: Path, problem: string, fix?: string): void {
    this.#add('warning', path, problem, fix);
  }

  notice(path: Path, problem: string, fix?: string): void {
    this.#add('notice', path, problem, fix);
  }

  get failed(): boolean {
    return this.#problems.some(({ severity }) => severity === 'error');
  }

  /** Errors first, then warnings, then notices; each in the order in which they were found. */
  get problems(): readonly Problem[] {
    const bySeverity = (severity: Severity): readonly Problem[] =>
      this.#problems.filter((problem) => problem.severity === severity);
    return [...bySeverity('error'), ...bySeverity('warning'), ...bySeverity('notice')];
  }

  #add(severity: Severity, path: Path, problem: string, fix: string | undefined): void {
    this.#problems.push({
      severity,
      path: formatPath(path),
      line: this.#lineOf(path),
      problem,
      fix,
    });
  }

  /** The line of the key, or of the nearest table around it when the key itself is missing. */
  #lineOf(path: Path): number | undefined {
    for (let length = path.length; length > 0; length -= 1) {
      const line = this.#lines.get(formatPath(path.slice(0, length)));
      if (line !== undefined) return line;
    }
    return undefined;
  }
}
