/** Commands that need no running proxy: what starts one, and what looks at a file, a trace or the machine. */
import { InvalidArgumentError, type Command } from 'commander';
import { runCheck } from './check.ts';
import { runDemo } from './demo.ts';
import { runDoctor } from './doctor.ts';
import { runReplay, type ReplayFlags } from './replay.ts';
import { runFile } from './run.ts';

export function addLocalCommands(program: Command): void {
  addStarts(program);
  addExaminations(program);
  addReplay(program);
}

function addStarts(program: Command): void {
  program
    .command('run')
    .description('run a configuration until SIGTERM or SIGINT; SIGHUP reads the file again')
    .requiredOption('-c, --config <file>', 'TOML file, see doc/CONFIGURE.md')
    .addHelpText('after', '\nExample:\n  sozu-udp run --config dns.toml')
    .action(async (options: { config: string }) => exitWith(await runFile(options.config)));
  program
    .command('start')
    .description('run a demo, or a configuration')
    .option('-c, --config <file>', 'TOML file instead of the demo')
    .addHelpText('after', '\nExample:\n  sozu-udp start --config dns.toml')
    .action(async ({ config }: { config?: string }) =>
      exitWith(config === undefined ? await runDemo() : await runFile(config)),
    );
}

function addExaminations(program: Command): void {
  program
    .command('check')
    .description('check a configuration: exit code 0, 1 with --strict and warnings, 2 on errors')
    .argument('<file>', 'TOML file')
    .option('--strict', 'fail on warnings')
    .option('--json', 'print problems for programs')
    .addHelpText('after', '\nExample:\n  sozu-udp check --strict dns.toml')
    .action(async (file: string, options: { strict?: boolean; json?: boolean }) =>
      exitWith(await runCheck(file, { ...options, colour: process.stdout.isTTY })),
    );
  program
    .command('doctor')
    .description('what is wrong with this machine: exit code 0, 1 with warnings, 2 with errors')
    .option('-c, --config <file>', 'look at what this TOML file needs as well')
    .option('--json', 'print findings for programs')
    .addHelpText('after', '\nExample:\n  sozu-udp doctor --config dns.toml')
    .action(async (options: { config?: string; json?: boolean }) =>
      exitWith(await runDoctor({ ...options, colour: process.stdout.isTTY })),
    );
}

function addReplay(program: Command): void {
  program
    .command('replay')
    .description(
      'run a trace through the core: exit code 0, 1 at the first other output, 2 unreadable',
    )
    .argument('<file>', 'a trace that the flight recorder wrote, see doc/TRACES.md')
    .option('--json', 'print the report for programs')
    .option('--from <n>', 'tell inputs, and what they bring, from this number on', toNumber)
    .option('--count <n>', 'how many of them', toNumber, 20)
    .option('--anonymise <out>', 'write a trace with other addresses and names, to be handed on')
    .addHelpText(
      'after',
      `
Examples:
  sozu-udp replay incident.trace
  sozu-udp replay incident.trace --from 1200 --count 50
  sozu-udp replay incident.trace --anonymise for-others.trace`,
    )
    .action((file: string, options: ReplayFlags) => exitWith(runReplay(file, options)));
}

function toNumber(text: string): number {
  if (!/^[1-9][0-9]{0,11}$/.test(text)) throw new InvalidArgumentError('expected a number from 1');
  return Number(text);
}

/** Sets the code and lets the process end by itself, so that nothing written is cut off. */
function exitWith(code: number): void {
  process.exitCode = code;
}
