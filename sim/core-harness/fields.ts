/**
 * Reads what strangers wrote, field by field, and notes everything wrong with it by its path instead of throwing. A field
 * that is wrong reads as some valid value: what was read is worth nothing unless there were no problems.
 */

/** What is wrong, and where: a path such as `actions[3].payload.length`, or `$` for the whole. */
export interface Problem {
  readonly path: string;
  readonly problem: string;
}

export class Fields {
  private readonly path: string;
  private readonly problems: Problem[];
  /** What was not asked for yet. */
  private readonly left: Map<string, unknown>;

  /** `path` is empty for the outermost object; `problems` collects what is found. */
  constructor(value: unknown, path: string, problems: Problem[]) {
    this.path = path;
    this.problems = problems;
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    this.left = new Map(isObject ? Object.entries(value) : []);
    if (!isObject) problems.push({ path: path === '' ? '$' : path, problem: 'expected an object' });
  }

  integer(key: string, least: number, most: number): number {
    const expected = `an integer from ${least} to ${most}`;
    return this.read(key, expected, (value) => integerWithin(value, least, most)) ?? least;
  }

  /** One of these numbers, of which there is at least one. */
  oneOf(key: string, numbers: readonly number[]): number {
    const value = this.read(key, `one of ${numbers.join(', ')}`, (found) =>
      numbers.find((number) => number === found),
    );
    return value ?? numbers[0] ?? 0;
  }

  boolean(key: string): boolean {
    const value = this.read(key, 'true or false', (found) =>
      typeof found === 'boolean' ? found : undefined,
    );
    return value ?? false;
  }

  /** A text that `pattern` matches. */
  text(key: string, pattern: RegExp, expected: string): string {
    const value = this.read(key, expected, (found) =>
      typeof found === 'string' && pattern.test(found) ? found : undefined,
    );
    return value ?? '';
  }

  /** One of these words; `otherwise` if it is none of them. */
  word<const Word extends string>(key: string, words: readonly Word[], otherwise: Word): Word {
    const value = this.read(key, `one of ${words.join(', ')}`, (found) =>
      words.find((word) => word === found),
    );
    return value ?? otherwise;
  }

  object(key: string): Fields {
    const value = this.left.get(key);
    this.left.delete(key);
    return new Fields(value, this.pathOf(key), this.problems);
  }

  /** Undefined where the field is missing, which is no problem. */
  optionalObject(key: string): Fields | undefined {
    return this.left.has(key) ? this.object(key) : undefined;
  }

  objects(key: string, most: number): Fields[] {
    return this.list(key, 0, most).map(
      (value, index) => new Fields(value, `${this.pathOf(key)}[${index}]`, this.problems),
    );
  }

  /** Exactly `count` of them. */
  integers(key: string, count: number, least: number, most: number): number[] {
    return this.list(key, count, count).map((value, index) => {
      const found = integerWithin(value, least, most);
      if (found === undefined) {
        this.note(`${key}[${index}]`, `expected an integer from ${least} to ${most}`);
      }
      return found ?? least;
    });
  }

  /** Notes every field that was not asked for. To be called once all were. */
  end(): void {
    for (const key of this.left.keys()) this.note(key, 'unknown field');
  }

  private list(key: string, least: number, most: number): readonly unknown[] {
    const value = this.read(key, `a list of ${least} to ${most}`, (found): unknown[] | undefined =>
      Array.isArray(found) && found.length >= least && found.length <= most ? found : undefined,
    );
    return value ?? [];
  }

  private read<T>(
    key: string,
    expected: string,
    accept: (value: unknown) => T | undefined,
  ): T | undefined {
    const accepted = accept(this.left.get(key));
    const isMissing = !this.left.delete(key);
    if (accepted === undefined) {
      this.note(key, isMissing ? `missing, expected ${expected}` : `expected ${expected}`);
    }
    return accepted;
  }

  private note(key: string, problem: string): void {
    this.problems.push({ path: this.pathOf(key), problem });
  }

  private pathOf(key: string): string {
    return this.path === '' ? key : `${this.path}.${key}`;
  }
}

/** Never −0, which no JSON text needs and digests tell apart from 0. */
function integerWithin(value: unknown, least: number, most: number): number | undefined {
  const isWithin = typeof value === 'number' && Number.isInteger(value);
  return isWithin && value >= least && value <= most ? value + 0 : undefined;
}
