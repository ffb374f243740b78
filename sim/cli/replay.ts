/** The command `replay`: what replay files of either kind do today, and whether traces of production bring what they did. */
import { readFileSync, writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import { reportReplay } from '../../core/trace-report.ts';
import { decodeReplay } from '../core-harness/replay-decode.ts';
import { encodeReplay, makeReplay, verifyReplay, type Verdict } from '../core-harness/replay.ts';
import type { Problem } from '../core-harness/fields.ts';
import {
  decodeWorldReplay,
  encodeWorldReplay,
  isWorldReplay,
  makeWorldReplay,
  verifyWorldReplay,
} from '../world/world-replay.ts';
import { printable } from './printable.ts';
import { UsageError } from './settings.ts';

/** Adds `replay` to the program. Exit code 1 unless each file does what it is marked with, or what was recorded. */
export function registerReplay(program: Command): void {
  program
    .command('replay <files...>')
    .description(
      'say of each replay file what it does today: fixed, reproduces or stale; and of traces where they differ',
    )
    .option('--accept', 'mark each with what it does today')
    .action((files: readonly string[], options: { accept?: boolean }, command: Command) => {
      const write = (text: string): void => command.configureOutput().writeOut?.(text);
      if (!replayFiles(files, options.accept ?? false, write)) process.exitCode = 1;
    });
}

/** Tells of each file; whether all are as they should be. */
export function replayFiles(
  files: readonly string[],
  accept: boolean,
  write: (text: string) => void,
): boolean {
  let allRight = true;
  for (const file of files) {
    const { told, isAsMarked } = replayFile(file, accept);
    allRight &&= isAsMarked;
    write(printable(`${file}: ${told}\n`));
  }
  return allRight;
}

interface Replayed {
  readonly told: string;
  readonly isAsMarked: boolean;
}

function replayFile(file: string, accept: boolean): Replayed {
  const bytes = attempt('read', file, () => readFileSync(file));
  const text = bytes.toString('utf8');
  if (!text.trimStart().startsWith('{')) return replayTrace(bytes);
  return isWorldReplay(text) ? replayWorld(file, text, accept) : replayCore(file, text, accept);
}

/** One of a production process, or of a sweep. */
function replayTrace(bytes: Uint8Array): Replayed {
  const { verdict, lines } = reportReplay(bytes);
  return { told: lines.join('\n  '), isAsMarked: verdict === 'same' };
}

function replayCore(file: string, text: string, accept: boolean): Replayed {
  const decoding = decodeReplay(text);
  if (!decoding.ok) return unreadable(decoding.problems);
  const { name, shows, outcome } = decoding.replay;
  if (!accept) return judged(verifyReplay(decoding.replay), outcome);
  const accepted = makeReplay(name, shows, decoding.replay);
  return marked(file, encodeReplay(accepted), accepted.outcome);
}

function replayWorld(file: string, text: string, accept: boolean): Replayed {
  const decoding = decodeWorldReplay(text);
  if (!decoding.ok) return unreadable(decoding.problems);
  const { name, shows, outcome } = decoding.replay;
  if (!accept) return judged(verifyWorldReplay(decoding.replay), outcome);
  const accepted = makeWorldReplay(name, shows, decoding.replay);
  return marked(file, encodeWorldReplay(accepted), accepted.outcome);
}

function marked(file: string, text: string, outcome: string): Replayed {
  writeReplay(file, text);
  return { told: `marked as ${outcome}`, isAsMarked: true };
}

function unreadable(problems: readonly Problem[]): Replayed {
  const told = problems.map(({ path, problem }) => `${path} ${problem}`);
  return { told: `stale: ${told.join('; ')}`, isAsMarked: false };
}

function judged(verdict: Verdict, outcome: string): Replayed {
  if (verdict.kind === 'stale') return { told: `stale: ${verdict.reason}`, isAsMarked: false };
  if (verdict.kind === outcome) return { told: outcome, isAsMarked: true };
  return { told: `${verdict.kind}, but it is marked as ${outcome}`, isAsMarked: false };
}

/** Throws UsageError where that cannot be. */
export function writeReplay(file: string, text: string): void {
  attempt('write', file, () => writeFileSync(file, text));
}

/** A file that is not there is the caller's mistake, not a bug. */
function attempt<T>(what: 'read' | 'write', file: string, access: () => T): T {
  try {
    return access();
  } catch (error) {
    throw new UsageError(`cannot ${what} ${file}: ${error instanceof Error ? error.message : ''}`);
  }
}
