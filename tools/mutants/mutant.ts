/** What a mutant is: one wrong line put into a copy of core/, to see whether a sweep notices (tools/mutants/README.md). */

export interface Mutant {
  /** Unique among all mutants, kebab-case: `double-counted-drops`. */
  readonly id: string;
  /** From the project's root: `core/manager.ts`. */
  readonly file: string;
  /** Text of that file, to the letter, that stands there exactly once. May span lines. */
  readonly search: string;
  /** What stands there instead: any TypeScript that still parses; types are stripped, not checked. */
  readonly replace: string;
  /** One sentence, in terms of behaviour: what the program does wrong with this in it. */
  readonly announces: string;
}
