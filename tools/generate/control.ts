/** Writes the tables of doc/CONTROL.md from the commands that the program has. */
import { Command } from 'commander';
import { addControlCommands } from '../../shell/commands/control.ts';
import { alignTable } from '../../shell/config/markdown-table.ts';

const MARKED = /<!-- commands -->[^]*?<!-- end -->/;

/** The document with its list of commands as it is now; the prose is kept. Throws without the marker. */
export function controlDocument(current: string): string {
  if (!MARKED.test(current)) throw new Error('missing marker: commands');
  const program = new Command('sozu-udp').helpOption('--help');
  addControlCommands(program);
  const rows = leavesOf(program, []).map(({ command, words }) => [
    `\`${[...words, argumentsOf(command)].join(' ').trimEnd()}\``,
    command.description(),
    optionsOf(command),
  ]);
  const table = alignTable([['command', 'what it does', 'options'], ...rows]);
  return current.replace(MARKED, () => `<!-- commands -->\n\n${table}\n\n<!-- end -->`);
}

interface Leaf {
  readonly command: Command;
  readonly words: readonly string[];
}

function leavesOf(parent: Command, words: readonly string[]): Leaf[] {
  return parent.commands.flatMap((command) => {
    const path = [...words, command.name()];
    return command.commands.length === 0 ? [{ command, words: path }] : leavesOf(command, path);
  });
}

function argumentsOf(command: Command): string {
  return command.registeredArguments
    .map((one) => {
      const name = one.variadic ? `${one.name()}...` : one.name();
      return one.required ? `<${name}>` : `[${name}]`;
    })
    .join(' ');
}

/** Those that every command has stand in the prose. */
function optionsOf(command: Command): string {
  return command.options
    .filter(({ long }) => long !== '--socket' && long !== '--json')
    .map(({ flags, mandatory }) => (mandatory ? `**\`${flags}\`**` : `\`${flags}\``))
    .join(', ');
}
