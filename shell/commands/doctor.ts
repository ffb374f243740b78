/** `sozu-udp doctor [--config FILE]`: what is wrong between a configuration and this machine, each with what mends it. */
import { Chalk, type ChalkInstance } from 'chalk';
import type { Severity } from '../config/problem.ts';
import { examine } from '../doctor/examine.ts';
import type { Finding } from '../doctor/finding.ts';
import { thisMachine, type Machine } from '../doctor/machine.ts';
import { printable, printableLines } from '../printable.ts';

export interface DoctorOptions {
  /** Undefined: the machine alone. */
  readonly config?: string | undefined;
  /** Print `{ schema: 1, file, findings, ok }` instead of text. */
  readonly json?: boolean | undefined;
  readonly colour?: boolean | undefined;
  /** Whom to look at; this one unless given. */
  readonly machine?: Machine | undefined;
  /** Where the answer goes; standard output unless given. */
  readonly write?: ((text: string) => void) | undefined;
}

/** Looks, prints, and returns the exit code: 0, 1 with warnings, 2 with errors. */
export async function runDoctor(options: DoctorOptions = {}): Promise<number> {
  const { config: file, machine = thisMachine() } = options;
  const findings = await examine(machine, file);
  const write = options.write ?? ((text: string): void => void process.stdout.write(text));
  const code = exitCode(findings);
  if (options.json === true) {
    const answer = { schema: 1, file, findings, ok: code === 0 };
    write(printableLines(`${JSON.stringify(answer, undefined, 2)}\n`));
  } else {
    const chalk = new Chalk({ level: options.colour === true ? 1 : 0 });
    write(findings.map((finding) => format(finding, chalk)).join('') + summary(findings));
  }
  return code;
}

function format({ severity, check, what, why, fix }: Finding, chalk: ChalkInstance): string {
  const paint = { error: chalk.red, warning: chalk.yellow, notice: chalk.cyan }[severity];
  const more = [
    why === undefined ? '' : `  ${printable(why)}\n`,
    fix === undefined ? '' : `  ${chalk.dim(`fix: ${printable(fix)}`)}\n`,
  ];
  return `${paint(severity)} ${chalk.bold(check)}: ${printable(what)}\n${more.join('')}`;
}

function summary(findings: readonly Finding[]): string {
  const parts = (['error', 'warning', 'notice'] as const).map((severity) => {
    const number = count(findings, severity);
    return `${number} ${severity}${number === 1 ? '' : 's'}`;
  });
  return `${parts.join(', ')}\n`;
}

function exitCode(findings: readonly Finding[]): number {
  if (count(findings, 'error') > 0) return 2;
  return count(findings, 'warning') > 0 ? 1 : 0;
}

function count(findings: readonly Finding[], severity: Severity): number {
  return findings.filter((finding) => finding.severity === severity).length;
}
