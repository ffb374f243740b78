/** The command line, and what holds for all of it: exit codes and broken pipes. */
import { Command } from 'commander';
import { AssertionError } from '../core/index.ts';
import { addControlCommands } from './commands/control.ts';
import { addLocalCommands } from './commands/local.ts';
import { EXIT_BUG, EXIT_USAGE } from './exit-codes.ts';
import { printableLines } from './printable.ts';
import { packageVersion } from './version.ts';

/** Does what the words after the program's name say. */
export async function runCommandLine(): Promise<void> {
  process.on('uncaughtException', (error) => {
    process.stderr.write(printableLines(`${error.stack ?? String(error)}\n`));
    process.exit(error instanceof AssertionError ? EXIT_BUG : 1);
  });
  // A reader that has seen enough, such as `head`, is no failure: the exit code stays that of the command.
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);
  await program().parseAsync();
}

function program(): Command {
  const command = new Command('sozu-udp')
    .description('A UDP load balancer: each client socket is a flow, pinned to a backend.')
    .version(packageVersion(), '--version', 'print the version')
    .helpOption('--help', 'print this help')
    .showHelpAfterError()
    .configureOutput({ writeErr: (text) => void process.stderr.write(printableLines(text)) })
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
  addLocalCommands(command);
  addControlCommands(command);
  return command;
}
