/** All commands that speak to a running proxy, below the program's own. doc/CONTROL.md lists them from here. */
import { Argument, type Command } from 'commander';
import { completionScript, SHELLS, type Shell } from './completion.ts';
import { addConfigCommands } from './config-commands.ts';
import { addFlowCommands } from './flow-commands.ts';
import { addProcessCommands } from './process-commands.ts';

export function addControlCommands(program: Command): void {
  addProcessCommands(program);
  addConfigCommands(program);
  addFlowCommands(program);
  program
    .command('completion')
    .description('print a script by which a shell completes commands')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .addHelpText('after', '\nExample:\n  source <(sozu-udp completion bash)')
    .action((shell: Shell) => void process.stdout.write(completionScript(program, shell)));
}
