/** What the commands of the client have in common, and how their options become values of a request. */
import { InvalidArgumentError, type Command } from 'commander';
import { parse as parseToml } from 'smol-toml';
import type { ClientOptions } from './ask.ts';

/** A command that speaks to a proxy. `example` is how it is called. */
export function leaf(parent: Command, words: string, summary: string, example: string): Command {
  return parent
    .command(words)
    .description(summary)
    .option('--socket <path>', 'the control socket, else SOZU_UDP_SOCKET, else the usual one')
    .option('--json', 'print the answer for programs')
    .addHelpText('after', `\nExample:\n  sozu-udp ${example}`);
}

/** A word with commands below it. */
export function group(parent: Command, word: string, summary: string): Command {
  return parent.command(word).description(summary);
}

/** Lets the process end by itself with the code of what `work` came to, so that nothing written is cut off. */
export function action<Options extends ClientOptions>(
  work: (options: Options) => Promise<number>,
): (options: Options) => Promise<void> {
  return async (options) => {
    process.exitCode = await work(options);
  };
}

/** The same for a command with an argument before its options. */
export function actionOn<Options extends ClientOptions>(
  work: (argument: string, options: Options) => Promise<number>,
): (argument: string, options: Options) => Promise<void> {
  return async (argument, options) => {
    process.exitCode = await work(argument, options);
  };
}

/** A value as a configuration file has it; what is none is a text. The proxy says what it takes. */
export function tomlValue(text: string): unknown {
  try {
    // One line: nothing may follow the value.
    if (/[\r\n]/.test(text)) return text;
    const { value } = parseToml(`value = ${text}`);
    return value instanceof Date || value === undefined ? text : value;
  } catch {
    return text;
  }
}

/** `udp.responses=1`, several times: settings with tables inside. */
export function addSetting(
  text: string,
  before: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, unknown>> {
  const [, path = '', value = ''] = /^([A-Za-z0-9_.-]+)=(.*)$/s.exec(text) ?? [];
  if (path === '') throw new InvalidArgumentError('expected KEY=VALUE, such as udp.responses=1');
  return withSetting(before, path.split('.'), tomlValue(value));
}

function withSetting(
  before: Readonly<Record<string, unknown>>,
  [key = '', ...rest]: readonly string[],
  value: unknown,
): Readonly<Record<string, unknown>> {
  if (rest.length === 0) return { ...before, [key]: value };
  const inner = before[key];
  const known = typeof inner === 'object' && inner !== null ? { ...inner } : {};
  return { ...before, [key]: withSetting(known, rest, value) };
}

/** `2s`, `500ms`, `1m`, `1h`, or seconds: in milliseconds. */
export function parseDuration(text: string): number {
  const [, count = '', unit = 's'] = /^(\d{1,9})(ms|s|m|h)?$/.exec(text) ?? [];
  if (count === '') throw new InvalidArgumentError('expected a time such as 2s, 500ms or 1m');
  return Number(count) * ({ ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }[unit] ?? 1_000);
}
