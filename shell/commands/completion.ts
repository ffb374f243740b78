/**
 * `sozu-udp completion SHELL`: a script by which a shell completes commands and options, written from the commands that there
 * are, so that it cannot lag behind.
 */
import type { Command } from 'commander';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

export type Shell = (typeof SHELLS)[number];

interface Place {
  /** The words before, without the program's name. */
  readonly words: readonly string[];
  readonly commands: readonly { readonly name: string; readonly summary: string }[];
  readonly options: readonly { readonly long: string; readonly summary: string }[];
}

export function completionScript(program: Command, shell: Shell): string {
  const places = placesOf(program, []);
  switch (shell) {
    case 'bash':
      return bash(places);
    case 'zsh':
      // Its emulation of bash completes the same words.
      return `autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n${bash(places)}`;
    case 'fish':
      return fish(places);
    default:
      return shell satisfies never;
  }
}

function placesOf(command: Command, words: readonly string[]): Place[] {
  const commands = command.commands.map((one) => ({
    name: one.name(),
    summary: one.description(),
  }));
  const options = command.options.flatMap(({ long, description }) => {
    return long === null || long === undefined ? [] : [{ long, summary: description }];
  });
  const help = { long: '--help', summary: 'print help' };
  return [
    { words, commands, options: [...options, help] },
    ...command.commands.flatMap((one) => placesOf(one, [...words, one.name()])),
  ];
}

/** The longest place that the words before begin with decides; values of options fall through to file names. */
function bash(places: readonly Place[]): string {
  const cases = places
    .toSorted((one, other) => other.words.length - one.words.length)
    .map(({ words, commands, options }) => {
      const pattern = `" ${words.join(' ')}"*`.replace('" "', '""');
      const names = [...commands.map(({ name }) => name), ...options.map(({ long }) => long)];
      return `    ${pattern}) words="${names.join(' ')}" ;;`;
    });
  return `_sozu_udp() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="" word words
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) before="$before $word" ;; esac
  done
  case "$before" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _sozu_udp sozu-udp
`;
}

function fish(places: readonly Place[]): string {
  const lines = places.flatMap(({ words, commands, options }) => {
    const here = `complete -c sozu-udp -n '__sozu_udp_at ${words.join(' ')}'`;
    return [
      ...commands.map(({ name, summary }) => `${here} -f -a ${name} -d ${quoted(summary)}`),
      ...options.map(({ long, summary }) => `${here} -l ${long.slice(2)} -d ${quoted(summary)}`),
    ];
  });
  return `function __sozu_udp_at
  set -l words (commandline -opc)
  set -e words[1]
  set -l before (string match -v -- '-*' $words)
  test "$before[1..(count $argv)]" = "$argv"
  and test (count $before) -eq (count $argv)
end
${lines.join('\n')}
`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "\\'")}'`;
}
