/**
 * Builds a mutant: what `tsc` made of core/, sim/ and scenarios/, with one file of it made anew from its mutated source.
 * Types are stripped, not checked: most mutants would not type-check, and a bug that the compiler refuses is no bug.
 */
import { linkSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { transformWithOxc } from 'vite';
import { markRange, parses, type Range } from './instrument.ts';
import type { Mutant } from './mutant.ts';

/** Set on `globalThis` of a mutant's worker once its line ran. */
const REACHED_MARK = 'globalThis.mutantReached = true';

export type Build =
  | { readonly kind: 'built'; readonly directory: string }
  | { readonly kind: 'broken'; readonly problem: string };

/** Where a checkout's sources, its build and the mutants' builds are. */
export interface Places {
  /** The project's root. */
  readonly root: string;
  /** What `tsc` made. */
  readonly dist: string;
  /** Made and emptied at will. */
  readonly cache: string;
}

/** Builds `mutant` into a directory of its own, which has `core`, `sim` and `scenarios` in it. */
export async function buildMutant(mutant: Mutant, places: Places): Promise<Build> {
  const mutated = mutate(mutant, readFileSync(join(places.root, mutant.file), 'utf8'));
  if (mutated.kind === 'broken') return mutated;
  const directory = join(places.cache, mutant.id);
  await buildSources(new Map([[mutant.file, mutated.text]]), directory, places.dist);
  return { kind: 'built', directory };
}

/** A build in which the TypeScript files of `sources`, by their paths, stand in for what is in `dist`. */
export async function buildSources(
  sources: ReadonlyMap<string, string>,
  directory: string,
  dist: string,
): Promise<void> {
  // What an interrupted run may have left.
  rmSync(directory, { recursive: true, force: true });
  for (const folder of ['core', 'sim', 'scenarios']) {
    linkModules(join(dist, folder), join(directory, folder));
  }
  for (const [file, text] of sources) {
    const target = join(directory, dirname(file), `${basename(file, '.ts')}.js`);
    // Another file of this name: written into the one that is linked, the text would be in `dist` too.
    rmSync(target);
    writeFileSync(target, await stripTypes(file, text));
  }
}

/** Gives the modules below `from` a second name below `to`: to copy them takes longer than most sweeps. */
function linkModules(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) linkModules(source, target);
    else if (entry.name.endsWith('.js')) linkSync(source, target);
  }
}

type Mutation =
  | { readonly kind: 'mutated'; readonly text: string }
  | { readonly kind: 'broken'; readonly problem: string };

/** The mutated source with the mark that tells whether the mutated line ran. */
export function mutate({ file, search, replace }: Mutant, text: string): Mutation {
  const at = text.indexOf(search);
  if (search === '' || at < 0) return { kind: 'broken', problem: `not in ${file}: ${search}` };
  if (text.includes(search, at + 1)) {
    return { kind: 'broken', problem: `more than once in ${file}: ${search}` };
  }
  const mutated = text.slice(0, at) + replace + text.slice(at + search.length);
  if (!parses(file, mutated)) return { kind: 'broken', problem: `does not parse: ${replace}` };
  const around = changed(search, replace, at);
  return { kind: 'mutated', text: markRange(file, mutated, around, REACHED_MARK) };
}

/** What differs in a text where `replace` now stands for `search`: the context that they share is not the bug. */
function changed(search: string, replace: string, at: number): Range {
  const shorter = Math.min(search.length, replace.length);
  let head = 0;
  while (head < shorter && search[head] === replace[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && search.at(-1 - tail) === replace.at(-1 - tail)) tail += 1;
  return { start: at + head, end: at + replace.length - tail };
}

async function stripTypes(file: string, text: string): Promise<string> {
  const { code } = await transformWithOxc(text, file, {
    target: 'es2023',
    sourcemap: false,
    tsconfig: false,
    typescript: { rewriteImportExtensions: true },
  });
  return code;
}
