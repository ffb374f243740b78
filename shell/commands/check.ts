/**
 * `sozu-udp check FILE`: what is wrong with a configuration, for people and, with --json, for programs.
 */
import { Chalk, type ChalkInstance } from 'chalk';
import { readEnvironment, type Environment } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import type { Problem, Severity } from '../config/problem.ts';
import { printable, printableLines } from '../printable.ts';

export interface CheckOptions {
  /** Warnings make the exit code 1. */
  readonly strict?: boolean | undefined;
  /** Print `{ schema: 1, file, problems, ok }` instead of text. */
  readonly json?: boolean | undefined;
  readonly colour?: boolean | undefined;
  /** What to judge against; this machine unless given. */
  readonly environment?: Environment | undefined;
  /** Where the answer goes; standard output unless given. */
  readonly write?: ((text: string) => void) | undefined;
}

/** Checks the file, prints the answer, and returns the exit code: 0, 1 (warnings, with `strict`) or 2 (errors). */
export function runCheck(file: string, options: CheckOptions = {}): Promise<number> {
  const { problems } = loadConfig(file, options.environment ?? readEnvironment());
  const write = options.write ?? ((text: string): void => void process.stdout.write(text));
  const colour = options.colour ?? false;
  if (options.json === true) {
    const ok = count(problems, 'error') === 0;
    write(printableLines(`${JSON.stringify({ schema: 1, file, problems, ok }, undefined, 2)}\n`));
  } else {
    write(formatProblems(problems, { colour }) + formatSummary(file, problems));
  }
  return Promise.resolve(exitCode(problems, options.strict ?? false));
}

/** One problem on a line, its fix on the next. Empty when there is none. */
export function formatProblems(
  problems: readonly Problem[],
  { colour }: { readonly colour: boolean },
): string {
  const chalk = new Chalk({ level: colour ? 1 : 0 });
  return problems.map((problem) => formatProblem(problem, chalk)).join('');
}

/** 2 with an error, 1 with a warning when `strict`, else 0. */
function exitCode(problems: readonly Problem[], strict: boolean): 0 | 1 | 2 {
  if (count(problems, 'error') > 0) return 2;
  return strict && count(problems, 'warning') > 0 ? 1 : 0;
}

function formatProblem(problem: Problem, chalk: ChalkInstance): string {
  const { severity, path, line, column, fix } = problem;
  const paint = { error: chalk.red, warning: chalk.yellow, notice: chalk.cyan }[severity];
  const place = [
    line === undefined ? '' : `line ${line}`,
    column === undefined ? '' : `column ${column}`,
  ];
  const where = place.filter((part) => part !== '').join(', ');
  const at = where === '' ? printable(path) : `${printable(path)} (${where})`;
  const head = `${paint(severity)} ${chalk.bold(at)}: ${printable(problem.problem)}\n`;
  return fix === undefined ? head : `${head}  ${chalk.dim(`fix: ${printable(fix)}`)}\n`;
}

function formatSummary(file: string, problems: readonly Problem[]): string {
  const parts = (['error', 'warning', 'notice'] as const).map((severity) => {
    const number = count(problems, severity);
    return `${number} ${severity}${number === 1 ? '' : 's'}`;
  });
  return `${printable(file)}: ${parts.join(', ')}\n`;
}

function count(problems: readonly Problem[], severity: Severity): number {
  return problems.filter((problem) => problem.severity === severity).length;
}
