/** `sozu-udp replay FILE`: runs a trace through the core and names the first input that brings other outputs than it did. */
import { readFileSync } from 'node:fs';
import { reportReplay, type ReplayReport, type Verdict } from '../../core/index.ts';
import { printable, printableLines } from '../printable.ts';
import { anonymise } from './anonymise.ts';

export interface ReplayFlags {
  /** Print the report for programs. */
  readonly json?: boolean | undefined;
  /** Tell inputs from this number on. */
  readonly from?: number | undefined;
  /** Writes an anonymised trace there instead of a replay's report. */
  readonly anonymise?: string | undefined;
  /** So many of them. */
  readonly count: number;
}

const EXIT_CODES: Readonly<Record<Verdict, number>> = { same: 0, differs: 1, unreadable: 2 };

/** Exit codes: 0 every input brought what was recorded, 1 one did not, 2 the file cannot be replayed. */
export function runReplay(
  file: string,
  { json = false, from, count, anonymise: out }: ReplayFlags,
  write: (text: string) => void = (text) => void process.stdout.write(text),
): number {
  const bytes = read(file);
  if (typeof bytes === 'string') {
    write(`${printable(file)}: unreadable: ${printable(bytes)}\n`);
    return EXIT_CODES.unreadable;
  }
  if (out !== undefined) {
    const { lines, code } = anonymise(bytes, out);
    write(lines.map((line) => `${printable(line)}\n`).join(''));
    return code;
  }
  const list = from === undefined ? undefined : { from, count };
  const report = reportReplay(bytes, { list });
  write(
    json
      ? printableLines(`${JSON.stringify(forPrograms(file, report), undefined, 2)}\n`)
      : forPeople(file, report),
  );
  return EXIT_CODES[report.verdict];
}

function forPeople(file: string, { lines }: ReplayReport): string {
  return [file, ...lines].map((line) => `${printable(line)}\n`).join('');
}

function forPrograms(file: string, { verdict, data }: ReplayReport): unknown {
  return { schema: 1, file, verdict, ...data };
}

/** What most often keeps a file from being read, in words. */
const REASONS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'there is no such file'],
  ['EACCES', 'only its owner may read a trace; ask as that user, or copy the file'],
  ['EISDIR', 'it is a folder; name a file in it'],
]);

/** The bytes, or why there are none. */
function read(file: string): Uint8Array | string {
  try {
    return readFileSync(file);
  } catch (error) {
    if (!(error instanceof Error)) return String(error);
    const errno = 'code' in error ? String(error.code) : '';
    return REASONS.get(errno) ?? error.message;
  }
}
