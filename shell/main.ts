#!/usr/bin/env node
/** The command line: `sozu-udp run`, `start`, `check` and `replay`. */
import { Command, InvalidArgumentError } from 'commander';
import { AssertionError } from '../core/index.ts';
import { runCheck } from './commands/check.ts';
import { addControlCommands } from './commands/control.ts';
import { runDemo } from './commands/demo.ts';
import { runReplay, type ReplayFlags } from './commands/replay.ts';
import { runFile } from './commands/run.ts';
import { EXIT_BUG, EXIT_USAGE } from './exit-codes.ts';
import { packageVersion } from './version.ts';

process.on('uncaughtException', (error) => {
  process.stderr.write(`${error.stack ?? String(error)}\n`);
  process.exit(error instanceof AssertionError ? EXIT_BUG : 1);
});
// A reader that has seen enough, such as `head`, is no failure: the exit code stays that of the command.
process.stdout.on('error', () => undefined);
process.stderr.on('error', () => undefined);
// Else node opens its debugger port, where whoever is on this machine may run code in this process.
process.on('SIGUSR1', () => undefined);
await program().parseAsync();

function program(): Command {
  const command = new Command('sozu-udp')
    .description('A UDP load balancer: each client socket is a flow, pinned to a backend.')
    .version(packageVersion(), '--version', 'print the version')
    .helpOption('--help', 'print this help')
    .showHelpAfterError()
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : EXIT_USAGE))
    .addHelpText(
      'after',
      `
Examples:
  sozu-udp start                            a demo on 127.0.0.1:5300, with two echo backends
  sozu-udp check dns.toml                   what is wrong with a configuration
  sozu-udp run --config dns.toml            run it; SIGTERM drains, a second one closes at once
  sozu-udp status                           what a running proxy does; see doc/CONTROL.md`,
    );
  command
    .command('run')
    .description('run a configuration until SIGTERM or SIGINT; SIGHUP reads the file again')
    .requiredOption('-c, --config <file>', 'TOML file, see doc/CONFIGURE.md')
    .addHelpText('after', '\nExample:\n  sozu-udp run --config dns.toml')
    .action(async (options: { config: string }) => exitWith(await runFile(options.config)));
  command
    .command('start')
    .description('run a demo, or a configuration')
    .option('-c, --config <file>', 'TOML file instead of the demo')
    .addHelpText('after', '\nExample:\n  sozu-udp start --config dns.toml')
    .action(async ({ config }: { config?: string }) =>
      exitWith(config === undefined ? await runDemo() : await runFile(config)),
    );
  command
    .command('check')
    .description('check a configuration: exit code 0, 1 with --strict and warnings, 2 on errors')
    .argument('<file>', 'TOML file')
    .option('--strict', 'fail on warnings')
    .option('--json', 'print problems for programs')
    .addHelpText('after', '\nExample:\n  sozu-udp check --strict dns.toml')
    .action(async (file: string, options: { strict?: boolean; json?: boolean }) =>
      exitWith(await runCheck(file, { ...options, colour: process.stdout.isTTY })),
    );
  command
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
  addControlCommands(command);
  return command;
}

function toNumber(text: string): number {
  if (!/^[1-9][0-9]{0,11}$/.test(text)) throw new InvalidArgumentError('expected a number from 1');
  return Number(text);
}

/** Sets the code and lets the process end by itself, so that nothing written is cut off. */
function exitWith(code: number): void {
  process.exitCode = code;
}
