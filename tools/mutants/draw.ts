/**
 * Mutants by chance: generic operators at every site of the functions that a sweep runs, and a fixed seed that draws among
 * them. A site's luck depends on its own line alone, so a change elsewhere in core/ draws the same mutants again.
 */
import { createHash } from 'node:crypto';
import { functionsOf, type Range } from './instrument.ts';
import type { Mutant } from './mutant.ts';
import { sitesIn, type Site } from './operators.ts';

/** A file of core/ and, by offset, which of its functions a sweep runs. */
export interface ExecutedFile {
  readonly path: string;
  readonly text: string;
  readonly functions: ReadonlySet<number>;
}

interface Candidate {
  readonly luck: string;
  readonly mutant: Mutant;
}

/** `count` mutants of `files`. */
export function drawMutants(
  files: readonly ExecutedFile[],
  count: number,
  seed: string,
): readonly Mutant[] {
  const candidates = files.flatMap((file) => candidatesIn(file, seed));
  candidates.sort((one, other) => (one.luck < other.luck ? -1 : 1));
  return candidates.slice(0, count).map(({ mutant }) => mutant);
}

function candidatesIn(file: ExecutedFile, seed: string): Candidate[] {
  const { path, text } = file;
  const drawn = ({ start }: Range): boolean =>
    file.functions.has(start) && !servesChecks(text, start);
  const runs = functionsOf(path, text).filter(drawn);
  const idle = functionsOf(path, text).filter((range) => !drawn(range));
  const seen = new Map<string, number>();
  return sitesIn(path, text)
    .filter((site) => innermost(site, runs) < innermost(site, idle))
    .map((site) => {
      const line = lineAround(text, site);
      const name = `${path} ${site.operator} ${line} ${site.replacement}`;
      const occurrence = (seen.get(name) ?? 0) + 1;
      seen.set(name, occurrence);
      const luck = createHash('sha256').update(`${seed} ${name} ${occurrence}`).digest('hex');
      return { luck, mutant: toMutant(file, site, luck.slice(0, 8)) };
    });
}

/** Whether the comment right before a function says that whole-state checks alone call it: a mutant there blinds the oracle. */
function servesChecks(text: string, start: number): boolean {
  const comment = text.slice(text.lastIndexOf('/**', start), start);
  const [words, rest] = comment.split('*/');
  return words !== undefined && /whole-state checks/i.test(words) && !/[;}]/.test(rest ?? ';');
}

function toMutant({ path, text }: ExecutedFile, site: Site, digits: string): Mutant {
  const { start, end } = uniqueAround(text, site);
  const search = text.slice(start, end);
  const replace = text.slice(start, site.start) + site.replacement + text.slice(site.end, end);
  return {
    id: `drawn-${path.slice(path.lastIndexOf('/') + 1, -'.ts'.length)}-${digits}`,
    file: path,
    search,
    replace,
    announces: `${site.operator}: \`${plain(search)}\` becomes \`${plain(replace)}\``,
  };
}

/** On one line. */
function plain(text: string): string {
  return text.trim().replaceAll(/\s+/g, ' ');
}

/** The site with as many whole lines around it as it takes to stand there once. */
function uniqueAround(text: string, { start, end }: Range): Range {
  let [from, to] = [start, end];
  for (;;) {
    from = text.lastIndexOf('\n', from - 1) + 1;
    const next = text.indexOf('\n', to);
    to = next < 0 ? text.length : next;
    const search = text.slice(from, to);
    if (text.indexOf(search) === text.lastIndexOf(search)) return { start: from, end: to };
    from -= 1;
    to += 1;
  }
}

function lineAround(text: string, { start }: Range): string {
  const next = text.indexOf('\n', start);
  return text.slice(text.lastIndexOf('\n', start - 1) + 1, next < 0 ? text.length : next).trim();
}

/** Length of the shortest range around `site`. */
function innermost(site: Range, ranges: readonly Range[]): number {
  const around = ranges.filter(({ start, end }) => start <= site.start && site.end <= end);
  return Math.min(...around.map(({ start, end }) => end - start), Infinity);
}
